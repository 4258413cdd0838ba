//go:build brokers

package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// inspection is what became of one message.
type inspection struct {
	Seq       *int64
	Carrier   string
	Arrival   string
	Parked    bool
	Decisions []struct{ Recipient, Decision, Reason string }
	// Deliveries have the carriers' acknowledgements, Receipts what peers said.
	Deliveries []struct {
		ID, Recipient, State, Reason string
		Attempts                     int
		Ack                          *struct{ Kind string }
	}
	Receipts []struct{ ID, From, Status string }
	Wakes    []struct {
		ID, Recipient, State string
		Attempts             int
	}
}

// decisions are the decisions by recipient: "deliver", or why not.
func (in inspection) decisions() map[string]string {
	out := map[string]string{}
	for _, d := range in.Decisions {
		out[d.Recipient] = d.Decision
		if d.Reason != "" {
			out[d.Recipient] = d.Reason
		}
	}
	return out
}

// acks are the carriers' acknowledgements by recipient, or the state of a
// delivery that has none.
func (in inspection) acks() map[string]string {
	out := map[string]string{}
	for _, d := range in.Deliveries {
		out[d.Recipient] = d.State
		if d.Ack != nil {
			out[d.Recipient] += " " + d.Ack.Kind
		}
	}
	return out
}

// receipts are the receipts, each as "status by peer".
func (in inspection) receipts() []string {
	out := []string{}
	for _, r := range in.Receipts {
		out = append(out, r.Status+" by "+r.From)
	}
	return out
}

// settled reports whether nothing is under way any more.
func (in inspection) settled() bool {
	for _, d := range in.Deliveries {
		if d.State == "pending" || d.State == "sending" {
			return false
		}
	}
	return true
}

// inspect looks at one message, which must be known.
func (g *gateway) inspect(t *testing.T, id string) inspection {
	t.Helper()
	in, ok := g.find(t, id)
	if !ok {
		t.Fatalf("message %s is not known", id)
	}
	return in
}

func (g *gateway) find(t *testing.T, id string) (inspection, bool) {
	t.Helper()
	var in inspection
	status := g.read(t, "/v0/workspaces/"+workspace+"/messages/"+url.PathEscape(id), &in)
	return in, status == http.StatusOK
}

// awaitSettled waits until no delivery of the message is under way.
func (g *gateway) awaitSettled(t *testing.T, within time.Duration, id string) inspection {
	t.Helper()
	var in inspection
	eventually(t, within, "the deliveries of "+id+" settle", func() bool {
		in = g.inspect(t, id)
		return in.settled()
	})
	return in
}

// read reads a JSON document.
func (g *gateway) read(t *testing.T, path string, into any) (status int) {
	t.Helper()
	status, body := g.get(path)
	if status != http.StatusOK {
		return status
	}
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatalf("GET %s gives no JSON: %v\n%.500s", path, err, body)
	}
	return status
}

// entry is a message of the history.
type entry struct {
	Seq      int64
	Carrier  string
	Envelope json.RawMessage
}

func (e entry) id() string { return arrival{payload: string(e.Envelope)}.id() }

// history reads the whole history of the channel, narrowed by a query.
func (g *gateway) history(t *testing.T, query string) []entry {
	t.Helper()
	var all []entry
	after := int64(0)
	for {
		var page struct {
			Messages []entry
			Next     *int64
		}
		path := fmt.Sprintf("/v0/workspaces/%s/channels/%s/messages?limit=1000&after=%d&%s", workspace, channel, after, query)
		if status := g.read(t, path, &page); status != http.StatusOK {
			t.Fatalf("GET %s gives %d", path, status)
		}
		all = append(all, page.Messages...)
		if page.Next == nil {
			return all
		}
		after = *page.Next
	}
}

// ofPeers are the ids of a history, in order, without the gateway's own receipts.
func ofPeers(history []entry) []string {
	out := []string{}
	for _, e := range history {
		if id := e.id(); !ofGateway(id) {
			out = append(out, id)
		}
	}
	return out
}

// ofGateway reports whether an id is one of the gateway's own receipts.
func ofGateway(id string) bool { return strings.HasPrefix(id, "receipt-") }

// workState is the state of a unit of work, empty when it is not known.
func (g *gateway) workState(t *testing.T, work string) string {
	t.Helper()
	var found struct{ State string }
	g.read(t, "/v0/workspaces/"+workspace+"/work/"+url.PathEscape(work), &found)
	return found.State
}

// carrier tells how a carrier stands, and why.
func (g *gateway) carrier(t *testing.T, name string) (state, why string) {
	t.Helper()
	var all struct {
		Carriers []struct{ Name, State, Why string }
	}
	if status := g.read(t, "/v0/carriers", &all); status != http.StatusOK {
		t.Fatalf("GET /v0/carriers gives %d", status)
	}
	for _, c := range all.Carriers {
		if c.Name == name {
			return c.State, c.Why
		}
	}
	t.Fatalf("there is no carrier %s", name)
	return "", ""
}

// counters are the values of one metric by the values of its labels, joined by
// a slash in the order of their names.
type counters map[string]int

var sampleLabel = regexp.MustCompile(`\w+="([^"]*)"`)

func (g *gateway) counters(t *testing.T, metric string) counters {
	t.Helper()
	status, body := g.get("/metrics")
	if status != http.StatusOK {
		t.Fatalf("GET /metrics gives %d", status)
	}
	out := counters{}
	for lines := bufio.NewScanner(strings.NewReader(string(body))); lines.Scan(); {
		sample, ok := strings.CutPrefix(lines.Text(), metric+"{")
		if !ok {
			continue
		}
		labels, value, _ := strings.Cut(sample, "} ")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("metric %s: %v", metric, err)
		}
		var key []string
		for _, label := range sampleLabel.FindAllStringSubmatch(labels, -1) {
			key = append(key, label[1])
		}
		out[strings.Join(key, "/")] = int(n)
	}
	return out
}

// since is what grew between two readings.
func (c counters) since(before counters) counters {
	grown := counters{}
	for key, n := range c {
		if n != before[key] {
			grown[key] = n - before[key]
		}
	}
	return grown
}

// run runs another command of the same binary against this gateway.
func (g *gateway) run(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	return output(t, 20*time.Second, nil, gatewayBinary, append(args, "--url", g.url(""))...)
}
