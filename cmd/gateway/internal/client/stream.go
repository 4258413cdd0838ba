package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Event is one server-sent event.
type Event struct {
	// Name is the event's name; "message" when the server gave none. It is empty
	// where the server gave an id alone: the position from which it goes on.
	Name string
	// ID is the last id that the server gave.
	ID string
	// Data is the event's data, lines joined by line feeds.
	Data []byte
}

const (
	// maxEventLine bounds what one line of a stream may take in memory.
	maxEventLine = 64 << 20
	// silence is how long a stream may say nothing, heartbeats included, before
	// its connection is taken for dead.
	silence = 45 * time.Second
)

var errSilent = errors.New("the stream fell silent")

// Stream follows a server-sent event stream and calls each for every event. It
// returns when the stream ends, with an error in every case but a clean end.
// Where lastID is not empty the stream starts behind it.
func (c *Client) Stream(ctx context.Context, path string, query url.Values, lastID string, each func(Event) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer watchdog.Stop()

	header := http.Header{"Accept": {"text/event-stream"}}
	if lastID != "" {
		header.Set("Last-Event-ID", lastID)
	}
	resp, err := c.do(ctx, http.MethodGet, path, query, nil, header)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	alive := func() { watchdog.Reset(silence) }
	err = readEvents(resp.Body, alive, each)
	var lost *readError
	if errors.As(err, &lost) {
		return &UnreachableError{URL: c.base, Err: errors.Join(lost.err, context.Cause(ctx))}
	}
	return err
}

// readError is a failure of the connection, as opposed to one of each.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }

// readEvents parses the event stream format: fields by line, an empty line ends
// an event, a line that begins with a colon is a comment.
func readEvents(r io.Reader, alive func(), each func(Event) error) error {
	reader := bufio.NewReaderSize(r, 64<<10)
	event := Event{}
	var data [][]byte
	positioned := false
	for {
		line, err := readLine(reader)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &readError{err}
		}
		alive()
		if len(line) > 0 {
			field, value, _ := bytes.Cut(line, []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch string(field) {
			case "event":
				event.Name = string(value)
			case "id":
				event.ID = string(value)
				positioned = true
			case "data":
				data = append(data, value)
			}
			continue
		}
		if data != nil || event.Name != "" || positioned {
			event.Data = bytes.Join(data, []byte("\n"))
			if event.Name == "" && data != nil {
				event.Name = "message"
			}
			if err := each(event); err != nil {
				return err
			}
		}
		event, data, positioned = Event{ID: event.ID}, nil, false
	}
}

// readLine reads up to a line feed, which is left out with a carriage return
// before it. A last line without its end is dropped, as the format demands.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(line) > maxEventLine:
			return nil, fmt.Errorf("a line of the stream is longer than %d bytes", maxEventLine)
		}
	}
}
