package core_test

import (
	"os"
	"testing"
)

// TestParseHoldsItsShare compares parsing and validating with unmarshalling the
// same bytes by encoding/json, in one run. Its bound is 80 % of the target in
// docs/bench.md; see the test of the accept path for when it measures.
func TestParseHoldsItsShare(t *testing.T) {
	if os.Getenv("GATEWAY_TEST_SPEED") == "" {
		t.Log("GATEWAY_TEST_SPEED is not set: nothing is measured")
		return
	}
	const (
		tries = 5
		least = 0.8
	)
	for _, s := range samples(t) {
		t.Run(s.name, func(t *testing.T) {
			best := 0.0
			for range tries {
				unmarshal := testing.Benchmark(func(b *testing.B) { benchmarkUnmarshal(b, s.raw) })
				check := testing.Benchmark(func(b *testing.B) { benchmarkCheck(b, s.raw) })
				if unmarshal.N == 0 || check.N == 0 {
					t.Fatal("a benchmark failed")
				}
				share := float64(unmarshal.NsPerOp()) / float64(check.NsPerOp())
				t.Logf("unmarshal %d ns, parse and validate %d ns: %.2f times as fast", unmarshal.NsPerOp(), check.NsPerOp(), share)
				if best = max(best, share); best >= least {
					return
				}
			}
			t.Errorf("parsing and validating is %.2f times as fast as unmarshalling, at least %.2f is wanted", best, least)
		})
	}
}
