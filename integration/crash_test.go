//go:build brokers

package integration

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// The storm: how many envelopes go in on each of two carriers while the gateway
// is killed how often.
const (
	stormEnvelopes = 500
	stormKills     = 10
	stormBatch     = 20
	stormDevices   = 3
)

// TestKillsLoseAndRepeatNothing sends with the retries of clients that must be
// sure, and kills the gateway at random meanwhile.
func TestKillsLoseAndRepeatNothing(t *testing.T) {
	sites(t, func(t *testing.T, at brokers) {
		g := newGateway(t, at)
		g.start(t)
		// What the embedded broker has for a device does not survive it.
		if at.mqtt != nil {
			openSession(t, g.mqtt, "device", broadcastTopic)
		}
		s := newStorm(g)
		s.rage(t)
		g.awaitReady(t, readyWithin)
		s.check(t)
		ids := s.ids()
		if at.mqtt != nil {
			device := subscribe(t, g.mqtt, "device", broadcastTopic)
			device.awaitIDs(t, backWithin, "the device", ids...)
		}
		client := connectNode(t, g.nats)
		client.replay(t)
		client.awaitIDs(t, backWithin, "the NATS client", ids...)
	})
}

// storm drives all its clients from one goroutine: each client is a process that
// is looked at now and then.
type storm struct {
	g *gateway
	// posts and publishes are the lines that no client was told are taken, by id.
	posts, publishes *backlog
	// answers are those of HTTP that say that an envelope is taken.
	answers []answer
}

func newStorm(g *gateway) *storm {
	s := &storm{g: g, posts: &backlog{}, publishes: &backlog{}}
	for n := range stormEnvelopes {
		s.posts.add(say(fmt.Sprintf("post-%d", n), "poster", "in the storm"))
		s.publishes.add(say(fmt.Sprintf("publish-%d", n), "device", "in the storm"))
	}
	return s
}

// ids are the ids of all envelopes.
func (s *storm) ids() []string { return append(append([]string{}, s.posts.all...), s.publishes.all...) }

// rage sends and kills until all is acknowledged and all kills are done.
func (s *storm) rage(t *testing.T) {
	t.Helper()
	var request *post
	devices := make([]*publication, stormDevices)
	kills := 0
	killAt := time.Now().Add(time.Second)
	deadline := time.Now().Add(2 * time.Minute)
	for kills < stormKills || s.posts.left()+s.publishes.left() > 0 {
		if time.Now().After(deadline) {
			t.Fatalf("after %d kills %d posts and %d publishes are not acknowledged", kills, s.posts.left(), s.publishes.left())
		}
		request = s.drivePosts(t, request)
		for i := range devices {
			devices[i] = s.drivePublishes(t, devices[i])
		}
		if kills < stormKills && time.Now().After(killAt) {
			kills++
			s.g.crash()
			s.g.relaunch(t)
			killAt = time.Now().Add(300*time.Millisecond + rand.N(700*time.Millisecond))
		}
		pause(2 * time.Millisecond)
	}
}

// post is one request of many envelopes.
type post struct {
	batch
	lines []stormLine
}

func (s *storm) drivePosts(t *testing.T, p *post) *post {
	t.Helper()
	if p != nil {
		if !p.process.ended() {
			return p
		}
		answers := p.answers(t)
		for i, line := range p.lines {
			acknowledged := i < len(answers) && answers[i].taken()
			if acknowledged {
				s.answers = append(s.answers, answers[i])
			}
			s.posts.settle(line, acknowledged)
		}
	}
	lines := s.posts.take(stormBatch)
	if len(lines) == 0 {
		return nil
	}
	var texts []string
	for _, l := range lines {
		texts = append(texts, l.text)
	}
	return &post{batch: s.g.postingLines(t, texts), lines: lines}
}

// publication is one message from a device.
type publication struct {
	process *program
	line    stormLine
}

func (s *storm) drivePublishes(t *testing.T, p *publication) *publication {
	t.Helper()
	if p != nil {
		if !p.process.ended() {
			return p
		}
		s.publishes.settle(p.line, p.process.cmd.ProcessState.ExitCode() == 0)
	}
	lines := s.publishes.take(1)
	if len(lines) == 0 {
		return nil
	}
	return &publication{process: publishing(t, s.g.mqtt, ingressTopic, []byte(lines[0].text)), line: lines[0]}
}

// check compares what the senders were told with what is stored.
func (s *storm) check(t *testing.T) {
	t.Helper()
	seqs := map[string]int64{}
	for deadline := time.Now().Add(backWithin); len(seqs) < len(s.ids()) && time.Now().Before(deadline); pause(100 * time.Millisecond) {
		clear(seqs)
		for _, e := range s.g.history(t, "") {
			if seqs[e.id()] != 0 {
				t.Fatalf("%s stands in the history twice", e.id())
			}
			seqs[e.id()] = e.Seq
		}
	}
	for _, id := range s.ids() {
		if seqs[id] == 0 {
			t.Errorf("%s was acknowledged and is not in the history", id)
		}
	}
	for _, a := range s.answers {
		if a.Seq == nil || *a.Seq != seqs[a.ID] {
			t.Errorf("%s was answered by %+v and has the seq %d", a.ID, a, seqs[a.ID])
		}
	}
	eventually(t, backWithin, "every delivery is made", func() bool {
		for _, n := range s.g.counters(t, "gateway_pending_deliveries") {
			if n != 0 {
				return false
			}
		}
		return true
	})
}

// stormLine is one envelope to be sent.
type stormLine struct{ id, text string }

// backlog is what a kind of client still has to send.
type backlog struct {
	all     []string
	waiting []stormLine
	// out is how many are with a client.
	out int
}

func (b *backlog) add(m message) {
	b.all = append(b.all, m.id)
	b.waiting = append(b.waiting, stormLine{m.id, m.String()})
}

func (b *backlog) take(n int) []stormLine {
	n = min(n, len(b.waiting))
	taken := b.waiting[:n:n]
	b.waiting = b.waiting[n:]
	b.out += n
	return taken
}

// settle ends what take began: one that nobody acknowledged is sent again.
func (b *backlog) settle(l stormLine, acknowledged bool) {
	b.out--
	if !acknowledged {
		b.waiting = append(b.waiting, l)
	}
}

func (b *backlog) left() int { return len(b.waiting) + b.out }

// TestWhatBrokersHoldWhileTheGatewayIsDownIsTaken lets a conversation go on
// between two brokers whose gateway is not there, with every message sent twice.
func TestWhatBrokersHoldWhileTheGatewayIsDownIsTaken(t *testing.T) {
	t.Parallel()
	at := foreignBrokers(t)
	g := newGateway(t, at)
	g.start(t)
	client := connectNode(t, g.nats)
	client.subscribe(t, peerSubject("coordinator"))
	device := subscribe(t, g.mqtt, "", peerTopic("worker"))

	l := newLifecycle("w-down", "")
	for i := range l.messages {
		l.messages[i].more = unusual
	}
	g.crash()
	question := l.messages[opening].String()
	var answers []string
	for range 2 {
		client.store(t, peerSubject("worker"), question)
	}
	for _, m := range []int{accepting, starting, completing} {
		answers = append(answers, l.messages[m].String())
		for range 2 {
			publish(t, g.mqtt, peerTopic("coordinator"), answers[len(answers)-1])
		}
	}
	g.relaunch(t)
	device.await(t, readyWithin, "the worker", question)
	client.await(t, readyWithin, "the coordinator", answers...)
	if state := g.workState(t, l.work); state != "completed" {
		t.Errorf("the work is %q", state)
	}
	if got, want := ofPeers(g.history(t, "work_id="+l.work)), l.outcome([]int{opening, accepting, starting, completing}); !slices.Equal(got, want) {
		t.Errorf("accepted %v, want %v", got, want)
	}
	for id, n := range client.count() {
		if n != 1 && !ofGateway(id) {
			t.Errorf("the coordinator got %s %d times", id, n)
		}
	}
}

// TestAWakeThatAKillInterruptsRunsOnceMore kills the gateway while an agent is
// awake and has said nothing yet.
func TestAWakeThatAKillInterruptsRunsOnceMore(t *testing.T) {
	t.Parallel()
	puppet := newAgent(t, "puppet", "puppet.sh")
	g := newGateway(t, embeddedBrokers(t), puppet.config())
	g.start(t)
	question := say("wake-up", "caller", "are you there?")
	question.to = puppet.peer
	g.post(t, question.String())
	puppet.hears(t, arriveWithin, `"id":"wake-up"`)
	g.restart(t)
	eventually(t, arriveWithin, "the agent is woken again", func() bool {
		return strings.Count(strings.Join(puppet.lines(t, "heard"), "\n"), `"id":"wake-up"`) == 2
	})
	wake := g.inspect(t, "wake-up").Wakes[0].ID
	puppet.says(t, fmt.Sprintf(`{"carrier":{"done":%q}}`, wake))
	eventually(t, arriveWithin, "the wake is over", func() bool { return g.inspect(t, "wake-up").Wakes[0].State == "succeeded" })
	if wakes := g.inspect(t, "wake-up").Wakes; len(wakes) != 1 || wakes[0].Attempts < 2 {
		t.Errorf("the wakes are %+v, want one with at least two attempts", wakes)
	}
	if ack := g.awaitSettled(t, arriveWithin, "wake-up").acks()["peer:puppet"]; ack != "acked stdio.write" {
		t.Errorf("the delivery to the agent ends as %q", ack)
	}
}

func TestASecondGatewayKeepsOffTheSameData(t *testing.T) {
	t.Parallel()
	first := newGateway(t, embeddedBrokers(t))
	first.start(t)
	second := newGateway(t, embeddedBrokers(t), object{"data_dir": first.dataDir()})
	_, stderr, status := output(t, readyWithin, nil, gatewayBinary, "serve", "--config", second.configFile())
	if status != 2 {
		t.Errorf("the second gateway ends with %d", status)
	}
	if lines := strings.Split(strings.TrimSpace(stderr), "\n"); len(lines) != 1 || !strings.Contains(stderr, "data_dir") || !strings.Contains(stderr, first.dataDir()) {
		t.Errorf("the second gateway says\n%s\nwant one line that names the key and the directory", stderr)
	}
	first.post(t, say("still", "caller", "still here").String())
	if !first.ready() {
		t.Error("the first gateway is not ready any more")
	}
}
