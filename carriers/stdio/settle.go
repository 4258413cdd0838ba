package stdio

import (
	"fmt"
	"strings"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

const (
	// mostID is the longest id that a control line repeats, in bytes; the
	// protocol allows no longer one.
	mostID = 256
	// mostDetail bounds the detail of a nack, in bytes.
	mostDetail = 512
)

// settlementLine is the control line that tells an agent what became of its
// envelope; nil where there is nothing to tell.
func settlementLine(s core.Settlement) []byte {
	switch s.Verdict {
	case core.VerdictCommitted:
		if s.Echo {
			return nil
		}
		body := ackLine{Ack: s.ID, Duplicate: s.Duplicate, Parked: s.Parked}
		if !s.Parked {
			body.Seq = &s.Seq
		}
		return controlLine(body)
	case core.VerdictRejected:
		body := nackLine{Nack: idOrNull(s.ID), ReasonCode: string(core.ReasonInternal)}
		if s.Rejection != nil {
			body.ReasonCode = string(s.Rejection.Reason)
			body.Detail = shorten(s.Rejection.Detail, mostDetail)
		}
		return controlLine(body)
	case core.VerdictRetry:
		// Nothing comes again on a pipe by itself, so the agent is asked to send
		// its line again. That is no acknowledgement.
		return controlLine(nackLine{
			Nack:       idOrNull(s.ID),
			ReasonCode: string(core.ReasonBusy),
			Detail:     fmt.Sprintf("nothing was kept: send it again in %s", s.RetryAfter.Round(time.Millisecond)),
		})
	default:
		return nil
	}
}

func idOrNull(id string) *string {
	if id == "" || len(id) > mostID {
		return nil
	}
	return &id
}

// shorten cuts text to about most bytes, and never inside a character.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
