package http

import (
	"context"
	nethttp "net/http"

	"github.com/compozy-gateway/gateway/core"
)

// getStream lets the caller observe a channel as it grows, as server-sent
// events: from now on, or from a position without a gap or a repeat.
func (s *server) getStream(w nethttp.ResponseWriter, r *request) error {
	if r.Method == nethttp.MethodHead {
		return methodNotAllowed(nethttp.MethodGet)
	}
	workspace, channel, err := r.channel()
	if err != nil {
		return err
	}
	peer, err := r.readingPeer(workspace, channel)
	if err != nil {
		return err
	}
	leave, err := s.enterStream()
	if err != nil {
		return err
	}
	defer leave()
	position, set, unknown, err := r.resume()
	if err != nil {
		return err
	}
	ctx, cancel := s.untilClosing(r)
	defer cancel()
	newest, err := s.newest(ctx)
	if err != nil {
		return err
	}
	t, leaveTail := s.tails.join(channelKey{workspace, channel}, newest)
	defer leaveTail()

	es, stop, err := s.startEvents(w)
	defer stop()
	if err != nil {
		return errHungUp
	}
	o := &observer{s: s, es: es, t: t, size: newReadSize(), position: position, peer: peer, admin: r.caller.admin}
	switch {
	case !set:
		o.position = newest
		err = es.position(newest)
	case unknown || position > newest:
		o.position = newest
		if err = es.gap(position, newest); err == nil {
			err = es.flush()
		}
	}
	if err == nil {
		err = o.run(ctx)
	}
	return s.endOfStream(ctx, err)
}

// newest is the position of the latest message of all.
func (s *server) newest(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.ReadTimeout)
	defer cancel()
	_, newest, err := s.backend.Reader.SeqRange(ctx)
	return newest, err
}

// untilClosing is the request's context, ended by the gateway's stop as well.
func (s *server) untilClosing(r *request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(s.closing, cancel)
	return ctx, func() { stop(); cancel() }
}

// endOfStream tells an end that was asked for, which the reader sees as an end,
// from one that cuts it off. Both resume from the last event.
func (s *server) endOfStream(ctx context.Context, err error) error {
	if ctx.Err() != nil || err == nil {
		return nil
	}
	s.host.Logger.Debug("stream closed", "error", err)
	return errHungUp
}

// observer is one reader of a stream.
type observer struct {
	s        *server
	es       *eventStream
	t        *tail
	size     *readSize
	position int64
	peer     string
	admin    bool
	// batch is used again for each write.
	batch []frame
}

// run writes events until ctx ends or a write fails.
func (o *observer) run(ctx context.Context) error {
	for {
		frames, grown, base, ok := o.t.since(o.batch[:0], o.position)
		var err error
		switch {
		case !ok:
			err = o.catchUp(ctx, base)
		case len(frames) > 0:
			o.batch = frames
			err = o.write(frames)
		default:
			err = o.idle(ctx, grown)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// write writes the frames that the reader may see.
func (o *observer) write(frames []frame) error {
	for _, f := range frames {
		o.position = f.seq
		seen := core.Message{Direct: f.parties}
		if !o.admin && !seen.MayRead(o.peer) {
			continue
		}
		if err := o.es.write(f.event); err != nil {
			return err
		}
	}
	return o.es.flushOrBeat()
}

// idle waits for something to write, and keeps the connection awake.
func (o *observer) idle(ctx context.Context, grown <-chan struct{}) error {
	select {
	case <-grown:
		return nil
	case <-o.es.beat.C:
		return o.es.comment("heartbeat")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// catchUp writes one page from the store, which holds everything up to base.
func (o *observer) catchUp(ctx context.Context, base int64) error {
	read, cancel := context.WithTimeout(ctx, o.s.cfg.ReadTimeout)
	defer cancel()
	messages, err := o.s.backend.Reader.MessagesAfter(read, o.t.key.workspace, o.t.key.channel, o.position, o.size.limit)
	if err != nil {
		return err
	}
	// Asked for after reading: what was deleted before it is noticed.
	oldest, _, err := o.s.backend.Reader.SeqRange(read)
	if err != nil {
		return err
	}
	if goesOn := oldest - 1; o.position < goesOn {
		if len(messages) > 0 {
			goesOn = min(goesOn, messages[0].Seq-1)
		}
		if err := o.es.gap(o.position, goesOn); err != nil {
			return err
		}
	}
	frames := make([]frame, len(messages))
	for i := range messages {
		frames[i] = newFrame(&messages[i])
	}
	if err := o.write(frames); err != nil {
		return err
	}
	if len(messages) < o.size.limit {
		o.position = max(o.position, base)
	}
	o.size.adapt(messages)
	return nil
}
