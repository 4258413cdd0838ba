//go:build !race

package core_test

import "testing"

// The race detector makes pools forget at random, so it is not counted there.
func TestASayIsCheckedInFewAllocations(t *testing.T) {
	raw := sayOf(600)
	if len(raw) != 600 {
		t.Fatalf("the sample has %d bytes", len(raw))
	}
	if got := testing.AllocsPerRun(200, func() { parseShapeBody(t, raw) }); got > 8 {
		t.Errorf("%g allocations", got)
	}
}
