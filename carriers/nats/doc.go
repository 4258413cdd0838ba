// Package nats carries envelopes over NATS: through a JetStream stream, or in
// core mode over plain subscriptions. It also holds the embedded server.
//
// # Subjects
//
// Messages travel on PREFIX.WORKSPACE.CHANNEL.broadcast and
// PREFIX.WORKSPACE.CHANNEL.peer.TOKEN (section 10 of docs/protocol.md). What
// comes in on PREFIX.WORKSPACE.CHANNEL.ingress has been seen by nobody else.
//
// # One session, one connection
//
// Run lives through sessions. A session is one connection and everything that
// hangs on it: the subscription or consumer, the frames that were offered, the
// sends that wait for an acknowledgement. When the connection ends, all of it
// ends, and Run builds the next session from nothing: it looks for the stream and
// the consumer again and creates what is missing. The client library's own
// reconnecting is switched off, for three reasons. It buffers publishes in
// memory while the link is down and calls them sent. Its count of pending
// publishes can stick over a reconnect. And it would write an acknowledgement of
// the old connection to the new one, where, if the server lost its state
// meanwhile, it would acknowledge another message that bears the same number. A
// frame whose settlement comes after the end of its session is therefore not
// acknowledged; the server sends it again after ack_wait, and it is a duplicate.
//
// # JetStream mode
//
// The durable pull consumer belongs to one gateway instance and starts at the
// beginning of the stream: what stood there before the gateway came is held to
// the rules of freshness like everything else. A frame passes through
//
//	pump ──▶ queue ──▶ Offer ──▶ settlement ──▶ settler
//
// where the pump only takes from the library, one goroutine offers in order, and
// the settler alone writes Ack (committed), Term (rejected) and a Nak with delay
// (retry), in the order of the settlements. While a frame is unsettled, in the
// queue too, the settler tells the server that work is in progress, so that a
// commit may take longer than ack_wait.
//
// A send is published with a reply subject of its own, and only a PubAck that
// names the configured stream is its acknowledgement: any subscriber may answer
// a publish, and any other stream's answer is no promise of ours.
//
// # Core mode
//
// Core NATS is at most once. Nothing is acknowledged, the reply subject of a
// message is never written to, and what the server or the library had to drop is
// counted. A send is acknowledged when the server answered a ping behind it,
// which says that the server read it and nothing about any receiver.
//
// # The embedded server
//
// StartServer runs a nats-server inside the process, for a first try and for one
// box. It syncs each message to the disk before it acknowledges it. A watchdog
// restarts it in place when its store keeps failing although the disk takes
// writes again.
package nats
