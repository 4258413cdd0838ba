package carriertest

import (
	"slices"
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/core"
	"go.uber.org/goleak"
)

// T is what a check needs of a test. A *testing.T is one.
type T interface {
	Helper()
	Cleanup(f func())
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Run checks that the carrier keeps the promises of core.Carrier. newFixture is
// called once for each check, and once before to learn which checks apply. The
// checks do not run in parallel, for one of them looks for goroutines that were
// left behind.
func Run(t *testing.T, newFixture func(t *testing.T) Fixture) {
	t.Helper()
	var s subject
	if !t.Run("a carrier that never ran can be put away", func(t *testing.T) {
		s = newRig(t, newFixture(t), nil).subject
	}) {
		return
	}
	var left []string
	for _, c := range checks() {
		if !s.allows(c) {
			left = append(left, c.name)
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			c.run(newRig(t, newFixture(t), before))
		})
	}
	if len(left) > 0 {
		t.Logf("ruled out by what the carrier and its far side declare: %s", strings.Join(left, "; "))
	}
}

// check is one promise of the port.
type check struct {
	name string
	// needs are the abilities without which the promise says nothing.
	needs []ability
	run   func(r *rig)
}

// checks is the whole suite, in the order of the files.
func checks() []check {
	return slices.Concat(
		deliveryChecks(),
		settleChecks(),
		sendChecks(),
		limitChecks(),
		linkChecks(),
		lifecycleChecks(),
	)
}

// ability is something that not every carrier and not every far side can do.
type ability func(s subject) bool

// subject is what is declared of a carrier under test.
type subject struct {
	Fixture
	limits core.Limits
}

func subjectOf(f Fixture) subject {
	f.defaults()
	return subject{Fixture: f, limits: f.Carrier.Limits()}
}

func (s subject) allows(c check) bool {
	return !slices.ContainsFunc(c.needs, func(a ability) bool { return !a(s) })
}

func receives(s subject) bool     { return s.Inject != nil && len(s.Arrivals) > 0 }
func seesAcks(s subject) bool     { return receives(s) && s.Outcomes != nil }
func seesRefusals(s subject) bool { return seesAcks(s) && s.SeesRefusals }
func addressed(s subject) bool    { return s.Addressed }
func ordered(s subject) bool      { return s.limits.Ordered }
func redelivers(s subject) bool   { return receives(s) && s.limits.Redelivers }
func oversize(s subject) bool     { return receives(s) && s.MaxEnvelopeBytes > 0 }
func sends(s subject) bool        { return len(s.Recipients) > 0 && s.Received != nil }
func sendsToTwo(s subject) bool   { return sends(s) && len(s.Recipients) > 1 }
func withholds(s subject) bool    { return sends(s) && s.Withhold != nil }
func refuses(s subject) bool      { return sends(s) && s.Refuse != nil }
func bounded(s subject) bool      { return sends(s) && s.limits.MaxPayload > 0 }
func cuts(s subject) bool         { return s.Cut != nil && s.Restore != nil }
func native(s subject) bool       { return seesAcks(s) && slices.Contains(s.Arrivals, core.ArrivalNative) }
