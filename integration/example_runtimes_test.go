//go:build brokers

package integration

import "testing"

func TestThePythonAgent(t *testing.T) {
	t.Parallel()
	checkExampleAgent(t, exampleAgent{file: "agent.py", runtime: need(t, "python3", "python3"), strict: true})
}

func TestTheNodeAgent(t *testing.T) {
	t.Parallel()
	checkExampleAgent(t, exampleAgent{file: "agent.mjs", runtime: need(t, "node", "nodejs"), strict: true})
}
