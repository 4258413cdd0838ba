package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// acceptHTTP posts NDJSON to the whole binary with its links up, and counts
// answers, which follow the commits.
func (b *bench) acceptHTTP(ctx context.Context, inFlight int) (float64, error) {
	s, err := b.startSite(ctx)
	if err != nil {
		return 0, err
	}
	defer s.stop()
	g, err := b.startGateway(ctx, s.nats.address, s.mqtt)
	if err != nil {
		return 0, err
	}
	defer g.stop()
	w := newWindow(inFlight)
	load, stop := context.WithCancel(ctx)
	defer stop()
	var posting errgroup.Group
	for range min(inFlight, 4) {
		posting.Go(func() error { return b.post(load, g, w, b.mint.say) })
	}
	rate := w.measure(ctx, b.warm, b.counted)
	resident, err := g.resident()
	if err != nil {
		return 0, err
	}
	b.results.add(memoryUnderLoad, "gateway, HTTP NDJSON", float64(inFlight), mebibytes, float64(resident)/(1<<20))
	stop()
	return rate, posting.Wait()
}

// post streams messages in one request until ctx ends, then waits for the
// answers that are still to come.
func (b *bench) post(ctx context.Context, g *gatewayProcess, w *window, draw func() (int64, []byte)) error {
	body, feed := io.Pipe()
	request, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodPost, g.url("/v0/envelopes"), body)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-ndjson")
	// numbers are those of the lines, in order.
	numbers := make(chan int64, cap(w.room)+1)
	var feeding errgroup.Group
	feeding.Go(func() error {
		defer close(numbers)
		out := bufio.NewWriterSize(feed, 32<<10)
		err := feedLines(ctx, out, w, draw, numbers)
		return firstOf(err, out.Flush(), feed.CloseWithError(err))
	})
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		_ = body.CloseWithError(err)
		return firstOf(err, feeding.Wait())
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes(), []byte(`"status":202`)) {
			return fmt.Errorf("post: %s", lines.Bytes())
		}
		w.arrive(<-numbers)
	}
	return firstOf(lines.Err(), feeding.Wait())
}

func feedLines(ctx context.Context, out *bufio.Writer, w *window, draw func() (int64, []byte), numbers chan<- int64) error {
	for {
		if len(w.room) == cap(w.room) {
			if err := out.Flush(); err != nil {
				return err
			}
		}
		if !w.enter(ctx) {
			return nil
		}
		n, raw := draw()
		w.left(n, time.Now())
		numbers <- n
		if _, err := out.Write(append(raw, '\n')); err != nil {
			return err
		}
	}
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
