package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	fanout        = "deliveries to SSE readers"
	fanoutReaders = 200
)

// measureFanout posts to a channel that many read by SSE, with and without one
// of them stalled.
func (b *bench) measureFanout(ctx context.Context) error {
	for _, stalled := range []bool{false, true} {
		rate, err := b.fanOut(ctx, stalled)
		if err != nil {
			return err
		}
		name := "all read"
		if stalled {
			name = "one stalled"
		}
		b.results.add(fanout, name, fanoutReaders, perSecond, rate)
	}
	return nil
}

func (b *bench) fanOut(ctx context.Context, stalled bool) (float64, error) {
	g, err := b.startGateway(ctx, "", "")
	if err != nil {
		return 0, err
	}
	defer g.stop()
	reading, stopReading := context.WithCancel(ctx)
	defer stopReading()
	var events atomic.Int64
	var readers errgroup.Group
	open := make(chan struct{}, fanoutReaders)
	for range fanoutReaders {
		readers.Go(func() error { return g.readStream(reading, &events, open) })
	}
	for range fanoutReaders {
		select {
		case <-open:
		case <-time.After(startsIn):
			return 0, errors.New("not every reader has its stream")
		}
	}
	if stalled {
		conn, err := g.stall()
		if err != nil {
			return 0, err
		}
		defer func() { _ = conn.Close() }()
	}
	// Few in flight: a commit of few messages is read by all before the next, as
	// in a conversation.
	w := newWindow(fanoutWindow)
	load, stop := context.WithCancel(ctx)
	defer stop()
	var posting errgroup.Group
	posting.Go(func() error { return b.post(load, g, w, b.mint.say) })
	pause(ctx, b.warm)
	began, before := time.Now(), events.Load()
	pause(ctx, 2*b.counted)
	rate := float64(events.Load()-before) / time.Since(began).Seconds()
	stop()
	err = posting.Wait()
	stopReading()
	return rate, firstOf(err, readers.Wait())
}

const fanoutWindow = 16

// readStream counts events until ctx ends.
func (g *gatewayProcess) readStream(ctx context.Context, events *atomic.Int64, open chan<- struct{}) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url(streamPath), nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("stream: %s", response.Status)
	}
	open <- struct{}{}
	lines := bufio.NewReaderSize(response.Body, 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if bytes.HasPrefix(line, []byte("data:")) {
			events.Add(1)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return errors.New("a stream ended while it was read")
		case err != nil:
			return err
		}
	}
}

const streamPath = "/v0/workspaces/" + workspace + "/channels/" + channel + "/stream"

// stall opens a stream that nobody reads.
func (g *gatewayProcess) stall() (net.Conn, error) {
	conn, err := net.Dial("tcp", g.address)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", streamPath, g.address)
	return conn, err
}
