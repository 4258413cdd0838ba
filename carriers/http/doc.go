// Package http is the carrier for everything that speaks HTTP: envelopes come
// in by POST, readers follow history, streams and inboxes, and webhooks are
// called with what others said.
//
// What lives where:
//
//   - config.go, carrier.go: the keys, and the carrier as the port wants it;
//   - server.go, guard.go, auth.go, tokens.go: the listener, and who may do what;
//   - problem.go, errors.go: every answer that is not 2xx is problem+json, and
//     one place turns an error into one;
//   - receive.go, post.go, batch.go, spool.go, lines.go: frames on their way in;
//   - history.go, inspect.go, views.go, deadletters.go, rejections.go,
//     health.go: what is known;
//   - sse.go, stream.go, tail.go: the channel streams. One tail per channel reads
//     the store once for all of its readers;
//   - peers.go, inbox.go: attached peers, and what they receive;
//   - send.go, webhook.go, outcome.go, sign.go, breaker.go, dial.go: webhooks.
//
// The carrier reads the store through the interfaces of backend.go, which the
// gateway fills in, and through nothing else. An arrival is always ingress:
// nobody has seen it yet, and there is no address to check.
//
// A frame is offered only once all of it has come in, and what is offered is
// settled whether or not the client still waits for the answer: so a client that
// hangs up half-way leaves its envelope wholly in or wholly out.
package http
