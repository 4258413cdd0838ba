// Package integration tests the built gateway from outside, with clients that
// share no code with it: mosquitto's command line, Node programs on the npm
// packages nats and standardwebhooks, an MCP host on the npm package
// @modelcontextprotocol/sdk, curl, shell scripts as stdio agents, and the agents of
// examples/agents. But for the table of verdicts and the example in shell its tests
// have the build tag brokers:
//
//	(cd integration/testdata/node && npm ci)
//	(cd integration/testdata/mcp && npm ci)
//	go test -tags=brokers ./integration/...
//
// They need the Debian packages mosquitto, mosquitto-clients, nats-server, curl,
// python3 and nodejs. A program that is missing is a failure, never a skip.
//
// # Map
//
//   - main_test.go builds the binary; program_test.go runs processes.
//   - harness_test.go runs gateways: configuration, start, kill, restart.
//   - brokers_test.go runs mosquitto and nats-server, and names the sites that
//     tests run on: the embedded brokers, or brokers of their own.
//   - tls_test.go signs certificates, and locks the brokers to all but their
//     holders.
//   - mosquitto_test.go, node_test.go, mcphost_test.go, curl_test.go and
//     agent_test.go drive the foreign clients; message_test.go writes envelopes;
//     reading_test.go reads what the gateway says of itself.
//   - verdicts_test.go sends one table of envelopes over every carrier and wants
//     the same verdicts; it needs nothing but Go, and runs without the tag. In the
//     other files verdicts_*_test.go are the table, by the steps of section 3 of
//     docs/protocol.md, and a driver for each carrier.
//   - example_agents_test.go and example_gateway_test.go hold an agent of
//     examples/agents to what it is to show, alone and through a gateway; the one
//     in shell without the tag, the others in example_runtimes_test.go.
//   - Every other file holds tests, named after what must hold.
package integration
