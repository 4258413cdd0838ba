package http

import (
	"bytes"
	"fmt"
	nethttp "net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/compozy-gateway/gateway/core"
)

const (
	minRetryAfter = time.Second
	maxRetryAfter = time.Hour
	// maxExcerpt bounds what is shown of an endpoint's answer.
	maxExcerpt = 160
)

// outcome is what the status of an answer says of the delivery.
type outcome struct {
	// code is empty for an acknowledgement.
	code core.SendCode
	// throttle is true where the endpoint may say how long to wait.
	throttle bool
}

// outcomeOf is the table of outcomes: every status has its row.
func outcomeOf(status int) outcome {
	switch {
	case status < 200:
		return outcome{code: core.CodeFailed} // Not an answer; a server that is confused now may not be later.
	case status < 300:
		return outcome{}
	case status < 400:
		return outcome{code: core.CodeRefused} // Redirects are not followed.
	}
	switch status {
	case nethttp.StatusGone:
		return outcome{code: core.CodeGone}
	case nethttp.StatusTooManyRequests, nethttp.StatusBadGateway,
		nethttp.StatusServiceUnavailable, nethttp.StatusGatewayTimeout:
		return outcome{code: core.CodeBusy, throttle: true}
	case nethttp.StatusRequestTimeout, nethttp.StatusTooEarly:
		return outcome{code: core.CodeFailed}
	}
	if status < 500 {
		return outcome{code: core.CodeRefused}
	}
	return outcome{code: core.CodeFailed}
}

// retryAfter reads the header of that name: seconds, or a date. What makes no
// sense is 0, as if it were not there; what does is brought into bounds.
func retryAfter(header string, now time.Time) time.Duration {
	header = strings.TrimSpace(header)
	if seconds, err := strconv.ParseUint(header, 10, 64); err == nil {
		if seconds > uint64(maxRetryAfter/time.Second) {
			return maxRetryAfter
		}
		return max(time.Duration(seconds)*time.Second, minRetryAfter)
	}
	if strings.Trim(header, "0123456789") == "" && header != "" {
		return maxRetryAfter // More digits than any number has.
	}
	at, err := nethttp.ParseTime(header)
	if err != nil || !at.After(now) {
		return 0
	}
	return min(max(at.Sub(now), minRetryAfter), maxRetryAfter)
}

// excerpt is the beginning of an answer's body on one line, for people.
func excerpt(body []byte) string {
	if len(body) > maxExcerpt {
		body = body[:maxExcerpt]
	}
	text := strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(body), " "))
	return strings.Join(strings.Fields(text), " ")
}

// hiddenURL stands where an answer repeated where it was asked.
const hiddenURL = "(hidden)"

// withoutTarget takes the path and the query of a webhook out of what it
// answered: an endpoint that knows no such path repeats it, and who knows it may
// be all that the endpoint asks for.
func withoutTarget(body []byte, target *url.URL) []byte {
	for _, secret := range []string{target.RequestURI(), target.EscapedPath(), target.Path, target.RawQuery} {
		if len(secret) > 1 {
			body = bytes.ReplaceAll(body, []byte(secret), []byte(hiddenURL))
		}
	}
	return body
}

// answerDetail describes an answer that is no acknowledgement.
func answerDetail(name string, status int, body []byte) string {
	detail := fmt.Sprintf("webhook %s answered %d", name, status)
	if said := excerpt(body); said != "" {
		detail += ": " + said
	}
	return detail
}
