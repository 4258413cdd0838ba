package core_test

import (
	"errors"
	"io"
	"math"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

func TestDeliveryIDIsReadAsItWasWritten(t *testing.T) {
	for _, id := range []core.DeliveryID{{Seq: 1, Recipient: 1}, {Seq: math.MaxInt64, Recipient: math.MaxInt64}} {
		got, err := core.ParseDeliveryID(id.String())
		if err != nil || got != id {
			t.Errorf("%s: %v, %v", id, got, err)
		}
	}
	for _, s := range []string{"", "1", "-", "1-", "-1", "0-1", "1-0", "1--1", "-1-1", "1-2-3", "a-1", "1-a", "9223372036854775808-1", " 1-1"} {
		if got, err := core.ParseDeliveryID(s); err == nil {
			t.Errorf("%q was read as %v", s, got)
		}
	}
}

func TestPermanentSendCodes(t *testing.T) {
	for code, want := range map[core.SendCode]bool{
		core.CodeUnavailable: false, core.CodeTimeout: false, core.CodeBusy: false, core.CodeFailed: false,
		core.CodeExpired: false, core.CodeRefused: true, core.CodeTooLarge: true, core.CodeBadAddress: true,
		core.CodeGone: true,
	} {
		if code.Permanent() != want {
			t.Errorf("%s permanent: %t", code, code.Permanent())
		}
	}
}

func TestErrorsSayWhatAndWhy(t *testing.T) {
	var err error = &core.SendError{Code: core.CodeTimeout, Detail: "no acknowledgement", Err: io.EOF}
	if !errors.Is(err, io.EOF) || err.Error() != "timeout: no acknowledgement: EOF" {
		t.Error(err)
	}
	err = &core.SendError{Code: core.CodeGone, Detail: "status 410"}
	if err.Error() != "gone: status 410" || errors.Unwrap(err) != nil {
		t.Error(err)
	}
	err = &core.Rejection{Reason: core.ReasonBusy, Detail: "too many parked"}
	if err.Error() != "busy: too many parked" {
		t.Error(err)
	}
}

func TestWordsOfThePort(t *testing.T) {
	for got, want := range map[string]string{
		core.ArrivalIngress.String():                                       "ingress",
		core.ArrivalNative.String():                                        "native",
		core.Recipient{Carrier: "nats"}.String():                           "carrier:nats",
		core.Recipient{Carrier: "http", Link: "crm"}.String():              "webhook:crm",
		core.Recipient{Carrier: "http", Link: "crm", Peer: "a.b"}.String(): "peer:a.b",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if core.VerdictNone != *new(core.Verdict) {
		t.Error("the zero verdict settles something")
	}
}

func TestWhoMayReadAMessage(t *testing.T) {
	public, private := &core.Message{}, &core.Message{Direct: [2]string{"a", "b"}}
	for peer, want := range map[string]bool{"": false, "a": true, "b": true, "c": false} {
		if !public.MayRead(peer) || private.MayRead(peer) != want {
			t.Errorf("peer %q reads the room: %t", peer, private.MayRead(peer))
		}
	}
}
