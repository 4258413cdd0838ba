package carriertest

import (
	"strings"

	"github.com/compozy-gateway/gateway/core"
)

func limitChecks() []check {
	return []check{
		{"what is declared makes sense", nil, checkDeclaration},
		{"a payload over the limit is refused, and the next passes", []ability{bounded}, checkTooLarge},
		{"as many sends are under way as declared", []ability{withholds}, checkInFlight},
		{"an oversize frame is offered with its size, and the next passes", []ability{oversize}, checkOversize},
	}
}

// kindForm is the form of a kind of acknowledgement: whose, and which. A carrier
// from outside the project has one of its own.
func kindForm(k core.AckKind) bool {
	whose, which, ok := strings.Cut(string(k), ".")
	return ok && whose != "" && which != ""
}

func checkDeclaration(r *rig) {
	l := r.limits
	if l.MaxPayload < 0 || l.InFlight < 1 || l.Guarantee == "" {
		r.Errorf("limits %+v: want a size that is not negative, at least one send in flight and a guarantee", l)
	}
	if sends(r.subject) && !kindForm(l.AckKind) {
		r.Errorf("the kind of acknowledgement %q does not name the carrier and the kind", l.AckKind)
	}
	if r.Carrier.Limits() != l {
		r.Errorf("the limits changed from %+v to %+v", l, r.Carrier.Limits())
	}
	names := map[string]bool{}
	for _, link := range r.Carrier.Links() {
		if names[link.Name] {
			r.Errorf("two links are called %q", link.Name)
		}
		names[link.Name] = true
	}
}

func checkTooLarge(r *rig) {
	r.start()
	to := r.Recipients[0]
	workspace, channel := conversation(to)
	big := r.outbound(to)
	big.Envelope.Raw = sized(big.Envelope.ID, workspace, channel, r.limits.MaxPayload+1)
	if got := r.failure(r.send(big)); got.Code != core.CodeTooLarge {
		r.Errorf("a payload over the limit failed with %q, want %q: %v", got.Code, core.CodeTooLarge, got)
	}
	r.mustSend(r.outbound(to))
}

func checkInFlight(r *rig) {
	r.start()
	to := r.Recipients[0]
	r.withhold(to)
	sent := r.sendInTurn(r.outbounds(to, 64)...)
	r.until("all sends that may be under way come out without an acknowledgement", func() bool {
		return len(r.receivedOrder(to)) == len(sent)
	})
}

func checkOversize(r *rig) {
	r.start()
	for _, arrival := range r.Arrivals {
		f := r.frame(arrival)
		f.Payload = sized(f.Key, testWorkspace, testChannel, r.MaxEnvelopeBytes+1)
		r.put(f)
		o := r.expect(f)
		if size := max(o.Size, int64(len(o.copy))); size != int64(len(f.Payload)) {
			r.Errorf("a frame of %d bytes was offered as one of %d", len(f.Payload), size)
		}
		r.settle(o, rejected())
		_, next := r.exchangeOf(arrival)
		r.settle(next, committed)
	}
}
