package carriertest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/compozy-gateway/gateway/core"
)

func deliveryChecks() []check {
	return []check{
		{"a frame arrives as the bytes that were sent", []ability{receives}, checkBytesIn},
		{"the arrival of a frame is told", []ability{receives}, checkArrival},
		{"the address of a frame is told", []ability{receives, addressed}, checkAddressIn},
		{"frames arrive in the order they were sent", []ability{receives, ordered}, checkOrderIn},
		{"an offered payload is not touched afterwards", []ability{receives}, checkPayloadKept},
		{"a full intake pushes back and loses nothing", []ability{receives}, checkBackPressure},
		{"a message goes out as the bytes that were given", []ability{sends}, checkBytesOut},
		{"messages go out in the order of the sends", []ability{sends}, checkOrderOut},
		{"a message goes to the address of its recipient", []ability{sends, addressed}, checkAddressOut},
		{"every attempt carries the same bytes and token", []ability{sends}, checkAttempts},
	}
}

func checkBytesIn(r *rig) {
	r.start()
	cases := append(oddities(), odd{"200 KiB", func(key string) []byte {
		return sized(key, testWorkspace, testChannel, 200<<10)
	}})
	if !r.LineFramed {
		cases = append(cases, odd{"line breaks", lineBreaks})
	}
	if r.MaxEnvelopeBytes > 0 {
		cases = append(cases, odd{"largest", func(key string) []byte {
			return sized(key, testWorkspace, testChannel, r.MaxEnvelopeBytes)
		}})
	}
	for _, arrival := range r.Arrivals {
		for _, c := range cases {
			f := r.frame(arrival)
			f.Payload = c.payload(f.Key)
			r.put(f)
			o := r.expect(f)
			if !bytes.Equal(o.copy, f.Payload) {
				r.Errorf("%s, %s arrival: %s", c.name, arrival, difference(o.copy, f.Payload))
			}
			r.settle(o, committed)
		}
	}
}

func checkArrival(r *rig) {
	r.start()
	for _, arrival := range r.Arrivals {
		_, o := r.exchangeOf(arrival)
		if o.Arrival != arrival {
			r.Errorf("a frame that was sent as %s arrived as %s", arrival, o.Arrival)
		}
		r.settle(o, committed)
	}
}

// workspaces are legal workspace ids that an address must survive.
func workspaces() []string {
	return []string{testWorkspace, "acme/lab+1#50%$x", "%2F", "工作-é", strings.Repeat("w", 256)}
}

func checkAddressIn(r *rig) {
	r.start()
	for _, arrival := range r.Arrivals {
		for _, want := range addresses(arrival) {
			f := r.frame(arrival)
			f.Address = want
			f.Payload = say(f.Key, want.WorkspaceID, want.Channel, "", "hello")
			r.put(f)
			o := r.expect(f)
			if o.Address == nil || *o.Address != want {
				r.Errorf("a frame that was sent to %+v arrived with the address %+v (%q)", want, o.Address, o.BadAddress)
			}
			r.settle(o, committed)
		}
	}
}

func addresses(arrival core.Arrival) []core.Address {
	var list []core.Address
	for _, ws := range workspaces() {
		if arrival == core.ArrivalIngress {
			list = append(list, core.Address{WorkspaceID: ws, Channel: testChannel, Class: core.AddressIngress})
			continue
		}
		list = append(list,
			core.Address{WorkspaceID: ws, Channel: testChannel, Class: core.AddressBroadcast},
			core.Address{WorkspaceID: ws, Channel: testChannel, Class: core.AddressPeer, Token: routeToken("bob.sess-1")})
	}
	return list
}

func checkOrderIn(r *rig) {
	r.start()
	var sent []string
	for range 100 {
		sent = append(sent, r.inject().Key)
	}
	r.until("all frames are offered", func() bool {
		r.in.settlePending(committed)
		return len(r.in.order()) == len(sent)
	})
	if got := r.in.order(); !slices.Equal(got, sent) {
		r.Errorf("frames were offered in another order than they were sent in:\n got %v\nwant %v", got, sent)
	}
}

func checkPayloadKept(r *rig) {
	r.start()
	var offers []*offer
	for range 20 {
		_, o := r.exchange()
		offers = append(offers, o)
	}
	for _, o := range offers {
		r.settle(o, committed)
	}
	_, last := r.exchange()
	for _, o := range append(offers, last) {
		if !bytes.Equal(o.Payload, o.copy) {
			r.Fatalf("the payload of frame %s was changed after its offer: %s", o.key, difference(o.Payload, o.copy))
		}
	}
}

func checkBackPressure(r *rig) {
	r.start()
	open := r.in.block()
	r.Cleanup(open)
	sent := map[string]bool{}
	for range 150 {
		sent[r.inject().Key] = true
	}
	r.until("an offer stands blocked", func() bool { now, _ := r.in.blocked(); return now > 0 })
	r.never(r.Quiet, fmt.Sprintf("more than %d offers stood blocked", r.BlockedOffers), func() bool {
		_, peak := r.in.blocked()
		return peak > r.BlockedOffers
	})
	open()
	r.until("all frames are offered once the intake takes them", func() bool {
		r.in.settlePending(committed)
		return len(r.in.order()) == len(sent)
	})
}

func checkBytesOut(r *rig) {
	r.start()
	largest := 1 << 20
	if r.limits.MaxPayload > 0 {
		largest = min(largest, r.limits.MaxPayload)
	}
	for _, to := range r.Recipients {
		workspace, channel := conversation(to)
		cases := append(oddities(), odd{"line breaks", lineBreaks}, odd{"largest", func(key string) []byte {
			return sized(key, workspace, channel, largest)
		}})
		for _, c := range cases {
			out := r.outbound(to)
			raw := c.payload(out.Envelope.ID)
			out.Envelope.Raw = bytes.Clone(raw)
			r.mustSend(out)
			want := raw
			if r.LineFramed {
				want = oneLine(raw)
			}
			if got := r.awaitReceived(out); !bytes.Equal(got.Payload, want) {
				r.Errorf("%s, to %s: %s", c.name, to, difference(got.Payload, want))
			}
			if !bytes.Equal(out.Envelope.Raw, raw) {
				r.Errorf("%s, to %s: Send changed the payload that it was given", c.name, to)
			}
		}
	}
}

func checkOrderOut(r *rig) {
	r.start()
	to := r.Recipients[0]
	sent := r.sendMany(to, 60)
	r.awaitReported(sent)
	var want []string
	for _, s := range sent {
		want = append(want, s.out.Envelope.ID)
	}
	r.until("all messages come out", func() bool { return len(r.receivedOrder(to)) == len(want) })
	if got := r.receivedOrder(to); !slices.Equal(got, want) {
		r.Errorf("messages came out in another order than they were sent in:\n got %v\nwant %v", got, want)
	}
}

func checkAddressOut(r *rig) {
	r.start()
	for _, ws := range workspaces() {
		for _, peer := range []string{"", "bob.sess-1"} {
			out := r.outbound(r.Recipients[0])
			out.To, out.Envelope.To, out.Envelope.WorkspaceID = peer, peer, ws
			out.Envelope.Raw = say(out.Envelope.ID, ws, testChannel, peer, "hello")
			want := core.Address{WorkspaceID: ws, Channel: testChannel, Class: core.AddressBroadcast}
			if peer != "" {
				want.Class, want.Token = core.AddressPeer, routeToken(peer)
			}
			r.mustSend(out)
			if got := r.awaitReceived(out).Address; got == nil || *got != want {
				r.Errorf("a message to %q in %q came out at %+v, want %+v", peer, ws, got, want)
			}
		}
	}
}

func checkAttempts(r *rig) {
	r.start()
	out := r.outbound(r.Recipients[0])
	for attempt := 1; attempt <= 3; attempt++ {
		out.Attempt = attempt
		r.mustSend(out)
	}
	// A far side that knows the token may take the attempts for one message.
	r.awaitReceived(out)
	r.never(r.Quiet, "the attempts of one delivery differ in their bytes or their token", func() bool {
		var first *Received
		for _, got := range r.receivedOf(out) {
			if first == nil {
				first = &got
			}
			if !bytes.Equal(got.Payload, first.Payload) || got.Token != first.Token {
				return true
			}
		}
		return false
	})
}

// difference tells two payloads apart without printing them whole.
func difference(got, want []byte) string {
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	from := max(0, at-20)
	cut := func(b []byte) []byte { return b[min(from, len(b)):min(at+20, len(b))] }
	return fmt.Sprintf("got %d bytes, want %d; the first difference is at %d: got ...%q..., want ...%q...",
		len(got), len(want), at, cut(got), cut(want))
}
