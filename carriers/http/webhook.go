package http

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	nethttp "net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

const (
	// maxAnswer is how much of an answer is read.
	maxAnswer = 64 << 10
	// answerBodyTimeout bounds the body of an answer once its status is known.
	answerBodyTimeout = 2 * time.Second
)

// errTooLate says that the deadline passed before the first byte was written.
var errTooLate = errors.New("the deadline passed before the write")

// endpoint is one webhook.
type endpoint struct {
	name       string
	url        *url.URL
	secretFile string
	timeout    time.Duration
	now        func() time.Time
	client     *nethttp.Client
	circuit    *breaker
	// slot holds the one call that goes on: so deliveries keep their order, and a
	// circuit lets one probe through.
	slot chan struct{}
}

func newEndpoint(name string, cfg WebhookConfig, timeout time.Duration, host core.Host) (*endpoint, error) {
	target, err := parseEndpoint(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	tlsConfig, err := cfg.TLS.Client()
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	var protocols nethttp.Protocols
	protocols.SetHTTP1(true)
	return &endpoint{
		name:       name,
		url:        target,
		secretFile: cfg.SecretFile,
		timeout:    timeout,
		now:        host.Now,
		client: &nethttp.Client{
			// No proxy: it would connect in our place, past the dialer's check.
			Transport: &nethttp.Transport{
				DialContext:         newDialer(cfg.AllowPrivate).dial,
				TLSClientConfig:     tlsConfig,
				TLSHandshakeTimeout: dialTimeout,
				Protocols:           &protocols,
				MaxIdleConns:        1,
				IdleConnTimeout:     time.Minute,
				DisableCompression:  true,
			},
			CheckRedirect: func(*nethttp.Request, []*nethttp.Request) error { return nethttp.ErrUseLastResponse },
		},
		circuit: newBreaker(),
		slot:    make(chan struct{}, 1),
	}, nil
}

// deliver calls the endpoint once. The error is a *core.SendError.
func (e *endpoint) deliver(ctx context.Context, out core.Outbound) (core.Ack, error) {
	if e.circuit.disabled() {
		return core.Ack{}, e.fail(core.CodeGone, "said that it is gone, and is disabled until the gateway starts anew", nil)
	}
	if wait := e.circuit.wait(e.now()); wait > 0 {
		err := e.fail(core.CodeUnavailable, "is left alone for a while after failures", nil)
		err.RetryAfter = wait
		return core.Ack{}, err
	}
	if e.late(out) {
		return core.Ack{}, e.fail(core.CodeExpired, "was not called: the deadline has passed", nil)
	}
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	req, err := e.request(ctx, out)
	if err != nil {
		return core.Ack{}, e.fail(core.CodeUnavailable, "cannot be signed for", err)
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return core.Ack{}, e.callFailed(err, connected.Load())
	}
	// A body that does not end must not hold the delivery, nor the connection.
	stop := time.AfterFunc(answerBodyTimeout, cancel)
	defer stop.Stop()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // The status is the answer, whatever becomes of the body.
	_ = resp.Body.Close()
	return e.settle(resp, body)
}

func (e *endpoint) late(out core.Outbound) bool {
	return !out.Deadline.IsZero() && !e.now().Before(out.Deadline)
}

// request builds one attempt: each has the same id and body, and its own
// timestamp and signature.
func (e *endpoint) request(ctx context.Context, out core.Outbound) (*nethttp.Request, error) {
	raw := out.Envelope.Raw
	body := func() (io.ReadCloser, error) {
		return io.NopCloser(&punctualReader{body: bytes.NewReader(raw), late: func() bool { return e.late(out) }}), nil
	}
	first, _ := body()
	req, err := nethttp.NewRequestWithContext(ctx, nethttp.MethodPost, e.url.String(), first)
	if err != nil {
		return nil, err
	}
	req.GetBody, req.ContentLength = body, int64(len(raw))
	id, at := "msg_"+out.Token, e.now().Unix()
	req.Header.Set("Content-Type", typeJSON)
	req.Header.Set("User-Agent", "compozy-gateway")
	req.Header.Set("webhook-id", id)
	req.Header.Set("webhook-timestamp", strconv.FormatInt(at, 10))
	if e.secretFile != "" {
		// Read for each call, so that keys can be changed while the gateway runs.
		keys, err := readKeys(e.secretFile)
		if err != nil {
			return nil, err
		}
		req.Header.Set("webhook-signature", signatures(keys, id, at, raw))
	}
	return req, nil
}

// callFailed says what a call without an answer means.
func (e *endpoint) callFailed(err error, connected bool) *core.SendError {
	var inURL *url.Error
	if errors.As(err, &inURL) {
		err = inURL.Err // The URL may hold credentials.
	}
	switch {
	case errors.Is(err, errTooLate):
		return e.fail(core.CodeExpired, "was not called: the deadline has passed", nil)
	case errors.Is(err, errForbiddenTarget):
		return e.fail(core.CodeRefused, "is not called", err)
	case !errors.Is(err, context.Canceled): // That one is our own doing.
		e.circuit.failed(e.now(), 0)
	}
	if connected {
		return e.fail(core.CodeTimeout, "gave no answer", err)
	}
	return e.fail(core.CodeUnavailable, "cannot be reached", err)
}

// settle says what an answer means.
func (e *endpoint) settle(resp *nethttp.Response, body []byte) (core.Ack, error) {
	o, now := outcomeOf(resp.StatusCode), e.now()
	var wait time.Duration
	if o.throttle {
		wait = retryAfter(resp.Header.Get("Retry-After"), now)
	}
	switch o.code {
	case "":
		e.circuit.answered()
		return core.Ack{Kind: core.AckHTTP2xx, At: now, Detail: strconv.Itoa(resp.StatusCode)}, nil
	case core.CodeGone:
		e.circuit.disable()
	case core.CodeRefused:
		e.circuit.answered()
	default:
		e.circuit.failed(now, wait)
	}
	return core.Ack{}, &core.SendError{Code: o.code, Detail: answerDetail(e.name, resp.StatusCode, withoutTarget(body, e.url)), RetryAfter: wait}
}

func (e *endpoint) fail(code core.SendCode, what string, cause error) *core.SendError {
	return &core.SendError{Code: code, Detail: "webhook " + e.name + " " + what, Err: cause}
}

// punctualReader is a request's body that is not begun after its deadline. Then
// the endpoint sees at most a header, and the connection breaks.
type punctualReader struct {
	body  *bytes.Reader
	late  func() bool
	begun bool
}

func (p *punctualReader) Read(b []byte) (int, error) {
	if !p.begun && p.late() {
		return 0, errTooLate
	}
	p.begun = true
	return p.body.Read(b)
}
