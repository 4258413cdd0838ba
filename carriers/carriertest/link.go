package carriertest

import (
	"time"

	"github.com/compozy-gateway/gateway/core"
)

func linkChecks() []check {
	return []check{
		{"a cut link is not ready and says why", []ability{cuts}, checkCutStatus},
		{"a send over a cut link fails soon and can be tried again", []ability{cuts, sends}, checkCutSend},
		{"a send that a cut leaves open is reported once, without an acknowledgement", []ability{cuts, withholds}, checkCutInFlight},
		{"a restored link receives again", []ability{cuts, receives}, checkRestoredReceives},
		{"a restored link sends again", []ability{cuts, sends}, checkRestoredSends},
		{"a link that is down at the start is waited for", []ability{cuts}, checkDownAtStart},
		{"a settlement from before a cut acknowledges no other frame", []ability{cuts, seesAcks, redelivers}, checkLateSettlement},
	}
}

func checkCutStatus(r *rig) {
	r.start()
	r.Cut()
	r.until("a carrier whose link is cut is not ready and says why", func() bool {
		s := r.Carrier.Status()
		return s.State == core.StateNotReady && s.Why != ""
	})
	if !r.running() {
		r.Errorf("Run returned because of a cut link: %v", r.runErr)
	}
}

func checkCutSend(r *rig) {
	r.start()
	r.cutAndNotice()
	begin := time.Now()
	got := r.failure(r.send(r.outbound(r.Recipients[0])))
	if took := time.Since(begin); took > r.Patience/2 {
		r.Errorf("a send over a cut link took %v to fail", took)
	}
	if got.Code.Permanent() || got.Code == core.CodeExpired {
		r.Errorf("a send over a cut link failed with %q, which is for good: %v", got.Code, got)
	}
}

func checkCutInFlight(r *rig) {
	r.start()
	to := r.Recipients[0]
	r.withhold(to)
	open := r.sendInTurn(r.outbounds(to, 4)...)
	r.until("the messages come out", func() bool { return len(r.receivedOrder(to)) == len(open) })
	r.Cut()
	for _, s := range open {
		if got := r.failure(s); got.Code.Permanent() || got.Code == core.CodeExpired {
			r.Errorf("a send that a cut left open failed with %q, which is for good: %v", got.Code, got)
		}
	}
	r.Restore()
	r.never(r.Quiet, "a send was reported again after the link came back", func() bool {
		for _, s := range open {
			if len(s.reported()) > 1 {
				return true
			}
		}
		return false
	})
}

func checkRestoredReceives(r *rig) {
	r.start()
	r.reconnect()
	f, o := r.exchange()
	r.settle(o, committed)
	if seesAcks(r.subject) {
		r.awaitResult(f.Key, Acked)
	}
}

func checkRestoredSends(r *rig) {
	r.start()
	r.reconnect()
	out := r.outbound(r.Recipients[0])
	r.mustSend(out)
	r.awaitReceived(out)
}

func checkDownAtStart(r *rig) {
	r.Cut()
	r.run()
	r.never(r.Quiet, "a carrier whose link is down at the start gave up or says that it is ready", func() bool {
		return !r.running() || r.Carrier.Status().State == core.StateReady
	})
	r.Restore()
	r.awaitReady()
}

func checkLateSettlement(r *rig) {
	r.start()
	first, late := r.exchange()
	r.reconnect()
	other, waiting := r.exchange()
	r.settle(late, committed)
	r.never(r.Quiet, "the settlement of one frame acknowledged another", func() bool {
		return len(settledResults(r.results(other.Key))) > 0
	})
	// The first may have to come again to be acknowledged, behind the other.
	r.settle(waiting, committed)
	r.awaitResult(first.Key, Acked)
	r.awaitResult(other.Key, Acked)
}
