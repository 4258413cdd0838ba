package gateway

import (
	"os"
	"testing"
)

// guardTries is how often a share that is too small is measured again: another
// process may have had the machine.
const guardTries = 5

// TestAcceptPathHoldsItsShare compares BenchmarkAcceptPath with
// BenchmarkBareInsert in one run, so that speed does not rot in silence. Its
// bound is 80 % of the target in docs/bench.md. A noisy machine must not fail
// the ordinary tests, so it measures where GATEWAY_TEST_SPEED asks for it.
func TestAcceptPathHoldsItsShare(t *testing.T) {
	if os.Getenv("GATEWAY_TEST_SPEED") == "" {
		t.Log("GATEWAY_TEST_SPEED is not set: nothing is measured")
		return
	}
	const (
		target = 0.60
		least  = 0.8 * target
	)
	best := 0.0
	for range guardTries {
		bare, path := testing.Benchmark(BenchmarkBareInsert), testing.Benchmark(BenchmarkAcceptPath)
		if bare.N == 0 || path.N == 0 {
			t.Fatal("a benchmark failed")
		}
		share := float64(bare.NsPerOp()) / float64(path.NsPerOp())
		t.Logf("bare insert %d ns, accept path %d ns a message: a share of %.2f", bare.NsPerOp(), path.NsPerOp(), share)
		if best = max(best, share); best >= least {
			return
		}
	}
	t.Errorf("the accept path reaches %.2f of the bare insert, at least %.2f is wanted", best, least)
}
