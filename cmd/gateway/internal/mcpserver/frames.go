package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxFrame is how many bytes one line of the host may have.
const maxFrame = 16 << 20

// The error codes of JSON-RPC 2.0 for what cannot be a call.
const (
	parseError     = -32700
	invalidRequest = -32600
)

// frames gives the MCP library the lines of the host that it can read, one a
// call. A line that is no frame is answered here: the library would end the
// session for it, with all that is under way.
type frames struct {
	io.Closer
	ctx     context.Context
	in      *bufio.Reader
	back    *answers
	pending []byte
}

func newFrames(ctx context.Context, in io.ReadCloser, back *answers) *frames {
	return &frames{Closer: in, ctx: ctx, in: bufio.NewReaderSize(in, 64<<10), back: back}
}

// Read gives the end of the input once what came before it is answered.
func (f *frames) Read(p []byte) (int, error) {
	for len(f.pending) == 0 {
		line, err := f.line()
		if line = bytes.TrimSpace(line); len(line) > 0 && !errors.Is(err, errTooLong) {
			said, no := check(line)
			if no == nil {
				f.back.calls.came(said)
				f.pending = append(line, '\n')
				break // An error comes again with the next read.
			} else if refused := f.back.refuse(*no); refused != nil {
				return 0, refused
			}
		}
		switch {
		case errors.Is(err, errTooLong):
			if refused := f.back.refuse(fault{Code: parseError, Message: err.Error()}); refused != nil {
				return 0, refused
			}
		case errors.Is(err, io.EOF):
			f.back.calls.end(f.ctx)
			return 0, err
		case err != nil:
			return 0, err
		}
	}
	n := copy(p, f.pending)
	f.pending = f.pending[n:]
	return n, nil
}

var errTooLong = fmt.Errorf("the line has more than %d bytes, which is the limit", maxFrame)

// line reads to the next line feed, or to the end. Of a line that is too long
// nothing is kept.
func (f *frames) line() ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := f.in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxFrame; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if long && (err == nil || errors.Is(err, io.EOF)) {
			return nil, errTooLong
		}
		return line, err
	}
}

// fault is the error of a JSON-RPC answer.
type fault struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	id      json.RawMessage
}

// check reads a line, or says why it is no frame.
func check(line []byte) (jsonrpc.Message, *fault) {
	switch {
	case !json.Valid(line):
		return nil, &fault{Code: parseError, Message: "the line is no JSON"}
	case line[0] == '[':
		return nil, &fault{Code: invalidRequest, Message: "batches are not taken: send one message on each line"}
	}
	said, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		var asked struct {
			ID json.RawMessage `json:"id"`
		}
		_ = json.Unmarshal(line, &asked) // What has no readable id is answered with null.
		return nil, &fault{Code: invalidRequest, Message: "the line is no JSON-RPC message", id: asked.ID}
	}
	return said, nil
}

// answers is the way back to the host, for the library and for faults.
type answers struct {
	calls *calls
	mu    sync.Mutex
	out   io.Writer
}

// Write writes a whole frame, unless it answers a call that was canceled.
func (a *answers) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	frame := p
	if said, err := jsonrpc.DecodeMessage(p); err == nil {
		if answer, ok := said.(*jsonrpc.Response); ok {
			id := answer.ID.Raw()
			defer a.calls.went(id)
			if a.calls.canceled(id) {
				return len(p), nil
			}
			frame = coded(answer, p)
		}
	}
	if _, err := a.out.Write(frame); err != nil {
		return 0, err
	}
	return len(p), nil
}

// coded is the frame of answer. An error of the library that has no code gets
// that of a request which may not be made: a call before the host has said
// initialize.
func coded(answer *jsonrpc.Response, frame []byte) []byte {
	var no *jsonrpc.Error
	if !errors.As(answer.Error, &no) || no.Code != 0 {
		return frame
	}
	no.Code = invalidRequest
	if again, err := jsonrpc.EncodeMessage(answer); err == nil {
		return append(again, '\n')
	}
	return frame
}

// Close leaves the writer open, which belongs to the caller.
func (a *answers) Close() error { return nil }

func (a *answers) refuse(no fault) error {
	if no.id == nil {
		no.id = json.RawMessage("null")
	}
	frame, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   fault           `json:"error"`
	}{"2.0", no.id, no})
	if err != nil {
		return err
	}
	_, err = a.Write(append(frame, '\n'))
	return err
}
