package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"

	"github.com/compozy-gateway/gateway/cmd/gateway/internal/client"
	"github.com/compozy-gateway/gateway/core"
)

const (
	// queuedLines is how many lines of stdin may wait while others are sent.
	queuedLines = 64
	// maxBatchBytes bounds the lines that are sent together.
	maxBatchBytes = 1 << 20
)

// inputLine is one line of stdin, or the error that ended it.
type inputLine struct {
	text []byte
	err  error
}

// readLines reads stdin until it ends, and closes both channels then; ended is
// closed from the start when stdin is a file, which cannot grow into more than
// what is to be sent. A read that blocks cannot be interrupted: when ctx ends
// first, the reader ends with the next line, or with the process.
func readLines(ctx context.Context, stdin io.Reader) (lines <-chan inputLine, ended <-chan struct{}) {
	queue, end := make(chan inputLine, queuedLines), make(chan struct{})
	over := sync.OnceFunc(func() { close(end) })
	if isFile(stdin) {
		over()
	}
	go func() {
		defer close(queue)
		defer over()
		reader := newLineReader(stdin)
		for {
			text, err := reader.next()
			if errors.Is(err, io.EOF) {
				return
			}
			select {
			case queue <- inputLine{text, err}:
			case <-ctx.Done():
				return
			}
			if err != nil && !errors.Is(err, errLineTooLong) {
				return
			}
		}
	}()
	return queue, end
}

// isFile reports whether a reader is a regular file: its end is there already,
// though it has not been read yet.
func isFile(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}

// post sends the lines of stdin in order until there are no more. Lines that
// waited while others were sent go together.
func (a *attachment) post(ctx context.Context, lines <-chan inputLine) error {
	for {
		batch, more, err := a.collect(ctx, lines)
		if err != nil {
			return err
		}
		if err := a.postBatch(ctx, batch); err != nil {
			return err
		}
		if !more {
			return nil
		}
	}
}

// collect waits for a line and takes along what is there already.
func (a *attachment) collect(ctx context.Context, lines <-chan inputLine) (batch [][]byte, more bool, err error) {
	size := 0
	for size < maxBatchBytes {
		var line inputLine
		var ok bool
		if len(batch) > 0 {
			select {
			case line, ok = <-lines:
			default:
				return batch, true, nil
			}
		} else {
			select {
			case line, ok = <-lines:
			case <-ctx.Done():
				return nil, false, ctx.Err()
			}
		}
		if !ok {
			return batch, false, nil
		}
		envelope, err := a.envelope(line)
		if err != nil {
			return nil, false, err
		}
		if envelope != nil {
			batch = append(batch, envelope)
			size += len(envelope)
		}
	}
	return batch, true, nil
}

// envelope sorts out what is not to be sent: noise and control lines are logged, a
// line that is too long or speaks for somebody else is refused here.
func (a *attachment) envelope(line inputLine) ([]byte, error) {
	switch {
	case errors.Is(line.err, errLineTooLong):
		return nil, a.answer(client.Result{
			Status: http.StatusRequestEntityTooLarge, ReasonCode: string(core.ReasonMalformed), Detail: line.err.Error(),
		})
	case line.err != nil:
		return nil, line.err
	case len(bytes.TrimSpace(line.text)) == 0:
		return nil, nil
	case bytes.TrimLeft(line.text, " \t\r")[0] != '{' || isControl(line.text):
		a.logger.Info("a line of stdin is no envelope", "bytes", len(line.text))
		return nil, nil
	}
	if id, from := speaker(line.text); from != "" && from != a.seat.Peer {
		return nil, a.answer(client.Result{
			Status: http.StatusForbidden, ID: id, ReasonCode: string(core.ReasonNotTarget),
			Detail: fmt.Sprintf("from is %s, but this process is attached as %s", printable(from), a.seat.Peer),
		})
	}
	return line.text, nil
}

// speaker reads who speaks in an envelope; it is empty where that cannot be read,
// which is the gateway's to judge.
func speaker(line []byte) (id, from string) {
	var envelope struct {
		ID   any `json:"id"`
		From any `json:"from"`
	}
	if json.Unmarshal(line, &envelope) != nil {
		return "", ""
	}
	id, _ = envelope.ID.(string)
	from, _ = envelope.From.(string)
	return id, from
}

// isControl reports whether a line is about the carrier: an object with the
// member carrier and without protocol.
func isControl(line []byte) bool {
	var frame struct {
		Carrier  json.RawMessage `json:"carrier"`
		Protocol json.RawMessage `json:"protocol"`
	}
	return json.Unmarshal(line, &frame) == nil && frame.Carrier != nil && frame.Protocol == nil
}

// postBatch sends lines until each has its answer. Those whose answer was lost
// are sent again with the same bytes; at worst they are duplicates.
func (a *attachment) postBatch(ctx context.Context, batch [][]byte) error {
	return a.retry(ctx, "send", func() error {
		if len(batch) == 0 {
			return nil
		}
		body := append(bytes.Join(batch, []byte("\n")), '\n')
		var passing error
		_, err := a.client.PostLines(ctx, bytes.NewReader(body), func(r client.Result) error {
			if r.Passing() {
				passing = &client.Problem{Status: r.Status, Title: r.Title, Detail: r.Detail}
				return passing
			}
			if len(batch) == 0 {
				return errors.New("the gateway answered more lines than it was sent")
			}
			batch = batch[1:]
			a.progressed()
			return a.answer(r)
		})
		if err == nil && len(batch) > 0 {
			return &client.UnreachableError{URL: a.client.URL(), Err: errors.New("the answer ended early")}
		}
		return err
	})
}

// control is a line about the carrier, as docs/agents.md describes it.
type control struct {
	Carrier controlBody `json:"carrier"`
}

type controlBody struct {
	Ack        *string `json:"ack,omitempty"`
	Seq        *int64  `json:"seq,omitempty"`
	Duplicate  bool    `json:"duplicate,omitempty"`
	Parked     bool    `json:"parked,omitempty"`
	ReasonCode string  `json:"reason_code,omitempty"`
	Detail     string  `json:"detail,omitempty"`
}

// refusal differs from controlBody in that nack is there even when the id could
// not be read, as null.
type refusal struct {
	Nack       *string `json:"nack"`
	ReasonCode string  `json:"reason_code"`
	Detail     string  `json:"detail"`
}

// answer tells the process what became of one of its lines.
func (a *attachment) answer(r client.Result) error {
	id := &r.ID
	if r.ID == "" {
		id = nil
	}
	var frame any = control{controlBody{Ack: id, Seq: r.Seq, Duplicate: r.Duplicate, Parked: r.Parked}}
	if !r.Committed() {
		frame = map[string]refusal{"carrier": {Nack: id, ReasonCode: r.ReasonCode, Detail: r.Detail}}
	}
	line, err := json.Marshal(frame)
	if err != nil {
		return err
	}
	return a.out.write(line)
}
