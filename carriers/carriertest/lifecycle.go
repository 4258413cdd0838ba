package carriertest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/compozy-gateway/gateway/core"
	"go.uber.org/goleak"
)

func lifecycleChecks() []check {
	return []check{
		{"the state follows the life of the carrier", nil, checkStates},
		{"the status tells when it last received and sent", nil, checkLastTimes},
		{"Run returns while the intake is full", []ability{receives}, checkStopBlocked},
		{"Run returns while frames are unsettled", []ability{receives}, checkStopUnsettled},
		{"a send that waits ends with the carrier", []ability{withholds}, checkStopSending},
		{"a send after the end is an error", []ability{sends}, checkSendStopped},
		{"nothing is left running", nil, checkNothingLeft},
		{"errors, status and log hold no secret", []ability{hasSecrets}, checkSecrets},
	}
}

func hasSecrets(s subject) bool { return len(s.Secrets) > 0 }

func checkStates(r *rig) {
	if s := r.Carrier.Status().State; s != core.StateStarting && s != core.StateNotReady {
		r.Errorf("the state before Run is %q", s)
	}
	r.start()
	r.stop()
	if s := r.Carrier.Status().State; s != core.StateStopped {
		r.Errorf("the state after Run is %q, want %q", s, core.StateStopped)
	}
	if r.runErr != nil {
		r.Errorf("Run returned %v after the end of its context, want nil", r.runErr)
	}
}

func checkLastTimes(r *rig) {
	r.start()
	if receives(r.subject) {
		_, o := r.exchange()
		r.settle(o, committed)
		r.until("the status tells of the receive", func() bool { return !r.Carrier.Status().LastReceive.IsZero() })
	}
	if sends(r.subject) {
		r.mustSend(r.outbound(r.Recipients[0]))
		r.until("the status tells of the send", func() bool { return !r.Carrier.Status().LastSend.IsZero() })
	}
}

func checkStopBlocked(r *rig) {
	r.start()
	r.Cleanup(r.in.block())
	r.inject()
	r.until("an offer stands blocked", func() bool { now, _ := r.in.blocked(); return now > 0 })
	r.stop()
}

func checkStopUnsettled(r *rig) {
	r.start()
	_, o := r.exchange()
	r.stop()
	r.settle(o, committed)
}

func checkStopSending(r *rig) {
	r.start()
	to := r.Recipients[0]
	r.withhold(to)
	s := r.sendInTurn(r.outbound(to))[0]
	r.awaitReceived(s.out)
	r.stop()
	_ = r.failure(s)
}

func checkSendStopped(r *rig) {
	r.start()
	r.stop()
	s := r.send(r.outbound(r.Recipients[0]))
	_ = r.failure(s)
	if n := len(s.reported()); n != 1 {
		r.Errorf("a send after the end was reported %d times", n)
	}
}

func checkNothingLeft(r *rig) {
	r.start()
	if receives(r.subject) {
		_, o := r.exchange()
		r.settle(o, committed)
	}
	if sends(r.subject) {
		r.mustSend(r.outbound(r.Recipients[0]))
	}
	if cuts(r.subject) {
		r.reconnect()
	}
	r.stop()
	r.closeFarSide()
	if err := goleak.Find(r.before); err != nil {
		r.Errorf("goroutines were left behind: %v", err)
	}
}

func checkSecrets(r *rig) {
	var shown []string
	show := func(where string, text string) { shown = append(shown, where+": "+text) }
	status := func(when string) { show("status "+when, fmt.Sprintf("%+v", r.Carrier.Status())) }
	attempt := func(when string) {
		if sends(r.subject) {
			s := r.sendFor(2*r.Quiet, r.outbound(r.Recipients[0]))
			r.holdsWithin(r.Patience, func() bool { return len(s.reported()) > 0 })
			for _, got := range s.reported() {
				show("send "+when, got.ack.Detail+describe(got.err))
			}
		}
	}
	r.start()
	status("when ready")
	attempt("when ready")
	if refuses(r.subject) {
		r.Refuse(r.Recipients[0], true)
		attempt("that is refused")
		r.Refuse(r.Recipients[0], false)
	}
	if withholds(r.subject) {
		r.Withhold(r.Recipients[0], true)
		attempt("without an answer")
		r.Withhold(r.Recipients[0], false)
	}
	if cuts(r.subject) {
		r.cutAndNotice()
		status("when cut")
		attempt("when cut")
	}
	r.stop()
	status("at the end")
	attempt("after the end")
	if r.Logs != nil {
		show("log", r.Logs())
	}
	for _, text := range shown {
		if secret := r.secretIn(text); secret != "" {
			r.Errorf("a secret (%d characters) stands in the %s", len(secret), redact(text, secret))
		}
	}
}

// describe is an error with everything that it wraps, as a log could show it.
func describe(err error) string {
	text := fmt.Sprintf(" %+v", err)
	for ; err != nil; err = errors.Unwrap(err) {
		text += fmt.Sprintf(" %v %+v", err, err)
	}
	return text
}

// secretIn finds a secret in a text.
func (r *rig) secretIn(text string) string {
	for _, secret := range r.Secrets {
		if strings.Contains(text, secret) {
			return secret
		}
	}
	return ""
}

func redact(text, secret string) string { return strings.ReplaceAll(text, secret, "[secret]") }
