package integration

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

// matrixDriver sends frames to one gateway in one way, and tells what became of
// them in its carrier's own manner.
type matrixDriver interface {
	// deliver sends frames, all before the outcome of any is known, and gives the
	// outcomes: in their order if ordered is true, else in any.
	deliver(t *testing.T, frames []matrixFrame) (outcomes []string, ordered bool)
	// framed is the payload as it reaches the gateway.
	framed(payload string) string
	// finish checks what must hold once every case is through.
	finish(t *testing.T, sent []matrixSent)
}

// matrixSent is a frame with the outcome that it must have on the way it went.
type matrixSent struct {
	matrixFrame
	outcome matrixOutcome
}

// TestEveryCarrierGivesTheSameVerdict sends the same envelopes over every
// carrier, each to a gateway of its own, and wants the same verdict and reason.
func TestEveryCarrierGivesTheSameVerdict(t *testing.T) {
	cases := matrixCases()
	for _, way := range matrixWays() {
		t.Run(string(way), func(t *testing.T) {
			t.Parallel()
			g := newMatrixGateway(t, way, cases)
			driver := g.driver(t)
			var sent []matrixSent
			for number, c := range cases {
				t.Run(c.name, func(t *testing.T) {
					sent = append(sent, matrixRun(t, g, driver, number, c)...)
				})
			}
			driver.finish(t, sent)
		})
	}
}

// matrixRun runs one case.
func matrixRun(t *testing.T, g *matrixGatewayProcess, driver matrixDriver, number int, c matrixCase) []matrixSent {
	w := newMatrixWorld(number)
	frames := c.frames(w)
	groups := [][]matrixFrame{frames}
	if !c.together && g.way != matrixNDJSON {
		groups = slices.Collect(slices.Chunk(frames, 1))
	}
	var sent []matrixSent
	for _, group := range groups {
		var want []string
		for _, f := range group {
			outcome := f.outcome(g.way)
			want = append(want, outcome.String())
			sent = append(sent, matrixSent{f, outcome})
		}
		got, ordered := driver.deliver(t, group)
		if !ordered {
			want = slices.Clone(want)
			slices.Sort(want)
			slices.Sort(got)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("the outcome of %s\nis   %s\nwant %s", matrixShown(group), strings.Join(got, ", "), strings.Join(want, ", "))
		}
	}
	matrixCheckStored(t, g, driver, sent)
	if c.state != "" {
		if state := g.workState(t, w); state != c.state {
			t.Errorf("the work is %q, want %q", state, c.state)
		}
	}
	return sent
}

// matrixShown is the last frame, cut to a readable length.
func matrixShown(frames []matrixFrame) string {
	const most = 600
	last := frames[len(frames)-1].payload
	return last[:min(len(last), most)]
}

// matrixCheckStored wants every committed message in the history, with its own
// bytes, and nothing there of what was refused. What was parked may have gone
// either way since.
func matrixCheckStored(t *testing.T, g *matrixGatewayProcess, driver matrixDriver, sent []matrixSent) {
	t.Helper()
	first := map[[2]string]matrixSent{}
	for _, s := range sent {
		var name struct {
			ID          string `json:"id"`
			WorkspaceID string `json:"workspace_id"`
		}
		if json.Unmarshal([]byte(s.payload), &name) != nil || name.ID == "" || !core.ValidWorkspaceID(name.WorkspaceID) {
			continue
		}
		key := [2]string{name.WorkspaceID, name.ID}
		if before, ok := first[key]; !ok || before.outcome.verdict == "rejected" {
			first[key] = s
		}
	}
	for key, s := range first {
		stored := g.message(t, key[0], key[1], s.sender)
		envelope := `"envelope":` + strings.Trim(driver.framed(s.payload), " \t\r\n") + `,`
		switch s.outcome.verdict {
		case "committed":
			if !strings.Contains(stored, envelope) {
				t.Errorf("the history does not hold the bytes of %s, but %.300s", key[1], stored)
			}
		case "rejected":
			if stored != "" {
				t.Errorf("the history holds %s, which was refused: %.300s", key[1], stored)
			}
		}
	}
}
