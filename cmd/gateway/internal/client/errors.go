package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// UnreachableError says that no answer came: nobody listens, the connection
// broke, or the wait ended. Whether the request had an effect is not known.
type UnreachableError struct {
	URL string
	Err error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no answer from the gateway at %s: %v", e.URL, e.Err)
}

// Unwrap gives the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Problem is an answer that refuses: an application/problem+json document.
type Problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	// ReasonCode is the protocol's reason, where the protocol refused.
	ReasonCode string `json:"reason_code"`
	// ID is the id of the refused envelope, where it could be read.
	ID string `json:"id"`
	// RetryAfter is how long the gateway asked to wait; 0 when it did not.
	RetryAfter time.Duration `json:"-"`
}

func (p *Problem) Error() string {
	what := p.Title
	if p.ReasonCode != "" {
		what = p.ReasonCode
	}
	if p.Detail != "" && p.Detail != what {
		what += ": " + p.Detail
	}
	return fmt.Sprintf("the gateway answered %d: %s", p.Status, what)
}

// Passing reports whether the same request may succeed later: no answer came,
// or the gateway asked for patience.
func Passing(err error) bool {
	var unreachable *UnreachableError
	if errors.As(err, &unreachable) {
		return true
	}
	var p *Problem
	return errors.As(err, &p) && (p.Status == http.StatusServiceUnavailable ||
		p.Status == http.StatusBadGateway || p.Status == http.StatusGatewayTimeout)
}

// RetryAfter is how long the answer asked to wait, 0 when it did not say.
func RetryAfter(err error) time.Duration {
	var p *Problem
	if errors.As(err, &p) {
		return p.RetryAfter
	}
	return 0
}

const (
	maxProblemBytes = 64 << 10
	maxRetryAfter   = time.Minute
)

func readProblem(resp *http.Response) *Problem {
	p := &Problem{}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxProblemBytes))
	if err != nil || json.Unmarshal(raw, p) != nil {
		p = &Problem{}
	}
	p.Status = resp.StatusCode
	if p.Title == "" {
		p.Title = http.StatusText(resp.StatusCode)
	}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
		p.RetryAfter = min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	return p
}
