package stdio

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/compozy-gateway/gateway/core"
	"golang.org/x/time/rate"
)

const (
	// mostShown is how much of a line stands in the log, in bytes.
	mostShown = 200
	// noisePerSecond and noiseBurst bound how many noisy lines of one agent are
	// logged; all are counted.
	noisePerSecond = 1
	noiseBurst     = 20
)

// receiver reads what one process writes, line by line and in order.
type receiver struct {
	agent *agent
	in    core.Intake
	input *input
	// session knows the wake that is running.
	session *session
	loud    *rate.Limiter
}

func newReceiver(a *agent, in core.Intake, input *input, s *session) *receiver {
	return &receiver{agent: a, in: in, input: input, session: s, loud: rate.NewLimiter(noisePerSecond, noiseBurst)}
}

// run reads to the end of the output. Once the gateway takes nothing more it
// only keeps the pipe empty, so that the agent can come to its own end.
func (r *receiver) run(ctx context.Context, output io.Reader) {
	lines := newLineReader(output, r.agent.maxLine)
	for {
		l, err := lines.next()
		if l.size > 0 && r.take(ctx, l) != nil {
			_, _ = io.Copy(io.Discard, output)
			return
		}
		if err != nil {
			return // The end, or as good as the end: the process tells the rest.
		}
	}
}

// take deals with one line. It returns an error when the gateway takes nothing
// more.
func (r *receiver) take(ctx context.Context, l line) error {
	if l.cut() {
		return r.offer(ctx, core.Inbound{Payload: l.data, Size: l.size})
	}
	data, kind, said := classify(l.data)
	switch kind {
	case lineEnvelope:
		return r.offer(ctx, core.Inbound{Payload: data})
	case lineControl:
		return r.control(ctx, said, data)
	case lineNoise:
		r.agent.count(func(n *counters) { n.noise++ })
		r.show("is no envelope", data)
	case lineBlank:
	}
	return nil
}

func (r *receiver) offer(ctx context.Context, in core.Inbound) error {
	in.Arrival = core.ArrivalIngress
	in.Principal = r.agent.principal
	r.agent.received()
	r.input.expect()
	over := func() {}
	if t := r.session.current(); t != nil {
		in.Wake, over = t.id, t.settled
		t.expect()
	}
	err := r.in.Offer(ctx, in, func(s core.Settlement) {
		r.refused(s)
		r.input.settled(settlementLine(s))
		over()
	})
	if err != nil {
		r.input.settled(nil)
		over()
	}
	return err
}

// control takes what the agent says about the carrier. It is never answered, so
// an agent that repeats what it reads starts no loop.
func (r *receiver) control(ctx context.Context, said control, data []byte) error {
	if said.done != "" && r.session.done(said, r.agent.cfg.Launch != LaunchWake) {
		if len(said.unread) > 0 {
			r.agent.log.Warn("the agent ended its wake with what cannot be read", "wake", said.done,
				"members", strings.Join(said.unread, ", "), "line", r.agent.presentable(data))
		}
		return nil
	}
	if said.ack == "" || r.agent.cfg.Ack != AckExplicit {
		r.agent.count(func(n *counters) { n.unused++ })
		r.show("is a control line that has no use here", data)
		return nil
	}
	delivery, late, known := r.input.acked(said.ack)
	switch {
	case !known:
		r.agent.count(func(n *counters) { n.unused++ })
		r.show("acknowledges what the agent was not given", data)
	case late:
		return r.ackedLate(ctx, delivery)
	}
	return nil
}

func (r *receiver) ackedLate(ctx context.Context, id core.DeliveryID) error {
	ack := core.Ack{Kind: core.AckStdioAck, At: r.agent.host.Now(), Detail: "agent " + r.agent.name}
	err := r.in.Acked(ctx, id, ack)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil || errors.Is(err, core.ErrStopping):
		return err
	}
	r.agent.log.Warn("a late acknowledgement was not recorded", "delivery", id.String(), "error", err)
	return nil
}

// refused logs an envelope of the agent that was refused: the agent is told, but
// not whoever runs it.
func (r *receiver) refused(s core.Settlement) {
	if s.Verdict != core.VerdictRejected || s.Rejection == nil || !r.loud.Allow() {
		return
	}
	r.agent.log.Warn("an envelope of the agent is refused", "id", shorten(s.ID, mostShown),
		"reason_code", string(s.Rejection.Reason), "detail", shorten(s.Rejection.Detail, mostShown))
}

// show logs a line that came to nothing.
func (r *receiver) show(why string, data []byte) {
	if r.loud.Allow() {
		r.agent.log.Info("agent wrote a line that comes to nothing", "why", "it "+why, "bytes", len(data), "line", r.agent.presentable(data))
	}
}
