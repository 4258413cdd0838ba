package gateway

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

func TestWhiteSpaceAroundAnEnvelopeDoesNotCountAgainstItsSize(t *testing.T) {
	h := newHouse(t)
	h.start()
	sized := func(size int) []byte {
		raw := h.say()
		text := strings.Repeat("a", size-len(raw))
		return bytes.Replace(raw, []byte(`"text":"`), []byte(`"text":"`+text), 1)
	}
	padded := func(raw []byte) []byte { return slices.Concat([]byte(" \r\n\t"), raw, []byte(" \r\n\t")) }

	largest := sized(h.config.Protocol.MaxEnvelopeBytes)
	h.take(h.a.Native(padded(largest)))
	if out := h.sent(h.b, 1); !bytes.Equal(out[0].Envelope.Raw, largest) {
		t.Error("it comes out with other bytes than those of the object")
	}
	s := h.settled(h.a.Native(padded(sized(h.config.Protocol.MaxEnvelopeBytes + 1))))
	if s.Verdict != core.VerdictRejected || !s.Rejection.TooLarge {
		t.Errorf("one byte more: %+v", s)
	}
}
