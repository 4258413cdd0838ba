// Package example holds the configuration file that says what runs without one.
package example

import _ "embed"

//go:embed config.example.yaml
var config string

// Config is the text of config.example.yaml: every key with its default.
func Config() string { return config }
