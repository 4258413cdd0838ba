//go:build brokers

package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// lifecycle is one unit of work that a coordinator opens and a worker ends. The
// suffix of their names tells peers of different carriers apart.
type lifecycle struct {
	work string
	// messages are the opener, the accepted receipt, and the traces working and
	// completed.
	messages [4]message
}

const (
	opening = iota
	accepting
	starting
	completing
)

func newLifecycle(work, suffix string) lifecycle {
	coordinator, worker := "coordinator"+suffix, "worker"+suffix
	id := func(step string) string { return work + "-" + step }
	return lifecycle{work: work, messages: [4]message{
		opener(id("open"), coordinator, worker, work),
		receipt(id("accept"), worker, coordinator, work, id("open"), "accepted"),
		trace(id("start"), worker, coordinator, work, "working"),
		trace(id("complete"), worker, coordinator, work, "completed"),
	}}
}

// outcome is which messages are accepted, in their order, when they arrive in the
// given one: the opener lets in what came before it, and nothing follows the
// terminal message.
func (l lifecycle) outcome(order []int) []string {
	effective := append([]int{opening}, slices.DeleteFunc(slices.Clone(order), func(m int) bool { return m == opening })...)
	var accepted []string
	for _, m := range effective {
		accepted = append(accepted, l.messages[m].id)
		if m == completing {
			break
		}
	}
	return accepted
}

// permutations are all orders of the four messages.
func permutations() [][]int {
	var all [][]int
	var extend func(begun []int)
	extend = func(begun []int) {
		if len(begun) == 4 {
			all = append(all, slices.Clone(begun))
			return
		}
		for m := range 4 {
			if !slices.Contains(begun, m) {
				extend(append(begun, m))
			}
		}
	}
	extend(nil)
	return all
}

// repeats are the ways in which every message comes twice.
var repeats = map[string]func(order []int) []int{
	"at once": func(order []int) []int {
		var out []int
		for _, m := range order {
			out = append(out, m, m)
		}
		return out
	},
	"later": func(order []int) []int { return append(slices.Clone(order), order...) },
}

// TestEveryOrderOfArrivalEndsInTheSameState sends the messages of a work in all
// orders, each of them twice, on each carrier that keeps the order.
func TestEveryOrderOfArrivalEndsInTheSameState(t *testing.T) {
	sites(t, func(t *testing.T, at brokers) {
		g := newGateway(t, at)
		g.start(t)
		client := connectNode(t, g.nats)
		client.subscribe(t, subjectPrefix+"peer.*")
		device := subscribe(t, g.mqtt, "", topicPrefix+"peer/+")

		ways := map[string]func(lines []string){
			"http": func(lines []string) {
				if got := g.postLines(t, lines); len(got) != len(lines) {
					t.Fatalf("%d answers to %d lines", len(got), len(lines))
				}
			},
			"mqtt": func(lines []string) { publishLines(t, g.mqtt, ingressTopic, lines) },
			"nats": func(lines []string) {
				for _, line := range lines {
					client.store(t, ingressSubject, line)
				}
			},
		}
		type run struct {
			lifecycle
			order []int
		}
		var runs []run
		sent := 0
		before := g.counters(t, "gateway_offers_total")
		for way, send := range ways {
			var lines []string
			for when, repeat := range repeats {
				for n, order := range permutations() {
					r := run{newLifecycle(fmt.Sprintf("w-%s-%s-%d", way, strings.ReplaceAll(when, " ", "-"), n), "-"+way), order}
					runs = append(runs, r)
					for _, m := range repeat(order) {
						lines = append(lines, r.messages[m].String())
					}
				}
			}
			sent += len(lines)
			send(lines)
		}
		eventually(t, 30*time.Second, "everything is settled", func() bool {
			settled := 0
			for key, n := range g.counters(t, "gateway_offers_total").since(before) {
				if !strings.HasSuffix(key, "/echo") {
					settled += n
				}
			}
			return settled >= sent
		})
		var accepted []string
		for _, r := range runs {
			want := r.outcome(r.order)
			accepted = append(accepted, want...)
			if state := g.workState(t, r.work); state != "completed" {
				t.Errorf("%s in the order %v ends %q", r.work, r.order, state)
			}
			if got := ofPeers(g.history(t, "work_id="+r.work)); !slices.Equal(got, want) {
				t.Errorf("%s in the order %v: accepted %v, want %v", r.work, r.order, got, want)
			}
			for _, m := range r.messages {
				if _, known := g.find(t, m.id); known != slices.Contains(want, m.id) {
					t.Errorf("%s in the order %v: message %s known %v", r.work, r.order, m.id, known)
				}
			}
		}
		checkDelivered(t, g, accepted, map[string]*arrivals{"carrier:nats": &client.arrivals, "carrier:mqtt": &device.arrivals})
	})
}

// checkDelivered wants every message exactly once behind every link that it was
// delivered to, and nothing else there but the gateway's own receipts.
func checkDelivered(t *testing.T, g *gateway, accepted []string, behind map[string]*arrivals) {
	t.Helper()
	due := map[string][]string{}
	for _, id := range accepted {
		acks := g.awaitSettled(t, arriveWithin, id).acks()
		if len(acks) == 0 {
			t.Errorf("%s was accepted and delivered to nobody", id)
		}
		for link, ack := range acks {
			if !strings.HasPrefix(ack, "acked ") {
				t.Errorf("the delivery of %s to %s ends as %s", id, link, ack)
			}
			due[link] = append(due[link], id)
		}
	}
	for link, got := range behind {
		got.awaitIDs(t, arriveWithin, "the client behind "+link, due[link]...)
		for id, n := range got.count() {
			if !ofGateway(id) && !slices.Contains(due[link], id) {
				t.Errorf("%s came from %s without a delivery", id, link)
			}
			if n != 1 {
				t.Errorf("%s came %d times from %s", id, n, link)
			}
		}
	}
}

// TestWhatFollowsTheTerminalMessageIsRefused names the refusal, on the answers.
func TestWhatFollowsTheTerminalMessageIsRefused(t *testing.T) {
	t.Parallel()
	g := newGateway(t, embeddedBrokers(t))
	g.start(t)
	l := newLifecycle("w-closed", "")
	for _, m := range []int{opening, completing} {
		g.post(t, l.messages[m].String())
	}
	for _, m := range []int{accepting, starting} {
		if a := g.tryPost(t, l.messages[m].String()); a.Status != 409 || a.ReasonCode != "work_closed" {
			t.Errorf("after the terminal message: %+v", a)
		}
	}
	for _, m := range []int{opening, completing} {
		if a := g.tryPost(t, l.messages[m].String()); a.Status != 200 || !a.Duplicate {
			t.Errorf("a repeat of what was accepted: %+v", a)
		}
	}
	if got, want := ofPeers(g.history(t, "work_id=w-closed")), []string{"w-closed-open", "w-closed-complete"}; !slices.Equal(got, want) {
		t.Errorf("accepted %v, want %v", got, want)
	}
}

// TestAConversationSurvivesKills kills the gateway between the messages, sends
// every message twice, and wants what an undisturbed conversation gives.
func TestAConversationSurvivesKills(t *testing.T) {
	sites(t, func(t *testing.T, at brokers) {
		g := newGateway(t, at)
		g.start(t)
		for n, order := range [][]int{
			{opening, accepting, starting, completing},
			{completing, opening, accepting, starting},
			{starting, accepting, completing, opening},
		} {
			l := newLifecycle(fmt.Sprintf("w-%d", n), "")
			for step, m := range order {
				text := l.messages[m].String()
				first := g.tryPost(t, text)
				if step%2 == 0 {
					g.restart(t)
				}
				again := g.tryPost(t, text)
				if again.taken() != first.taken() || again.Duplicate != again.taken() {
					t.Errorf("%s: %+v before the kill, %+v after it", l.messages[m].id, first, again)
				}
				if first.Seq != nil && (again.Seq == nil || *again.Seq != *first.Seq) {
					t.Errorf("%s: seq %d before the kill, %+v after it", l.messages[m].id, *first.Seq, again)
				}
			}
			want := l.outcome(order)
			if got := ofPeers(g.history(t, "work_id="+l.work)); !slices.Equal(got, want) {
				t.Errorf("order %v: accepted %v, want %v", order, got, want)
			}
			if state := g.workState(t, l.work); state != "completed" {
				t.Errorf("order %v: the work is %q", order, state)
			}
			// The embedded server goes down with the gateway, so only its stream is
			// asked, where nothing is lost.
			client := connectNode(t, g.nats)
			client.replay(t)
			client.awaitIDs(t, 20*time.Second, "the NATS client", want...)
		}
	})
}
