// Package settings reads layered configuration strictly.
//
// A configuration is a plain struct with koanf tags, filled with its defaults.
// The package compares what a file or the environment says with the struct's
// shape and reports every problem at once, each with its key: unknown keys with
// the nearest one that exists, values of the wrong type, values left empty.
// What fits is decoded onto the defaults. It also renders a configuration as
// YAML in the order of its fields, with secrets hidden.
//
// It knows nothing of the gateway, and nothing of where the layers come from.
package settings
