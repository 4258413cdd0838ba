package carriertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

func sendMutants() []mutant {
	ackAnyway := func(code core.SendCode) func(*broken) {
		return reporting(func(b *broken, ack core.Ack, err error, done func(core.Ack, error)) {
			if failedWith(err, code) {
				ack, err = b.ack(), nil
			}
			done(ack, err)
		})
	}
	return []mutant{
		{"reports an acknowledgement twice", "a send is reported exactly once", reporting(func(_ *broken, ack core.Ack, err error, done func(core.Ack, error)) {
			done(ack, err)
			if err == nil {
				done(ack, err)
			}
		})},
		{"reports another kind of acknowledgement", "an acknowledgement is of the declared kind", reporting(func(_ *broken, ack core.Ack, err error, done func(core.Ack, error)) {
			if err == nil {
				ack.Kind = core.AckNATSFlush
			}
			done(ack, err)
		})},
		{"invents an acknowledgement that is late", "an acknowledgement that is withheld is not invented", ackAnyway(core.CodeTimeout)},
		{"waits for an acknowledgement for ever", "an acknowledgement that is withheld is not invented", func(b *broken) {
			b.write = func(ctx context.Context, out core.Outbound, done func(core.Ack, error)) {
				b.Memory.Send(ctx, out, func(ack core.Ack, err error) {
					if !errors.Is(err, context.DeadlineExceeded) {
						done(ack, err)
					}
				})
			}
		}},
		{"takes a refusal for an acknowledgement", "a refusal is an error, and the next message passes", ackAnyway(core.CodeRefused)},
		{"serves one destination at a time", "a destination that does not answer delays no other", oneAtATime},
		{"writes what is past its deadline", "a message past its deadline is not written", outbound(func(out *core.Outbound) { out.Deadline = time.Time{} })},
		{"writes first and then looks at the deadline", "a message past its deadline is not written", func(b *broken) {
			b.write = func(ctx context.Context, out core.Outbound, done func(core.Ack, error)) {
				late := out.Deadline
				out.Deadline = time.Time{}
				b.Memory.Send(ctx, out, func(ack core.Ack, err error) {
					if !late.IsZero() {
						ack, err = core.Ack{}, &core.SendError{Code: core.CodeExpired, Detail: "late"}
					}
					done(ack, err)
				})
			}
		}},
		{"forgets a send whose context is over", "a send ends with its context", func(b *broken) {
			b.write = func(ctx context.Context, out core.Outbound, done func(core.Ack, error)) {
				if ctx.Err() == nil {
					b.Memory.Send(ctx, out, done)
				}
			}
		}},
	}
}

func limitMutants() []mutant {
	return []mutant{
		{"declares no guarantee", "what is declared makes sense", func(b *broken) {
			b.limits = func(l core.Limits) core.Limits { l.Guarantee = ""; return l }
		}},
		{"sends what is over its limit", "a payload over the limit is refused, and the next passes", func(b *broken) {
			b.limits = func(l core.Limits) core.Limits { l.MaxPayload--; return l }
		}},
		{"takes fewer sends than it declares", "as many sends are under way as declared", narrowWindow},
		{"passes over an oversize frame", "an oversize frame is offered with its size, and the next passes", func(b *broken) {
			b.offer = func(next offerFunc) offerFunc {
				return func(ctx context.Context, in core.Inbound, settle func(core.Settlement)) error {
					if len(in.Payload) > 1<<20 {
						return nil
					}
					return next(ctx, in, settle)
				}
			}
		}},
	}
}

func linkMutants() []mutant {
	return []mutant{
		{"stays ready when its link is cut", "a cut link is not ready and says why", stayReady},
		{"does not say why it is not ready", "a cut link is not ready and says why", func(b *broken) {
			b.status = func(s core.Status) core.Status { s.Why = ""; return s }
		}},
		{"holds a send until the link is back", "a send over a cut link fails soon and can be tried again", func(b *broken) {
			b.write = func(ctx context.Context, out core.Outbound, done func(core.Ack, error)) {
				if b.isCut() {
					<-ctx.Done()
				}
				b.Memory.Send(ctx, out, done)
			}
		}},
		{"gives a message up when its link is cut", "a send over a cut link fails soon and can be tried again", func(b *broken) {
			b.write = func(ctx context.Context, out core.Outbound, done func(core.Ack, error)) {
				if b.isCut() {
					done(core.Ack{}, &core.SendError{Code: core.CodeRefused, Detail: "the link is cut"})
					return
				}
				b.Memory.Send(ctx, out, done)
			}
		}},
		{"takes the end of a connection for an acknowledgement", "a send that a cut leaves open is reported once, without an acknowledgement", onDown((*broken).isCut, func(b *broken, done func(core.Ack, error)) {
			done(b.ack(), nil)
		})},
		{"forgets what a cut leaves open", "a send that a cut leaves open is reported once, without an acknowledgement", onDown((*broken).isCut, func(*broken, func(core.Ack, error)) {})},
		{"does not subscribe again", "a restored link receives again", deafAfterCut},
		{"does not send again", "a restored link sends again", func(b *broken) {
			b.write = func(ctx context.Context, out core.Outbound, done func(core.Ack, error)) {
				if !b.isCut() && b.epoch() > 0 {
					done(core.Ack{}, &core.SendError{Code: core.CodeUnavailable, Detail: "the session is lost"})
					return
				}
				b.Memory.Send(ctx, out, done)
			}
		}},
		{"gives up when its link is down at the start", "a link that is down at the start is waited for", func(b *broken) {
			b.run = func(ctx context.Context, in core.Intake) error {
				if b.isCut() {
					return errors.New("the link is down")
				}
				return b.Memory.Run(ctx, in)
			}
		}},
		{"settles whatever has the place of an old frame", "a settlement from before a cut acknowledges no other frame", settleByPlace},
	}
}

func lifecycleMutants() []mutant {
	return []mutant{
		{"does not say that it has stopped", "the state follows the life of the carrier", func(b *broken) {
			b.status = func(s core.Status) core.Status {
				if s.State == core.StateStopped {
					s.State = core.StateNotReady
				}
				return s
			}
		}},
		{"takes being stopped for an error", "the state follows the life of the carrier", func(b *broken) {
			b.run = func(ctx context.Context, in core.Intake) error {
				return errors.Join(b.Memory.Run(ctx, in), ctx.Err())
			}
		}},
		{"does not tell when it received", "the status tells when it last received and sent", func(b *broken) {
			b.status = func(s core.Status) core.Status { s.LastReceive = time.Time{}; return s }
		}},
		{"stops only once the intake takes its frame", "Run returns while the intake is full", func(b *broken) {
			b.offer = func(next offerFunc) offerFunc {
				return func(ctx context.Context, in core.Inbound, settle func(core.Settlement)) error {
					return next(context.WithoutCancel(ctx), in, settle)
				}
			}
		}},
		{"stops only once its frames are settled", "Run returns while frames are unsettled", waitForSettlements},
		{"leaves a send open when it stops", "a send that waits ends with the carrier", onDown((*broken).hasEnded, func(*broken, func(core.Ack, error)) {})},
		{"acknowledges a send after its end", "a send after the end is an error", func(b *broken) {
			b.write = func(ctx context.Context, out core.Outbound, done func(core.Ack, error)) {
				if b.Memory.Status().State == core.StateStopped {
					done(b.ack(), nil)
					return
				}
				b.Memory.Send(ctx, out, done)
			}
		}},
		{"leaves a goroutine behind", "nothing is left running", func(b *broken) {
			b.run = func(ctx context.Context, in core.Intake) error {
				go func() { <-b.over.Done() }()
				return b.Memory.Run(ctx, in)
			}
		}},
		{"shows a secret in an error", "errors, status and log hold no secret", reporting(func(_ *broken, ack core.Ack, err error, done func(core.Ack, error)) {
			if failedWith(err, core.CodeUnavailable) {
				err = &core.SendError{Code: core.CodeUnavailable, Detail: "down", Err: fmt.Errorf("dial mem://user:%s@far", memorySecret)}
			}
			done(ack, err)
		})},
		{"shows a secret in its status", "errors, status and log hold no secret", func(b *broken) {
			b.status = func(s core.Status) core.Status {
				s.Detail = map[string]any{"password": memorySecret}
				return s
			}
		}},
	}
}

// onDown is a fault in what becomes of the sends that are open when the link
// goes down, be it by a cut or for the end.
func onDown(down func(*broken) bool, wrong func(b *broken, done func(core.Ack, error))) func(*broken) {
	return func(b *broken) {
		b.write = func(ctx context.Context, out core.Outbound, done func(core.Ack, error)) {
			wasUp := !down(b)
			b.Memory.Send(ctx, out, func(ack core.Ack, err error) {
				if wasUp && down(b) && failedWith(err, core.CodeUnavailable) {
					wrong(b, done)
					return
				}
				done(ack, err)
			})
		}
	}
}

// oneAtATime lets a send wait while another destination has one open.
func oneAtATime(b *broken) {
	var mu sync.Mutex
	open := map[core.Recipient]int{}
	free := func(to core.Recipient) bool {
		mu.Lock()
		defer mu.Unlock()
		for other, n := range open {
			if other != to && n > 0 {
				return false
			}
		}
		open[to]++
		return true
	}
	b.write = func(ctx context.Context, out core.Outbound, done func(core.Ack, error)) {
		for !free(out.Recipient) {
			select {
			case <-time.After(time.Millisecond):
			case <-ctx.Done():
				done(core.Ack{}, &core.SendError{Code: core.CodeTimeout, Detail: "another destination is busy"})
				return
			}
		}
		b.Memory.Send(ctx, out, func(ack core.Ack, err error) {
			mu.Lock()
			open[out.Recipient]--
			mu.Unlock()
			done(ack, err)
		})
	}
}

// narrowWindow lets half as many sends be under way as are declared.
func narrowWindow(b *broken) {
	window := make(chan struct{}, b.Memory.Limits().InFlight/2)
	b.write = func(ctx context.Context, out core.Outbound, done func(core.Ack, error)) {
		select {
		case window <- struct{}{}:
		case <-ctx.Done():
			done(core.Ack{}, &core.SendError{Code: core.CodeTimeout, Detail: "the window is full"})
			return
		}
		b.Memory.Send(ctx, out, func(ack core.Ack, err error) {
			<-window
			done(ack, err)
		})
	}
}

// stayReady goes on saying ready once it has been.
func stayReady(b *broken) {
	var once sync.Once
	was := false
	b.status = func(s core.Status) core.Status {
		if s.State == core.StateReady {
			once.Do(func() { was = true })
		}
		if was && s.State == core.StateNotReady {
			s.State, s.Why = core.StateReady, ""
		}
		return s
	}
}

// deafAfterCut receives nothing over a new connection, unless it still owes a
// settlement from the one before.
func deafAfterCut(b *broken) {
	var mu sync.Mutex
	unsettled, connection, deaf := 0, 0, false
	b.offer = func(next offerFunc) offerFunc {
		return func(ctx context.Context, in core.Inbound, settle func(core.Settlement)) error {
			mu.Lock()
			if now := b.epoch(); now != connection {
				connection, deaf = now, unsettled == 0
			}
			unsettled++
			lost := deaf
			mu.Unlock()
			if lost {
				return nil
			}
			return next(ctx, in, func(s core.Settlement) {
				mu.Lock()
				unsettled--
				mu.Unlock()
				settle(s)
			})
		}
	}
}

// settleByPlace takes the settlement of a frame of an earlier connection for
// that of the newest frame.
func settleByPlace(b *broken) {
	var mu sync.Mutex
	var newest func(core.Settlement)
	b.offer = func(next offerFunc) offerFunc {
		return func(ctx context.Context, in core.Inbound, settle func(core.Settlement)) error {
			mu.Lock()
			newest = settle
			mu.Unlock()
			offered := b.epoch()
			return next(ctx, in, func(s core.Settlement) {
				mu.Lock()
				wrong := newest
				mu.Unlock()
				if b.epoch() != offered {
					wrong(s)
					return
				}
				settle(s)
			})
		}
	}
}

// waitForSettlements returns from Run only once every frame is settled.
func waitForSettlements(b *broken) {
	var unsettled sync.WaitGroup
	b.run = func(ctx context.Context, in core.Intake) error {
		defer unsettled.Wait()
		return b.Memory.Run(ctx, in)
	}
	b.offer = func(next offerFunc) offerFunc {
		return func(ctx context.Context, in core.Inbound, settle func(core.Settlement)) error {
			unsettled.Add(1)
			err := next(ctx, in, func(s core.Settlement) {
				settle(s)
				unsettled.Done()
			})
			if err != nil {
				unsettled.Done()
			}
			return err
		}
	}
}
