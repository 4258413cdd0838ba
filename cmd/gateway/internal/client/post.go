package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Result is what became of one envelope that was sent.
type Result struct {
	// Line counts the envelopes of one call from 1.
	Line int `json:"line"`
	// Status is 202 for a new message, 200 for a duplicate, else the refusal's.
	Status int    `json:"status"`
	ID     string `json:"id,omitempty"`
	// Seq is null when the message is parked or refused.
	Seq         *int64     `json:"seq,omitempty"`
	CommittedAt *time.Time `json:"committed_at,omitempty"`
	Duplicate   bool       `json:"duplicate,omitempty"`
	Parked      bool       `json:"parked,omitempty"`
	ReasonCode  string     `json:"reason_code,omitempty"`
	Title       string     `json:"title,omitempty"`
	Detail      string     `json:"detail,omitempty"`
}

// Committed reports whether the gateway has the message, now or from before.
func (r Result) Committed() bool { return r.Status >= 200 && r.Status <= 299 }

// Passing reports whether the same envelope may be taken later.
func (r Result) Passing() bool { return r.Status == http.StatusServiceUnavailable }

// Post sends one envelope exactly as it is. A refusal is a Result too; an error
// means that the outcome is not known, or that the request was not heard.
func (c *Client) Post(ctx context.Context, envelope []byte) (Result, error) {
	r := Result{Line: 1}
	header := http.Header{"Content-Type": {"application/json"}}
	resp, err := c.do(ctx, http.MethodPost, Path("envelopes"), nil, bytes.NewReader(envelope), header)
	var p *Problem
	if errors.As(err, &p) && (p.ReasonCode != "" || p.Status == http.StatusRequestEntityTooLarge) {
		return Result{Line: 1, Status: p.Status, ID: p.ID, ReasonCode: p.ReasonCode, Title: p.Title, Detail: p.Detail}, nil
	}
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&r); err != nil {
		return r, &UnreachableError{URL: c.base, Err: fmt.Errorf("read the answer: %w", err)}
	}
	r.Line, r.Status = 1, resp.StatusCode
	return r, nil
}

// PostLines sends newline-framed envelopes as they come from lines, and calls
// each with every result, in order, as soon as it is known. It returns how many
// results came; with an error, the outcome of later lines is not known.
func (c *Client) PostLines(ctx context.Context, lines io.Reader, each func(Result) error) (int, error) {
	header := http.Header{"Content-Type": {"application/x-ndjson"}}
	resp, err := c.do(ctx, http.MethodPost, Path("envelopes"), nil, lines, header)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	decoder := json.NewDecoder(resp.Body)
	for n := 0; ; n++ {
		var r Result
		err := decoder.Decode(&r)
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, &UnreachableError{URL: c.base, Err: fmt.Errorf("read result %d: %w", n+1, err)}
		}
		if err := each(r); err != nil {
			return n + 1, err
		}
	}
}
