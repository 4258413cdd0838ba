package gateway

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

// world is a decider over a state in memory: what the store would load stays in
// it from one offer to the next.
type world struct {
	t      *testing.T
	now    time.Time
	state  *store.State
	dir    *directory
	parked *parkedCounts
	policy policy
	seq    int64
	// changes are those of the last offer.
	changes *store.Changes
	located []location
	waiting []waiting
	nats    *origin
	mqtt    *origin
	http    *origin
	ids     int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, now: time.Unix(1_800_000_000, 0),
		state: &store.State{
			Keys: map[store.Key]*store.Known{}, Works: map[store.WorkKey]*store.Work{},
			Containers: map[store.ContainerKey]*store.Container{}, Members: map[store.Member]bool{},
			Peers: map[store.PeerKey]*store.Peer{}, Parked: map[store.WorkKey][]*store.Parked{},
			Owners: map[int64]*store.Owner{}, Causes: map[store.Key][]*store.Run{}, Runs: map[int64]*store.Run{},
		},
		dir: newDirectory(), parked: newParkedCounts(),
		policy: policy{
			freshness:      core.FreshnessPolicy{MaxReplayAge: 5 * time.Minute, MaxLifetime: 720 * time.Hour},
			maxDeliveryAge: 24 * time.Hour, peerID: "gateway.test", receipts: true, maxParked: 5, maxParkedFrom: 3, enabled: true,
		},
	}
	w.nats = w.addLink("nats", 1)
	w.mqtt = w.addLink("mqtt", 2)
	w.dir.put(store.RecipientRow{ID: 3, Recipient: core.Recipient{Carrier: "http"}}, nil)
	w.http = &origin{name: "http", row: 3}
	return w
}

func (w *world) addLink(name string, id int64) *origin {
	r := w.dir.put(store.RecipientRow{ID: id, Recipient: core.Recipient{Carrier: name}}, nil)
	w.dir.addLink(r, nil, core.Scope{})
	return &origin{name: name, row: id, link: true}
}

func (w *world) attach(id int64, peer string) {
	w.dir.put(store.RecipientRow{ID: id, Attached: true, Recipient: core.Recipient{
		Carrier: "http", WorkspaceID: "ws", Channel: "ops", Peer: peer,
	}}, nil)
}

// fields are an envelope's members.
type fields map[string]any

func (w *world) envelope(kind, from string, more ...fields) fields {
	w.ids++
	f := fields{
		"protocol": core.Protocol, "id": fmt.Sprintf("m-%d", w.ids), "workspace_id": "ws", "channel": "ops",
		"kind": kind, "from": from, "ts": w.now.Unix(),
	}
	for _, m := range more {
		maps.Copy(f, m)
	}
	return f
}

func (w *world) say(from string, more ...fields) fields {
	return w.envelope("say", from, append([]fields{inThread("thread_one"), {"body": fields{"text": "hello"}}}, more...)...)
}

func (w *world) receipt(from, to, work, status string) fields {
	body := fields{"for_id": "m-1", "status": status}
	switch status {
	case "rejected", "duplicate", "expired", "unsupported":
		body["reason_code"] = "busy"
	}
	return w.envelope("receipt", from, inThread("thread_one"), fields{"to": to, "work_id": work, "body": body})
}

func (w *world) trace(from, to, work, state string) fields {
	return w.envelope("trace", from, inThread("thread_one"), fields{"to": to, "work_id": work, "body": fields{"state": state}})
}

func inThread(id string) fields { return fields{"surface": "thread", "thread_id": id} }

func inRoom(id string) fields { return fields{"surface": "direct", "direct_id": id} }

const (
	roomOne = "direct_0123456789abcdef0123456789abcdef"
	roomTwo = "direct_fedcba9876543210fedcba9876543210"
)

// arrive offers the envelope through a carrier, natively where it is a bus.
func (w *world) arrive(from *origin, f fields, change ...func(*offer)) core.Settlement {
	w.t.Helper()
	return w.arriveRaw(from, encode(w.t, f), change...)
}

func (w *world) arriveRaw(from *origin, raw []byte, change ...func(*offer)) core.Settlement {
	w.t.Helper()
	o := &offer{origin: from, size: int64(len(raw)), fromAllowed: true, receiptAllowed: func() bool { return true }}
	o.in.Payload = raw
	if from.link {
		o.in.Arrival = core.ArrivalNative
	}
	o.env, o.refusal = core.Parse(raw)
	if o.refusal == nil {
		o.refusal = o.env.Validate(w.now, w.policy.freshness, nil)
	}
	for _, c := range change {
		c(o)
	}
	d := newDecider(w.policy, w.now, w.state, w.dir, w.seq, w.parked)
	d.origins = func(name string) *origin {
		return map[string]*origin{"nats": w.nats, "mqtt": w.mqtt, "http": w.http}[name]
	}
	s := d.settle(o)
	d.acceptReceipts()
	w.changes = d.finish()
	w.seq, w.located, w.waiting = d.lastSeq, d.located, d.waiting
	w.parked.merge(d.parkedDelta)
	for i, p := range w.changes.Parked {
		p.ID = w.seq*1000 + int64(i) + 1
	}
	return s
}

func encode(t *testing.T, f fields) []byte {
	t.Helper()
	raw, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func (w *world) accepted(s core.Settlement) {
	w.t.Helper()
	if s.Verdict != core.VerdictCommitted || s.Duplicate || s.Echo || s.Parked {
		w.t.Fatalf("settled %+v (%v), want a fresh acceptance", s, s.Rejection)
	}
}

func (w *world) refused(s core.Settlement, reason core.Reason) {
	w.t.Helper()
	if s.Verdict != core.VerdictRejected || s.Rejection == nil || s.Rejection.Reason != reason {
		w.t.Fatalf("settled %+v (%v), want rejected %s", s, s.Rejection, reason)
	}
	if len(w.changes.Rejections) != 1 {
		w.t.Fatalf("%d rejection rows, want 1", len(w.changes.Rejections))
	}
}

// decisions tells what the last accepted message's recipients get.
func (w *world) decisions() map[string]string {
	got := map[string]string{}
	m := w.changes.Messages[0]
	for _, i := range m.Ignored {
		got[w.dir.byID[i.Recipient].String()] = string(i.Reason)
	}
	for i, d := range w.changes.Deliveries {
		if d.ID.Seq != m.Seq {
			continue
		}
		to := "broadcast"
		if d.To != "" {
			to = "to " + d.To
		}
		name := "absent"
		for _, wait := range w.waiting {
			if wait.delivery == i {
				name = "waiting " + wait.recipient.String()
			}
		}
		if r := w.dir.byID[d.ID.Recipient]; r != nil {
			name = r.String()
		}
		got[name] = to
	}
	return got
}
