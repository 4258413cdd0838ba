// Package compose writes envelopes for senders that have none at hand: the
// command that makes a say from flags, and the tools of the MCP server.
//
// It refuses nothing. What an envelope may say is judged by the gateway that it
// is sent to.
package compose
