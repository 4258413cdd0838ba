package stdio

import (
	"sync"

	"github.com/compozy-gateway/gateway/core"
)

// turn is one wake of an agent: what it is given, and what is still to come
// before the wake counts as over.
type turn struct {
	id string
	// over is closed when the turn has its outcome and all envelopes of it are
	// settled.
	over chan struct{}

	mu   sync.Mutex
	owed int
	// decided is true once the outcome is known, complete once nothing more of the
	// turn is read. A turn that ran out of time is decided before its process is
	// dead.
	decided, complete bool
	outcome           core.WakeOutcome
}

func newTurn(id string) *turn { return &turn{id: id, over: make(chan struct{})} }

// expect counts an envelope that is about to be offered.
func (t *turn) expect() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.owed++
}

// settled counts it off.
func (t *turn) settled() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.owed--
	if t.complete && t.owed == 0 {
		close(t.over)
	}
}

// decide gives the turn its outcome, and reports false when it has one: the
// first one counts.
func (t *turn) decide(o core.WakeOutcome) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.decided {
		return false
	}
	t.decided, t.outcome = true, o
	return true
}

// end says that nothing more of the turn is read. It is called once, and gives
// the outcome where there is none yet.
func (t *turn) end(o core.WakeOutcome) {
	t.decide(o)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.complete = true
	if t.owed == 0 {
		close(t.over)
	}
}

// result is the outcome of a turn that is over.
func (t *turn) result() core.WakeOutcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.outcome
}

// session is one process of an agent as wakes see it.
type session struct {
	input *input
	// kill takes the order to kill the process, with why.
	kill chan string

	mu sync.Mutex
	// turn is the wake that is running, nil in between.
	turn *turn
	// said is what the agent said of its wake under launch: wake, where the exit
	// status decides.
	said *control
	gone bool
}

func newSession(in *input) *session { return &session{input: in, kill: make(chan string, 1)} }

// begin makes the turn the running one. It reports false when the process is
// gone.
func (s *session) begin(t *turn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || s.turn != nil {
		return false
	}
	s.turn = t
	return true
}

// abandon takes back a turn of which the agent knows nothing.
func (s *session) abandon(t *turn) {
	s.mu.Lock()
	ours := s.turn == t
	if ours {
		s.turn = nil
	}
	s.mu.Unlock()
	if ours {
		t.end(core.WakeOutcome{})
	}
}

// afterTurn is closed once the wake that is running is over, or taken back.
func (s *session) afterTurn() <-chan struct{} {
	if t := s.current(); t != nil {
		return t.over
	}
	over := make(chan struct{})
	close(over)
	return over
}

// current is the wake that is running, nil in between. Its lock is held by
// nobody while it is used.
func (s *session) current() *turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn
}

// done takes the agent's word that its wake is over, and reports whether it is
// the first one for the wake that is running. With resident the word counts, and
// what the agent writes from now on belongs to no wake; else it is kept for the
// end of the process.
func (s *session) done(said control, resident bool) bool {
	s.mu.Lock()
	t := s.turn
	if t == nil || t.id != said.done {
		s.mu.Unlock()
		return false
	}
	if !resident {
		first := s.said == nil
		if first {
			s.said = &said
		}
		s.mu.Unlock()
		return first
	}
	outcome := outcomeOf(said)
	if !t.decide(outcome) {
		// Its time is over and it is being killed: what is still read was written in
		// the wake.
		s.mu.Unlock()
		return true
	}
	s.turn = nil
	s.mu.Unlock()
	t.end(outcome)
	return true
}

func outcomeOf(said control) core.WakeOutcome {
	o := core.WakeOutcome{State: core.WakeSucceeded, Usage: said.usage}
	if said.failed {
		o.State, o.Detail = core.WakeFailed, "the agent: "+shorten(said.why, mostShown)
		if said.why == "" {
			o.Detail = "the agent says so, and gives no reason"
		}
	}
	return o
}

// end ends what is running because the process is gone and all that it wrote is
// read.
func (s *session) end(why string) {
	s.mu.Lock()
	t := s.turn
	s.turn, s.gone = nil, true
	s.mu.Unlock()
	if t != nil {
		t.end(core.WakeOutcome{State: core.WakeFailed, Detail: "the agent ended before its wake was done: " + why})
	}
}

// order kills the process.
func (s *session) order(why string) {
	select {
	case s.kill <- why:
	default:
	}
}
