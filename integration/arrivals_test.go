//go:build brokers

package integration

import (
	"encoding/json"
	"io"
	"slices"
	"sync"
	"testing"
	"time"
)

// arrival is one message as a client received it.
type arrival struct {
	// address is the subject, the topic, or the position in a stream.
	address string
	payload string
}

// id is the envelope's id, empty where there is none.
func (a arrival) id() string {
	var e struct{ ID string }
	_ = json.Unmarshal([]byte(a.payload), &e) // what has no id has none
	return e.ID
}

// arrivals collects what a client receives.
type arrivals struct {
	mu   sync.Mutex
	list []arrival
}

func (a *arrivals) add(address string, payload []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, arrival{address, string(payload)})
}

func (a *arrivals) all() []arrival {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.list)
}

// payloads are the payloads in the order of arrival.
func (a *arrivals) payloads() []string {
	var out []string
	for _, got := range a.all() {
		out = append(out, got.payload)
	}
	return out
}

// count is how often each id came.
func (a *arrivals) count() map[string]int {
	out := map[string]int{}
	for _, got := range a.all() {
		out[got.id()]++
	}
	return out
}

// await waits until every one of the payloads has arrived, byte for byte.
func (a *arrivals) await(t *testing.T, within time.Duration, who string, payloads ...string) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		got := a.payloads()
		missing := slices.DeleteFunc(slices.Clone(payloads), func(p string) bool { return slices.Contains(got, p) })
		if len(missing) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s did not get within %v\n%q\nbut got\n%q", who, within, missing, got)
		}
		pause(20 * time.Millisecond)
	}
}

// awaitIDs waits until every one of the ids has arrived.
func (a *arrivals) awaitIDs(t *testing.T, within time.Duration, who string, ids ...string) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		got := a.count()
		missing := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return got[id] > 0 })
		if len(missing) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s did not get within %v: %d of %d ids, such as %q", who, within, len(missing), len(ids), missing[:min(5, len(missing))])
		}
		pause(50 * time.Millisecond)
	}
}

// mostRead bounds what a test reads of one answer.
const mostRead = 64 << 20

func readAll(r io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(r, mostRead)) }
