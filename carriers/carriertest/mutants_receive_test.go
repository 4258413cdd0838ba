package carriertest

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"sync"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

func settleMutants() []mutant {
	return []mutant{
		{"acknowledges ingress when it arrives", "nothing is acknowledged before it is settled", ackOnArrival},
		{"acknowledges twice", "a committed frame is acknowledged once", settling(func(_ core.Inbound, s core.Settlement, settle func(core.Settlement)) {
			settle(s)
			if s.Verdict == core.VerdictCommitted {
				settle(s)
			}
		})},
		{"never acknowledges", "a committed frame is acknowledged once", settling(func(in core.Inbound, s core.Settlement, settle func(core.Settlement)) {
			if in.Arrival == core.ArrivalNative || s.Verdict != core.VerdictCommitted {
				settle(s)
			}
		})},
		{"leaves a duplicate unacknowledged", "a duplicate is acknowledged", settling(func(in core.Inbound, s core.Settlement, settle func(core.Settlement)) {
			if !s.Duplicate || in.Redelivered {
				settle(s)
			}
		})},
		{"leaves an echo unacknowledged", "an echo is acknowledged", settling(func(_ core.Inbound, s core.Settlement, settle func(core.Settlement)) {
			if !s.Echo {
				settle(s)
			}
		})},
		{"leaves a parked frame unacknowledged", "a parked frame is acknowledged", settling(func(_ core.Inbound, s core.Settlement, settle func(core.Settlement)) {
			if !s.Parked {
				settle(s)
			}
		})},
		{"acknowledges what is rejected", "a rejected frame is refused", settling(func(_ core.Inbound, s core.Settlement, settle func(core.Settlement)) {
			if s.Verdict == core.VerdictRejected {
				s.Verdict = core.VerdictCommitted
			}
			settle(s)
		})},
		{"lets what is rejected come again", "a settled frame does not come again", settling(func(_ core.Inbound, s core.Settlement, settle func(core.Settlement)) {
			if s.Verdict == core.VerdictRejected {
				settle(core.Settlement{Verdict: core.VerdictRetry})
			}
			settle(s)
		})},
		{"acknowledges the zero verdict", "the zero verdict acknowledges nothing", settling(func(_ core.Inbound, s core.Settlement, settle func(core.Settlement)) {
			if s.Verdict == core.VerdictNone {
				s.Verdict = core.VerdictCommitted
			}
			settle(s)
		})},
		{"acknowledges a retry", "a retry acknowledges nothing", settling(func(_ core.Inbound, s core.Settlement, settle func(core.Settlement)) {
			settle(s)
			if s.Verdict == core.VerdictRetry {
				settle(core.Settlement{Verdict: core.VerdictCommitted})
			}
		})},
		{"drops a retry", "a retried frame comes again and is marked", settling(func(_ core.Inbound, s core.Settlement, settle func(core.Settlement)) {
			if s.Verdict != core.VerdictRetry {
				settle(s)
			}
		})},
		{"does not mark a redelivery", "a retried frame comes again and is marked", inbound(func(in *core.Inbound) { in.Redelivered = false })},
		{"acknowledges what the intake did not take", "an offer that failed acknowledges nothing", ackFailedOffer},
		{"settles out of order", "settlements that bunch up keep the order of arrival", func(b *broken) {
			var late swapper
			settling(func(_ core.Inbound, s core.Settlement, settle func(core.Settlement)) {
				late.do(func() { settle(s) })
			})(b)
		}},
		{"waits in settle for Offer to return", "a settlement may come before Offer returns", lockInSettle},
		{"blocks in settle until the far side reads", "settle never blocks", blockInSettle},
	}
}

func deliveryMutants() []mutant {
	return []mutant{
		{"encodes a frame anew", "a frame arrives as the bytes that were sent", inbound(func(in *core.Inbound) { in.Payload = anew(in.Payload) })},
		{"cuts a long frame off", "a frame arrives as the bytes that were sent", inbound(func(in *core.Inbound) {
			in.Size = int64(len(in.Payload))
			in.Payload = in.Payload[:min(len(in.Payload), 64<<10)]
		})},
		{"takes ingress for native", "the arrival of a frame is told", inbound(func(in *core.Inbound) { in.Arrival = core.ArrivalNative })},
		{"decodes an address that is not encoded", "the address of a frame is told", inbound(func(in *core.Inbound) {
			if ws, err := url.PathUnescape(in.Address.WorkspaceID); err == nil {
				in.Address = &core.Address{WorkspaceID: ws, Channel: in.Address.Channel, Class: in.Address.Class, Token: in.Address.Token}
			}
		})},
		{"offers out of order", "frames arrive in the order they were sent", offerOutOfOrder},
		{"uses one buffer for all frames", "an offered payload is not touched afterwards", func(b *broken) {
			buffer := make([]byte, 2<<20)
			inbound(func(in *core.Inbound) { in.Payload = buffer[:copy(buffer, in.Payload)] })(b)
		}},
		{"drops a frame when the intake is full", "a full intake pushes back and loses nothing", dropWhenFull},
		{"piles up frames when the intake is full", "a full intake pushes back and loses nothing", pileUpWhenFull},
		{"encodes a message anew", "a message goes out as the bytes that were given", outbound(func(out *core.Outbound) {
			e := *out.Envelope
			e.Raw = anew(e.Raw)
			out.Envelope = &e
		})},
		{"makes the line in the caller's buffer", "a message goes out as the bytes that were given", outbound(func(out *core.Outbound) {
			copy(out.Envelope.Raw, oneLine(out.Envelope.Raw))
		})},
		{"sends out of order", "messages go out in the order of the sends", func(b *broken) {
			var late swapper
			b.write = func(ctx context.Context, out core.Outbound, done func(core.Ack, error)) {
				late.do(func() { b.Memory.Send(ctx, out, done) })
			}
		}},
		{"broadcasts everything", "a message goes to the address of its recipient", outbound(func(out *core.Outbound) { out.To = "" })},
		{"gives each attempt a token of its own", "every attempt carries the same bytes and token", outbound(func(out *core.Outbound) {
			if out.Attempt > 1 {
				out.Token = out.Token[1:] + "0"
			}
		})},
	}
}

// anew is the JSON decoded and encoded, where that is possible.
func anew(raw []byte) []byte {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return raw
	}
	again, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return again
}

// swapper does things in pairs, the second first. What finds no second in time
// is done alone.
type swapper struct {
	mu   sync.Mutex
	held func()
}

func (s *swapper) do(f func()) {
	s.mu.Lock()
	first := s.held
	s.held = nil
	if first == nil {
		s.held = f
		time.AfterFunc(time.Millisecond, s.flush)
	}
	s.mu.Unlock()
	if first != nil {
		f()
		first()
	}
}

func (s *swapper) flush() {
	s.mu.Lock()
	held := s.held
	s.held = nil
	s.mu.Unlock()
	if held != nil {
		held()
	}
}

func ackOnArrival(b *broken) {
	b.offer = func(next offerFunc) offerFunc {
		return func(ctx context.Context, in core.Inbound, settle func(core.Settlement)) error {
			if in.Arrival == core.ArrivalNative {
				return next(ctx, in, settle)
			}
			err := next(ctx, in, func(s core.Settlement) {
				if s.Verdict != core.VerdictCommitted {
					settle(s)
				}
			})
			if err == nil {
				settle(core.Settlement{Verdict: core.VerdictCommitted})
			}
			return err
		}
	}
}

func ackFailedOffer(b *broken) {
	b.offer = func(next offerFunc) offerFunc {
		return func(ctx context.Context, in core.Inbound, settle func(core.Settlement)) error {
			err := next(ctx, in, settle)
			if errors.Is(err, core.ErrStopping) {
				settle(core.Settlement{Verdict: core.VerdictCommitted})
			}
			return err
		}
	}
}

func lockInSettle(b *broken) {
	b.offer = func(next offerFunc) offerFunc {
		return func(ctx context.Context, in core.Inbound, settle func(core.Settlement)) error {
			offered := make(chan struct{})
			defer close(offered)
			return next(ctx, in, func(s core.Settlement) {
				select {
				case <-offered:
				case <-ctx.Done():
				}
				settle(s)
			})
		}
	}
}

func blockInSettle(b *broken) {
	settling(func(_ core.Inbound, s core.Settlement, settle func(core.Settlement)) {
		if b.await(b.over, func() bool { return !b.stalled }) == nil {
			settle(s)
		}
	})(b)
}

func offerOutOfOrder(b *broken) {
	b.offer = func(next offerFunc) offerFunc {
		var late swapper
		return func(ctx context.Context, in core.Inbound, settle func(core.Settlement)) error {
			late.do(func() {
				if next(ctx, in, settle) != nil {
					settle(core.Settlement{Verdict: core.VerdictRetry})
				}
			})
			return nil
		}
	}
}

func dropWhenFull(b *broken) {
	b.offer = func(next offerFunc) offerFunc {
		return func(ctx context.Context, in core.Inbound, settle func(core.Settlement)) error {
			brief, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			defer cancel()
			err := next(brief, in, settle)
			if errors.Is(err, context.DeadlineExceeded) {
				return nil
			}
			return err
		}
	}
}

func pileUpWhenFull(b *broken) {
	var piled sync.WaitGroup
	b.run = func(ctx context.Context, in core.Intake) error {
		defer piled.Wait()
		return b.Memory.Run(ctx, in)
	}
	b.offer = func(next offerFunc) offerFunc {
		return func(ctx context.Context, in core.Inbound, settle func(core.Settlement)) error {
			result := make(chan error, 1)
			piled.Go(func() { result <- next(ctx, in, settle) })
			select {
			case err := <-result:
				return err
			case <-time.After(5 * time.Millisecond):
				return nil
			}
		}
	}
}
