//go:build brokers

package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestEveryCarrierRefusesForTheSameReason sends the same bytes on each carrier
// and reads the verdict where that carrier tells it.
func TestEveryCarrierRefusesForTheSameReason(t *testing.T) {
	t.Parallel()
	puppet := newAgent(t, "puppet", "puppet.sh")
	g := newGateway(t, embeddedBrokers(t), puppet.config())
	g.start(t)
	client := connectNode(t, g.nats)

	own, ofBob := prepare("alice")
	g.postAll(t, append(own, ofBob...))
	own, ofBob = prepare(puppet.peer)
	for _, line := range own {
		puppet.says(t, line)
	}
	eventually(t, arriveWithin, "the agent's state is made", func() bool { return acksHeard(t, puppet) == len(own) })
	g.postAll(t, ofBob)
	before := ofPeers(g.history(t, ""))

	// What each sends, and how it tells the verdict.
	carriers := map[string]func(t *testing.T, r refusal){
		"http": func(t *testing.T, r refusal) {
			if a := g.tryPost(t, r.text("alice")); a.Status != r.status || a.ReasonCode != r.reason || a.contentType != "application/problem+json" {
				t.Errorf("http answers %+v", a)
			}
		},
		"agents": func(t *testing.T, r refusal) {
			heard := len(puppet.lines(t, "heard"))
			puppet.says(t, r.text(puppet.peer))
			var nack struct {
				Carrier struct {
					ReasonCode string `json:"reason_code"`
				}
			}
			eventually(t, arriveWithin, "the agent is answered", func() bool { return len(puppet.lines(t, "heard")) > heard })
			if line := puppet.lines(t, "heard")[heard]; json.Unmarshal([]byte(line), &nack) != nil || nack.Carrier.ReasonCode != r.reason {
				t.Errorf("the agent is told %s", line)
			}
		},
		"mqtt": func(t *testing.T, r refusal) { publish(t, g.mqtt, ingressTopic, r.text("alice")) },
		"nats": func(t *testing.T, r refusal) {
			client.store(t, ingressSubject, r.text("alice"))
			eventually(t, arriveWithin, "the message is done with", func() bool { return client.unacknowledged(t) == 0 })
		},
	}
	for _, r := range refusals() {
		t.Run(r.name, func(t *testing.T) {
			for carrier, send := range carriers {
				verdicts, refused := g.counters(t, "gateway_offers_total"), g.counters(t, "gateway_rejections_total")
				send(t, r)
				eventually(t, arriveWithin, carrier+" has a verdict", func() bool {
					return g.counters(t, "gateway_offers_total")[carrier+"/rejected"] > verdicts[carrier+"/rejected"]
				})
				grown := g.counters(t, "gateway_rejections_total").since(refused)
				if want := (counters{carrier + "/" + r.reason: 1}); !maps.Equal(grown, want) {
					t.Errorf("%s: the count of rejections grew by %v, want %v", carrier, grown, want)
				}
			}
		})
	}
	if after := ofPeers(g.history(t, "")); !slices.Equal(after, before) {
		t.Errorf("what was refused changed the history from %d to %d messages", len(before), len(after))
	}
}

// acksHeard is how many envelopes the agent was told are committed.
func acksHeard(t *testing.T, a *agent) int {
	t.Helper()
	n := 0
	for _, line := range a.lines(t, "heard") {
		if strings.HasPrefix(line, `{"carrier":{"ack":`) {
			n++
		}
	}
	return n
}

// TestBusesAnswerRefusedWorkByAReceipt wants the receipt on the bus on which the
// refused message came, and on no other.
func TestBusesAnswerRefusedWorkByAReceipt(t *testing.T) {
	sites(t, func(t *testing.T, at brokers) {
		g := newGateway(t, at)
		g.start(t)
		client := connectNode(t, g.nats)
		client.subscribe(t, subjectPrefix+"peer.*")
		device := subscribe(t, g.mqtt, "", topicPrefix+"peer/+")
		for _, bus := range []struct {
			peer        string
			send        func(t *testing.T, text string)
			here, there *arrivals
		}{
			{"nina", func(t *testing.T, text string) { client.store(t, ingressSubject, text) }, &client.arrivals, &device.arrivals},
			{"mike", func(t *testing.T, text string) { publish(t, g.mqtt, ingressTopic, text) }, &device.arrivals, &client.arrivals},
		} {
			own, ofBob := prepare(bus.peer)
			g.postAll(t, append(own, ofBob...))
			for _, want := range []struct {
				status, reason string
				refused        message
			}{
				{"expired", "expired", func() message {
					m := opener("late-"+bus.peer, bus.peer, "bob", "w-late")
					m.ts = time.Now().Unix() - 1000
					return m
				}()},
				{"rejected", "work_closed", opener("closed-again-"+bus.peer, bus.peer, "bob", "closed-"+bus.peer)},
				{"rejected", "verification_failed", message{
					id: "digest-" + bus.peer, kind: "capability", from: bus.peer, to: "bob", work: "w-digest",
					body: `{"capability":{"id":"c","summary":"s","outcome":"o","digest":"sha256:0"}}`,
				}},
				{"duplicate", "duplicate", opener("bound-open-"+bus.peer, bus.peer, "bob", "bound-"+bus.peer)},
			} {
				bus.send(t, want.refused.String())
				checkReceipt(t, bus.here, want.refused, want.status, want.reason)
				if slices.ContainsFunc(bus.there.all(), func(a arrival) bool { return ofGateway(a.id()) && strings.Contains(a.payload, want.refused.id) }) {
					t.Errorf("the receipt for %s came on the other bus too", want.refused.id)
				}
			}
		}
	})
}

// checkReceipt waits for the gateway's receipt about a refused message.
func checkReceipt(t *testing.T, at *arrivals, refused message, status, reason string) {
	t.Helper()
	var found struct {
		Kind, From, To, Surface string
		ThreadID                string `json:"thread_id"`
		WorkID                  string `json:"work_id"`
		ReplyTo                 string `json:"reply_to"`
		CausationID             string `json:"causation_id"`
		Body                    struct {
			ForID      string `json:"for_id"`
			Status     string
			ReasonCode string `json:"reason_code"`
		}
	}
	eventually(t, arriveWithin, "a receipt comes for "+refused.id, func() bool {
		return slices.ContainsFunc(at.all(), func(a arrival) bool {
			return ofGateway(a.id()) && json.Unmarshal([]byte(a.payload), &found) == nil && found.Body.ForID == refused.id
		})
	})
	want := found
	want.Kind, want.From, want.To, want.Surface, want.ThreadID = "receipt", "gateway.local", refused.from, "thread", thread
	want.WorkID, want.ReplyTo, want.CausationID = refused.work, refused.id, refused.id
	want.Body.Status, want.Body.ReasonCode = status, reason
	if found != want {
		t.Errorf("the receipt for %s is\n%+v\nwant\n%+v", refused.id, found, want)
	}
}

// TestWhatWaitsForItsWorkTooLongIsGone parks a trace until it expires.
func TestWhatWaitsForItsWorkTooLongIsGone(t *testing.T) {
	t.Parallel()
	g := newGateway(t, embeddedBrokers(t))
	g.start(t)
	early := trace("early", "worker", "coordinator", "w-late", "working")
	early.more = fmt.Sprintf(`"expires_at":%d`, time.Now().Unix()+3)
	if a := g.post(t, early.String()); !a.Parked || a.Seq != nil {
		t.Fatalf("POST gives %+v, want it parked", a)
	}
	var in inspection
	path := "/v0/workspaces/" + workspace + "/messages/early?peer=worker"
	if status := g.read(t, path, &in); status != 200 || !in.Parked {
		t.Errorf("its sender finds it with %d: %+v", status, in)
	}
	eventually(t, arriveWithin, "it is given up", func() bool { return g.read(t, path, &in) == 404 })
	g.post(t, opener("open", "coordinator", "worker", "w-late").String())
	if got := ofPeers(g.history(t, "work_id=w-late")); !slices.Equal(got, []string{"open"}) {
		t.Errorf("accepted %v, want the opener alone", got)
	}
}
