// Package mqtt is the carrier for MQTT 3.1.1 brokers, and the small broker that
// the gateway brings along.
//
// # Addresses
//
// A message stands at PREFIX/WORKSPACE/CHANNEL/ followed by broadcast,
// peer/TOKEN or ingress (section 10 of docs/protocol.md). address.go turns
// topics into addresses and back.
//
// # Two connections
//
// The carrier keeps two clients with two client ids, for their needs exclude
// each other. link.go keeps each of them connected, and builds a new client for
// every connection: no packet id, token or acknowledgement outlives the
// connection that it belongs to.
//
// The subscriber has a persistent session, so that the broker keeps for us what
// we have not acknowledged. It subscribes again on every connection, because a
// broker may have lost its state. Frames pass from the client's goroutine into a
// bounded queue, from there in order into the intake (receive.go), and are
// acknowledged in the order of their arrival on the connection they came on
// (ack.go). An acknowledgement whose connection has ended is dropped: the broker
// sends the frame again, and that copy is acknowledged.
//
// The queue lets the client answer pings while the gateway is stuck. It is
// larger than the window of unacknowledged messages that brokers allow (20 in
// Mosquitto, 32 in EMQX), so that it does not fill up behind such a broker. A
// broker without a window may fill it: then the client stops reading, the
// connection may be lost by its keepalive, and what was not acknowledged comes
// again.
//
// The publisher has a clean session and no reconnecting of its own, because only
// then does the client library complete a publish without an error for a real
// PUBACK alone. What is to be sent again is the gateway's business; nothing is
// kept here (send.go).
//
// # The embedded broker
//
// Broker is a complete MQTT broker for one machine. It hands what a device
// publishes on the gateway's addresses to the carrier before it acknowledges it
// or shows it to anybody (intercept.go, device.go); a carrier on it has no
// subscriber. A will on those addresses takes the same way, without delay, and
// nothing is retained there.
//
// Its sessions, queues and retained messages live in memory only. It drops what
// goes beyond 4096 messages for one client, and does not promise the order of
// what it sends again when a session resumes.
package mqtt
