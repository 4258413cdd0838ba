package mcpserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/cmd/gateway/internal/client"
	"github.com/compozy-gateway/gateway/core"
)

// answerJSON makes a server for a gateway that gives one answer to everything.
func answerJSON(t *testing.T, answer any) *Server {
	t.Helper()
	return against(t, client.Seat{Workspace: "demo", Channel: "general", Peer: "bob"}, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(answer)
	})
}

func sizeOf(t *testing.T, v any) int {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return len(raw)
}

func TestAListOfPeersHasABound(t *testing.T) {
	var known []core.PeerView
	for i := range maxList {
		card, err := json.Marshal(strings.Repeat(`"`, cardBytes))
		if err != nil {
			t.Fatal(err)
		}
		known = append(known, core.PeerView{Peer: fmt.Sprintf("peer-%d", i), Attached: []string{"general"}, Card: card})
	}
	shown, err := answerJSON(t, map[string]any{"peers": known}).listPeers(t.Context(), listArguments{Limit: maxList})
	if err != nil {
		t.Fatal(err)
	}
	if first, last := shown.Peers[0], shown.Peers[len(shown.Peers)-1]; len(shown.Peers) != maxList || shown.More || len(first.Card) != cardBytes || last.Card != "" || !last.Truncated {
		t.Errorf("%d are shown, more: %v, from %+v to %+v", len(shown.Peers), shown.More, first, last)
	}
	// The names of the members come on top.
	if size := sizeOf(t, shown); size < pageBytes/2 || size > pageBytes+100*maxList {
		t.Errorf("the answer has %d bytes", size)
	}

	for i := range known {
		for n := range 100 {
			known[i].Attached = append(known[i].Attached, fmt.Sprintf("%s-%d", strings.Repeat("c", 50), n))
		}
	}
	shown, err = answerJSON(t, map[string]any{"peers": known}).listPeers(t.Context(), listArguments{Limit: maxList})
	if size := sizeOf(t, shown); err != nil || !shown.More || len(shown.Peers) == 0 || size > pageBytes+100*maxList {
		t.Errorf("of peers in many channels %d are shown in %d bytes, more: %v, %v", len(shown.Peers), size, shown.More, err)
	}
}

func TestAnInspectionHasABound(t *testing.T) {
	long, at := strings.Repeat(`"`, 4<<10), time.Unix(1_700_000_000, 0).UTC()
	found := core.Inspection{Envelope: []byte(`{"id":"m1"}`)}
	for i := range maxList {
		found.Wakes = append(found.Wakes, core.WakeView{ID: fmt.Sprint(i), Detail: long, StartedAt: &at})
		found.Receipts = append(found.Receipts, core.ReceiptView{ID: fmt.Sprint(i), Detail: long})
		found.Deliveries = append(found.Deliveries, core.Delivery{ID: fmt.Sprint(i), LastError: long})
	}
	shown, err := answerJSON(t, found).inspect(t.Context(), inspectArguments{MessageID: "m1"})
	if err != nil {
		t.Fatal(err)
	}
	if size := sizeOf(t, shown); !shown.More || len(shown.Wakes) == 0 || size < pageBytes/2 || size > pageBytes+4<<10 {
		t.Errorf("it shows %d wakes, %d receipts and %d deliveries in %d bytes, more: %v", len(shown.Wakes), len(shown.Receipts), len(shown.Deliveries), size, shown.More)
	}
}

func TestWhatIsLongBesideTheContentCounts(t *testing.T) {
	long := strings.Repeat("x", pageBytes)
	for name, m := range map[string]message{
		"reply_to": {ReplyTo: long}, "causation_id": {CausationID: long}, "trace_id": {TraceID: long}, "mentions": {Mentions: []string{long, long}},
	} {
		if p := (page{}); !p.add(m) || p.add(message{Text: "y"}) {
			t.Errorf("a long %s does not fill an answer", name)
		}
	}
}
