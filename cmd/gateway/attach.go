package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/compozy-gateway/gateway/cmd/gateway/internal/client"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
)

// closingTimeout bounds the last calls of an attachment that ends.
const closingTimeout = 5 * time.Second

func (p *process) attachCommand() *cobra.Command {
	var (
		r      remote
		seat   client.Seat
		detach bool
	)
	cmd := &cobra.Command{
		Use:   "attach",
		Short: "Join this process's stdin and stdout to a running gateway as a peer",
		Long: `Attach a peer whose messages come on stdout and whose own envelopes are read from
stdin, one JSON object on each line, as a local agent would be (the frames are
described in docs/agents.md). Each line of stdin is answered on stdout by
{"carrier":{"ack":...}} once it is committed, or {"carrier":{"nack":...}} when it
is refused.

What is received is acknowledged to the gateway after it was written to stdout;
what was not acknowledged comes again. Broken connections are taken up again, and
lines that had no answer are sent again, which is safe.

The command ends when stdin does. The peer stays attached, and its inbox keeps
what comes, unless --detach is given.`,
		Example: "  gateway attach --workspace demo --channel general --peer bob\n  socat EXEC:./agent EXEC:'gateway attach --workspace demo --channel general --peer bob'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := r.open()
			if err != nil {
				return err
			}
			defer c.Close()
			a := &attachment{
				client: c, seat: seat, logger: p.logger(), detach: detach,
				out: &lineWriter{w: p.stdout},
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
}

// run ends when stdin does, with ctx, or on what no retry can mend.
func (a *attachment) run(ctx context.Context, stdin io.Reader) error {
	lines := readLines(ctx, stdin)
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
	err = group.Wait()
	if ctx.Err() != nil {
		err = nil // Being told to stop is no failure.
	}
	return a.close(context.WithoutCancel(ctx), err)
}

// close tells the gateway how far the process has got.
func (a *attachment) close(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(ctx, closingTimeout)
	defer cancel()
	if a.written > a.acked {
		if ackErr := a.client.Acknowledge(ctx, a.seat, a.written); ackErr != nil {
			a.logger.Warn("the last messages were not acknowledged and will come again", "error", ackErr)
		}
	}
	if a.detach {
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
