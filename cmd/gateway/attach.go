package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/compozy-gateway/gateway/cmd/gateway/internal/client"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
)

const (
	// closingTimeout bounds the last calls of an attachment that ends.
	closingTimeout = 5 * time.Second
	// standardPatience is how long an attachment whose stdin has ended waits for a
	// gateway that takes nothing.
	standardPatience = 30 * time.Second
)

func (p *process) attachCommand() *cobra.Command {
	var (
		r        remote
		seat     client.Seat
		detach   bool
		patience time.Duration
	)
	cmd := &cobra.Command{
		Use:   "attach",
		Short: "Join this process's stdin and stdout to a running gateway as a peer",
		Long: `Attach a peer whose messages come on stdout and whose own envelopes are read from
stdin, one JSON object on each line, as a local agent would be (the frames are
described in docs/agents.md). Each line of stdin is answered on stdout by
{"carrier":{"ack":...}} once it is committed, or {"carrier":{"nack":...}} when it
is refused. A line whose "from" is not --peer is refused without being sent.

What is received is acknowledged to the gateway after it was written to stdout;
what was not acknowledged comes again. Broken connections are taken up again, and
lines that had no answer are sent again, which is safe.

The command ends when stdin does and every line has its answer. When the gateway
takes nothing for as long as --give-up-after says once stdin has ended, what had
no answer is given up, and the exit status is 1. The peer stays attached, and its
inbox keeps what comes, unless --detach is given.`,
		Example: "  gateway attach --workspace demo --channel general --peer bob\n  socat EXEC:./agent EXEC:'gateway attach --workspace demo --channel general --peer bob'",
		Args:    noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if patience <= 0 {
				return usagef("--give-up-after: %s is not positive", patience)
			}
			c, err := r.open()
			if err != nil {
				return err
			}
			defer c.Close()
			a := &attachment{
				client: c, seat: seat, logger: p.logger(), detach: detach,
				out: &lineWriter{w: p.stdout}, patience: patience, progress: make(chan struct{}, 1),
			}
			return a.run(cmd.Context(), p.stdin)
		},
	}
	r.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&seat.Workspace, "workspace", "", "workspace `ID`")
	flags.StringVar(&seat.Channel, "channel", "", "`CHANNEL` to attach in")
	flags.StringVar(&seat.Peer, "peer", "", "`PEER` to be")
	flags.BoolVar(&detach, "detach", false, "end the attachment when stdin ends")
	flags.DurationVar(&patience, "give-up-after", standardPatience, "`DURATION` to wait for a gateway that takes nothing once stdin has ended")
	requireFlags(cmd, "workspace", "channel", "peer")
	return cmd
}

// attachment is one process attached as one peer.
type attachment struct {
	client *client.Client
	seat   client.Seat
	logger *slog.Logger
	detach bool
	out    *lineWriter
	// written is the inbox position up to which everything stands on stdout. It
	// belongs to receive while that runs.
	written int64
	// acked is the position that the gateway has been told.
	acked int64
	// patience is how long the gateway may take nothing once stdin has ended.
	patience time.Duration
	// progress holds a token when the gateway has answered since it was last looked
	// at; a nil one is never looked at.
	progress chan struct{}
}

// errGaveUp ends an attachment whose stdin has ended and whose gateway is away.
var errGaveUp = errors.New("stdin has ended, and the gateway takes nothing")

// run ends when stdin does, with ctx, or on what no retry can mend.
func (a *attachment) run(ctx context.Context, stdin io.Reader) error {
	patient, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	lines, ended := readLines(patient, stdin)
	var watching sync.WaitGroup
	watching.Go(func() { a.watch(patient, ended, giveUp) })
	err := a.exchange(patient, lines)
	if err != nil && errors.Is(context.Cause(patient), errGaveUp) {
		err = fmt.Errorf("%w: no answer for %s (--give-up-after); lines without an answer may not have arrived", errGaveUp, a.patience)
	}
	if ctx.Err() != nil {
		err = nil // Being told to stop is no failure.
	}
	giveUp(nil)
	watching.Wait()
	return a.close(context.WithoutCancel(ctx), err)
}

// exchange attaches the peer, then sends and receives until stdin has ended and
// every line has its answer.
func (a *attachment) exchange(ctx context.Context, lines <-chan inputLine) error {
	err := a.retry(ctx, "attach", func() error { return a.client.Attach(ctx, a.seat) })
	if err != nil {
		return err
	}
	group, running := errgroup.WithContext(ctx)
	receiving, stop := context.WithCancel(running)
	defer stop()
	group.Go(func() error { return a.receive(receiving) })
	group.Go(func() error {
		defer stop()
		return a.post(running, lines)
	})
	return group.Wait()
}

// watch gives up when nothing was answered for a while after stdin has ended. As
// long as stdin may bring more, the gateway may stay away.
func (a *attachment) watch(ctx context.Context, ended <-chan struct{}, giveUp context.CancelCauseFunc) {
	select {
	case <-ctx.Done():
		return
	case <-ended:
	}
	timer := time.NewTimer(a.patience)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.progress:
			timer.Reset(a.patience)
		case <-timer.C:
			giveUp(errGaveUp)
			return
		}
	}
}

// progressed notes that the gateway has answered.
func (a *attachment) progressed() {
	select {
	case a.progress <- struct{}{}:
	default:
	}
}

// close tells the gateway how far the process has got.
func (a *attachment) close(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(ctx, closingTimeout)
	defer cancel()
	if a.written > a.acked && !errors.Is(err, errGaveUp) {
		if ackErr := a.client.Acknowledge(ctx, a.seat, a.written); ackErr != nil {
			a.logger.Warn("the last messages were not acknowledged and will come again", "error", ackErr)
		}
	}
	if a.detach && !errors.Is(err, errGaveUp) {
		if detachErr := a.client.Detach(ctx, a.seat); detachErr != nil && err == nil {
			err = fmt.Errorf("detach %s: %w", a.seat.Peer, detachErr)
		}
	}
	return err
}

// retry repeats a call until it succeeds, ctx ends, or it fails for good.
func (a *attachment) retry(ctx context.Context, what string, call func() error) error {
	var wait backoff
	for {
		err := call()
		if err == nil || !client.Passing(err) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		a.logger.Warn("trying again", "call", what, "error", err)
		if !wait.sleep(ctx, client.RetryAfter(err)) {
			return ctx.Err()
		}
	}
}

// lineWriter writes whole lines from several goroutines.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lineWriter) write(line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.w.Write(append(line, '\n'))
	return err
}
