// Package client talks to a running gateway over its HTTP interface (docs/api.md).
//
// A Client sends envelopes, reads what is committed, follows a channel's stream
// and an inbox. It keeps nothing: who needs to go on where a connection broke
// passes the position again. Retrying is left to the caller, for a caller that
// reports to a person wants to fail at once and one that serves a process does
// not.
package client
