// Package mcpserver makes one peer of a running gateway usable from an MCP host:
// tools to send and to read, and resources for threads (docs/mcp.md).
//
// It is a client of the gateway's HTTP interface like any other, keeps nothing
// on disk, and decides nothing: a refusal is the gateway's, handed on with its
// reason code. The sender, the workspace and the channel are fixed when the
// server starts; no tool can choose them.
//
// # What is untrusted
//
// All that other peers wrote is data for the host's model, never instructions.
// Results say so, and hold such text in members whose names begin with
// untrusted_. A body stands there as the JSON text that was sent, in a string: a
// number that no double holds must neither change nor break an answer, and
// nothing in it can pass for a member of the result.
//
// # Map
//
//   - server.go holds the server and its life; attach.go takes the peer's seat.
//   - tools.go registers tools and schema.go bounds their arguments; errors.go
//     turns failures into tool errors.
//   - send.go is what the four tools that send share; say.go, capability.go,
//     receipt.go and trace.go are one each.
//   - inbox.go reads and acknowledges; message.go is how a message is shown.
//   - lookup.go lists peers and threads and looks at work; inspect.go at one
//     message; history.go reads a thread, and resources.go makes threads
//     resources.
package mcpserver
