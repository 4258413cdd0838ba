package http

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/carriers/carriertest"
	"github.com/compozy-gateway/gateway/core"
)

// unordered is the carrier for clients that post side by side, which nothing
// puts in order.
type unordered struct{ *Carrier }

func (u unordered) Limits() core.Limits {
	l := u.Carrier.Limits()
	l.Ordered = false
	return l
}

func TestConformanceOfPosts(t *testing.T) {
	carriertest.Run(t, func(t *testing.T) carriertest.Fixture {
		far := newFarSide(t)
		f := far.fixture()
		f.Carrier, f.Inject, f.BlockedOffers = unordered{far.carrier}, far.post, 1000
		return f
	})
}

func TestConformanceOfBatches(t *testing.T) {
	carriertest.Run(t, func(t *testing.T) carriertest.Fixture {
		far := newFarSide(t)
		f := far.fixture()
		lines := far.openBatch()
		f.Inject = func(_ context.Context, frame carriertest.Frame) error { lines(frame); return nil }
		// Webhooks are not framed by lines; the posts' run has tried them.
		f.LineFramed, f.Recipients = true, nil
		return f
	})
}

// farSide is what a carrier under the suite talks with: clients, and two
// webhooks.
type farSide struct {
	carrier *Carrier
	client  *nethttp.Client
	logs    *logBuffer
	ctx     context.Context
	cancel  context.CancelFunc
	tasks   sync.WaitGroup
	hooks   map[core.Recipient]*farHook

	mu       sync.Mutex
	outcomes []carriertest.Outcome
	received []carriertest.Received
}

const (
	farToken       = "a-token-for-the-far-side"
	farMaxEnvelope = 1 << 20
)

func newFarSide(t *testing.T) *farSide {
	far := &farSide{logs: &logBuffer{}, client: &nethttp.Client{Transport: &nethttp.Transport{}}, hooks: map[core.Recipient]*farHook{}}
	far.ctx, far.cancel = context.WithCancel(context.Background())
	cfg := testConfig()
	cfg.Tokens = map[string]TokenConfig{"far": {TokenFile: file(t, "token", farToken)}}
	cfg.Webhooks = map[string]WebhookConfig{}
	for _, name := range []string{"one", "two"} {
		hook := newFarHook(far, core.Recipient{Carrier: "http", Link: name})
		far.hooks[hook.recipient] = hook
		cfg.Webhooks[name] = WebhookConfig{URL: hook.server.URL, AllowPrivate: true, SecretFile: file(t, "secret", "whsec_"+keyOne)}
	}
	var err error
	host := testHost(far.logs)
	host.MaxEnvelopeBytes = farMaxEnvelope
	if far.carrier, err = New(cfg, host, Backend{Reader: newMemory()}); err != nil {
		t.Fatal(err)
	}
	if err := far.carrier.Listen(); err != nil {
		t.Fatal(err)
	}
	return far
}

func (far *farSide) fixture() carriertest.Fixture {
	return carriertest.Fixture{
		Carrier:          far.carrier,
		Arrivals:         []core.Arrival{core.ArrivalIngress},
		Outcomes:         far.seen,
		SeesRefusals:     true,
		MaxEnvelopeBytes: farMaxEnvelope,
		Recipients:       []core.Recipient{{Carrier: "http", Link: "one"}, {Carrier: "http", Link: "two"}},
		Received:         far.out,
		Withhold:         func(r core.Recipient, on bool) { far.hooks[r].withhold(on) },
		Refuse:           func(r core.Recipient, on bool) { far.hooks[r].refuse(on) },
		Secrets:          []string{farToken, keyOne},
		Logs:             far.logs.String,
		Close:            far.close,
	}
}

func (far *farSide) close() {
	far.cancel()
	far.tasks.Wait()
	far.client.CloseIdleConnections()
	for _, hook := range far.hooks {
		hook.withhold(false)
		hook.server.Close()
	}
	// A carrier that never ran still holds its port.
	far.carrier.close()
}

func (far *farSide) request(mediaType string, body io.Reader) *nethttp.Request {
	req, err := nethttp.NewRequestWithContext(far.ctx, "POST", "http://"+far.carrier.Addr().String()+"/v0/envelopes", body)
	if err != nil {
		panic(err)
	}
	req.Header.Set("Content-Type", mediaType)
	req.Header.Set("Authorization", "Bearer "+farToken)
	return req
}

// post posts the frame without waiting for the answer.
func (far *farSide) post(_ context.Context, frame carriertest.Frame) error {
	far.tasks.Go(func() {
		resp, err := far.client.Do(far.request(typeJSON, bytes.NewReader(frame.Payload)))
		if err != nil {
			return // No answer says nothing.
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		far.learn(frame.Key, resp.StatusCode)
	})
	return nil
}

// openBatch opens one NDJSON body, and gives what puts a line into it.
func (far *farSide) openBatch() func(carriertest.Frame) {
	body, in := io.Pipe()
	queue := make(chan carriertest.Frame, 10_000)
	var keys []string
	far.tasks.Go(func() {
		defer in.Close()
		for {
			select {
			case frame := <-queue:
				if _, err := in.Write(append(bytes.Clone(frame.Payload), '\n')); err != nil {
					return
				}
			case <-far.ctx.Done():
				return
			}
		}
	})
	far.tasks.Go(func() {
		defer body.Close()
		resp, err := far.client.Do(far.request(typeNDJSON, body))
		if err != nil {
			return
		}
		defer resp.Body.Close()
		for lines := json.NewDecoder(resp.Body); ; {
			var r result
			if lines.Decode(&r) != nil {
				return
			}
			far.mu.Lock()
			key := ""
			if r.Line <= len(keys) {
				key = keys[r.Line-1]
			}
			far.mu.Unlock()
			far.learn(key, r.Status)
		}
	})
	return func(frame carriertest.Frame) {
		far.mu.Lock()
		keys = append(keys, frame.Key)
		far.mu.Unlock()
		queue <- frame
	}
}

// learn records what a status says of a frame.
func (far *farSide) learn(key string, status int) {
	result := carriertest.Later
	switch status / 100 {
	case 2:
		result = carriertest.Acked
	case 4:
		result = carriertest.Refused
	}
	far.mu.Lock()
	defer far.mu.Unlock()
	far.outcomes = append(far.outcomes, carriertest.Outcome{Key: key, Result: result})
}

func (far *farSide) seen() []carriertest.Outcome {
	far.mu.Lock()
	defer far.mu.Unlock()
	return slices.Clone(far.outcomes)
}

func (far *farSide) out() []carriertest.Received {
	far.mu.Lock()
	defer far.mu.Unlock()
	return slices.Clone(far.received)
}

// farHook is a webhook's endpoint on the far side.
type farHook struct {
	far       *farSide
	recipient core.Recipient
	server    *httptest.Server

	mu       sync.Mutex
	withheld chan struct{}
	refusing bool
}

func newFarHook(far *farSide, r core.Recipient) *farHook {
	h := &farHook{far: far, recipient: r}
	h.server = httptest.NewServer(nethttp.HandlerFunc(h.serve))
	return h
}

func (h *farHook) serve(w nethttp.ResponseWriter, r *nethttp.Request) {
	body, _ := io.ReadAll(r.Body)
	h.far.mu.Lock()
	h.far.received = append(h.far.received, carriertest.Received{
		Recipient: h.recipient, Token: strings.TrimPrefix(r.Header.Get("webhook-id"), "msg_"), Payload: body,
	})
	h.far.mu.Unlock()
	h.mu.Lock()
	withheld, refusing := h.withheld, h.refusing
	h.mu.Unlock()
	if withheld != nil {
		select {
		case <-withheld:
		case <-r.Context().Done():
		case <-time.After(patience):
		}
	}
	if refusing {
		w.WriteHeader(nethttp.StatusForbidden)
	}
}

func (h *farHook) withhold(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case on && h.withheld == nil:
		h.withheld = make(chan struct{})
	case !on && h.withheld != nil:
		close(h.withheld)
		h.withheld = nil
	}
}

func (h *farHook) refuse(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refusing = on
}
