// Package integration tests the built gateway from outside, with clients that
// share no code with it: mosquitto's command line, a Node program on the npm
// package nats, an MCP host on the npm package @modelcontextprotocol/sdk, curl,
// and shell scripts as stdio agents. But for the table of verdicts its tests have
// the build tag brokers:
//
//	(cd integration/testdata/node && npm ci)
//	(cd integration/testdata/mcp && npm ci)
//	go test -tags=brokers ./integration/...
//
// They need the Debian packages mosquitto, mosquitto-clients, nats-server, curl
// and nodejs. A program that is missing is a failure, never a skip.
//
// # Map
//
//   - main_test.go builds the binary; program_test.go runs processes.
//   - harness_test.go runs gateways: configuration, start, kill, restart.
//   - brokers_test.go runs mosquitto and nats-server, and names the sites that
//     tests run on: the embedded brokers, or brokers of their own.
//   - mosquitto_test.go, node_test.go, mcphost_test.go, curl_test.go and
//     agent_test.go drive the foreign clients; message_test.go writes envelopes;
//     reading_test.go reads what the gateway says of itself.
//   - verdicts_test.go sends one table of envelopes over every carrier and wants
//     the same verdicts; it needs nothing but Go, and runs without the tag. In the
//     other files verdicts_*_test.go are the table, by the steps of section 3 of
//     docs/protocol.md, and a driver for each carrier.
//   - Every other file holds tests, named after what must hold.
package integration
