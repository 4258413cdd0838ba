package core_test

import (
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

func TestAFrameThatIsTooLargeIsHandedOverAsItsHead(t *testing.T) {
	const limit = 8 << 10
	x := func(n int) string { return strings.Repeat("x", n) }
	tests := []struct {
		name, payload string
		limit         int
		kept          int
		size          int64
	}{
		{"small", x(10), limit, 10, 0},
		{"at the limit", x(limit), limit, limit, 0},
		{"at the limit, with white space around it", " \r\n" + x(limit) + "\n", limit, limit + 4, 0},
		{"over the limit", x(limit + 1), limit, 4 << 10, limit + 1},
		{"over the limit, with white space around it", "\t" + x(limit+1) + "\n", limit, 4 << 10, limit + 1},
		{"a limit below a head", x(200), 100, 100, 200},
		{"no limit", x(limit + 1), 0, limit + 1, 0},
		{"white space alone", strings.Repeat(" ", limit+1), limit, limit + 1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := core.Inbound{Payload: []byte(tt.payload), BadAddress: "kept"}
			got := in.Bounded(tt.limit)
			if len(got.Payload) != tt.kept || got.Size != tt.size || got.BadAddress != "kept" {
				t.Errorf("%d bytes are kept, the size is %d, want %d and %d", len(got.Payload), got.Size, tt.kept, tt.size)
			}
			if tt.size > 0 && cap(got.Payload) >= len(tt.payload) {
				t.Error("the head holds the whole frame in memory")
			}
		})
	}
}
