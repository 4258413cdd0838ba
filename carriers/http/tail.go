package http

import (
	"context"
	"log/slog"
	"sort"
	"sync"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

const (
	// tailBytes and tailFrames bound what a tail keeps for its readers.
	tailBytes  = 4 << 20
	tailFrames = 4096
	// quietPause is how long a tail or a poll whose waking was in vain leaves the
	// store alone while others commit.
	quietPause = 10 * time.Millisecond
	// storePause is how long a tail leaves a store alone that gave an error.
	storePause = time.Second
)

// channelKey names a channel.
type channelKey struct{ workspace, channel string }

// frame is one message of a channel, encoded once for all readers.
type frame struct {
	seq int64
	// parties are the two peers of a direct room, empty otherwise.
	parties [2]string
	event   []byte
}

func newFrame(m *core.Message) frame {
	return frame{seq: m.Seq, parties: m.Direct, event: envelopeEvent(m.Seq, m.Envelope)}
}

// tails holds one tail for each channel that has readers.
type tails struct {
	ctx    context.Context
	reader Reader
	logger *slog.Logger

	mu   sync.Mutex
	open map[channelKey]*tail
	wg   sync.WaitGroup
}

func newTails(ctx context.Context, reader Reader, logger *slog.Logger) *tails {
	return &tails{ctx: ctx, reader: reader, logger: logger, open: map[channelKey]*tail{}}
}

// join gives the channel's tail. Where there is none yet, a new one begins
// behind newest, which must be committed already. leave must be called.
func (ts *tails) join(key channelKey, newest int64) (t *tail, leave func()) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t = ts.open[key]
	if t == nil {
		ctx, cancel := context.WithCancel(ts.ctx)
		t = &tail{key: key, base: newest, grown: make(chan struct{}), cancel: cancel}
		ts.open[key] = t
		ts.wg.Go(func() { t.follow(ctx, ts.reader, ts.logger) })
	}
	t.readers++
	return t, func() { ts.leave(t) }
}

func (ts *tails) leave(t *tail) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if t.readers--; t.readers == 0 {
		t.cancel()
		delete(ts.open, t.key)
	}
}

// wait returns when every tail has ended, which they do with the context and
// with their readers.
func (ts *tails) wait() { ts.wg.Wait() }

// tail reads a channel from the store once for all of its readers, and keeps
// its latest messages. A reader that falls behind what is kept reads the store
// by itself: it costs the others nothing, and misses nothing.
type tail struct {
	key    channelKey
	cancel context.CancelFunc
	// readers is guarded by the mutex of tails.
	readers int

	mu sync.Mutex
	// Every message of the channel behind base, up to the last read, is in frames.
	base   int64
	frames []frame
	bytes  int
	// grown is closed when frames have been added.
	grown chan struct{}
}

// since appends the frames behind the position, at most about writeAtOnce bytes
// of them. With none, grown tells when there are more. ok is false for a
// position that the tail does not reach back to; the reader then finds
// everything up to base in the store.
func (t *tail) since(frames []frame, position int64) (_ []frame, grown <-chan struct{}, base int64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if position < t.base {
		return nil, nil, t.base, false
	}
	from := sort.Search(len(t.frames), func(i int) bool { return t.frames[i].seq > position })
	to, size := from, 0
	for to < len(t.frames) && size < writeAtOnce {
		size += len(t.frames[to].event)
		to++
	}
	return append(frames, t.frames[from:to]...), t.grown, t.base, true
}

// follow reads what is committed until ctx ends.
func (t *tail) follow(ctx context.Context, reader Reader, logger *slog.Logger) {
	position, size := t.base, newReadSize()
	// woken is true after a commit that may have been of other channels only.
	woken := false
	for {
		// Asked for before reading, so that nothing is missed in between.
		committed := reader.Committed()
		messages, err := reader.MessagesAfter(ctx, t.key.workspace, t.key.channel, position, size.limit)
		if ctx.Err() != nil {
			return
		}
		switch {
		case err != nil:
			logger.Warn("stream cannot read the store", "workspace", t.key.workspace, "channel", t.key.channel, "error", err)
			pause(ctx, storePause)
		case len(messages) > 0:
			position = messages[len(messages)-1].Seq
			t.add(messages)
			size.adapt(messages)
			woken = false
		default:
			if woken {
				pause(ctx, quietPause)
			}
			select {
			case <-committed:
				woken = true
			case <-ctx.Done():
				return
			}
		}
	}
}

// add encodes messages and lets go of what is too old.
func (t *tail) add(messages []core.Message) {
	fresh := make([]frame, len(messages))
	for i := range messages {
		fresh[i] = newFrame(&messages[i])
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.frames = append(t.frames, fresh...)
	for _, f := range fresh {
		t.bytes += len(f.event)
	}
	drop := 0
	for len(t.frames)-drop > tailFrames || (t.bytes > tailBytes && drop < len(t.frames)-1) {
		t.bytes -= len(t.frames[drop].event)
		t.base = t.frames[drop].seq
		t.frames[drop] = frame{}
		drop++
	}
	t.frames = t.frames[drop:]
	close(t.grown)
	t.grown = make(chan struct{})
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
