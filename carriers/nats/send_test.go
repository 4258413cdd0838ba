package nats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func noJetStream(o *server.Options) { o.JetStream = false }

func sendCode(t testing.TB, err error) core.SendCode {
	t.Helper()
	var failed *core.SendError
	if !errors.As(err, &failed) {
		t.Fatalf("%v is no *core.SendError", err)
	}
	return failed.Code
}

// stored reads the payloads of the stream in their order.
func stored(t testing.TB, js jetstream.JetStream) []string {
	t.Helper()
	s, err := js.Stream(within(t), "COMPOZY_NETWORK_V0")
	if err != nil {
		t.Fatal(err)
	}
	state := s.CachedInfo().State
	if state.Msgs == 0 {
		return nil
	}
	var payloads []string
	for seq := state.FirstSeq; seq <= state.LastSeq; seq++ {
		msg, err := s.GetMsg(within(t), seq)
		if err != nil {
			t.Fatal(err)
		}
		payloads = append(payloads, string(msg.Data))
	}
	return payloads
}

func TestSendGoesToItsSubjectWithTheTokenAsMessageID(t *testing.T) {
	b := newBroker(t)
	r := ready(t, testConfig(b), committing())
	out := message("5f0c8ae2d3b14f6f9a0d6c1e2b3a4958", "x")
	out.Envelope.WorkspaceID, out.To = "é/1", "reviewer.sess-xyz"
	o := r.send(out)
	if o.err != nil {
		t.Fatal(o.err)
	}
	if o.ack.Kind != core.AckJetStreamPubAck || !strings.Contains(o.ack.Detail, "sequence 1") {
		t.Errorf("the acknowledgement is %+v", o.ack)
	}
	s, err := stream(t, b.client()).Stream(within(t), "COMPOZY_NETWORK_V0")
	if err != nil {
		t.Fatal(err)
	}
	msg, err := s.GetMsg(within(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	if msg.Subject != "compozy.network.v0.é/1.lab.peer."+bobToken || msg.Header.Get("Nats-Msg-Id") != out.Token {
		t.Errorf("stored on %q with %v", msg.Subject, msg.Header)
	}
	if again := r.send(out); again.err != nil || !strings.Contains(again.ack.Detail, "earlier attempt") {
		t.Errorf("the second attempt: %+v, %v", again.ack, again.err)
	}
	if n := len(stored(t, stream(t, b.client()))); n != 1 {
		t.Errorf("two attempts stored %d messages", n)
	}
}

func TestIllegalAddressIsRefusedBeforeAnyPublish(t *testing.T) {
	b := newBroker(t)
	r := ready(t, testConfig(b), committing())
	heard := hear(t, b.client(), ">")
	for _, workspace := range []string{"", ">", "*", "a.b", ".a", "a.", "a..b", "a b", "a\r\nPUB x 0\r\n", "a\x00b", "a\tb"} {
		out := message("t", "x")
		out.Envelope.WorkspaceID = workspace
		if o := r.send(out); sendCode(t, o.err) != core.CodeBadAddress {
			t.Errorf("workspace %q: %v", workspace, o.err)
		}
	}
	if o := r.send(message("t", "legal")); o.err != nil {
		t.Fatal(o.err)
	}
	for {
		msg, err := heard.NextMsgWithContext(within(t))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(msg.Subject, "compozy.") {
			if string(msg.Data) != "legal" {
				t.Errorf("published on %q: %q", msg.Subject, msg.Data)
			}
			return
		}
	}
}

// A plain subscriber answers every publish with a PubAck of its own, before the
// stream does.
func TestOnlyTheConfiguredStreamAcknowledges(t *testing.T) {
	b := newBroker(t)
	r := ready(t, testConfig(b), committing())
	evil := b.client()
	for i, answer := range []string{`{"stream":"EVIL","seq":7}`, `{"stream":"COMPOZY_NETWORK_V0"}`, `yes`, `{"stream":"EVIL","error":{"code":400,"err_code":10054}}`} {
		sub, err := evil.Subscribe("compozy.network.v0.>", func(msg *natsgo.Msg) {
			if msg.Reply != "" {
				_ = evil.Publish(msg.Reply, []byte(answer))
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := evil.Flush(); err != nil {
			t.Fatal(err)
		}
		o := r.send(message("t "+answer, answer))
		if o.err != nil || o.ack.Detail != fmt.Sprintf("sequence %d", i+1) {
			t.Errorf("beside the answer %s: %+v, %v", answer, o.ack, o.err)
		}
		if err := sub.Unsubscribe(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestForeignPubAckAloneIsATimeout(t *testing.T) {
	b := newBroker(t)
	r := ready(t, testConfig(b), committing())
	nc := b.client()
	js := stream(t, nc)
	s, err := js.Stream(within(t), "COMPOZY_NETWORK_V0")
	if err != nil {
		t.Fatal(err)
	}
	config := s.CachedInfo().Config
	config.NoAck = true
	if _, err := js.UpdateStream(within(t), config); err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Subscribe("compozy.network.v0.>", func(msg *natsgo.Msg) {
		if msg.Reply != "" {
			_ = nc.Publish(msg.Reply, []byte(`{"stream":"EVIL","seq":7}`))
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	o := r.outcome(r.begin(ctx, message("t1", "x")))
	if sendCode(t, o.err) != core.CodeTimeout || !strings.Contains(o.err.Error(), "EVIL") {
		t.Errorf("the outcome is %+v, %v", o.ack, o.err)
	}
}

func TestPublishWithoutAStreamIsUnavailable(t *testing.T) {
	b := newBroker(t)
	// Nothing is received, so that the consumer's end is not what tells.
	in := &intake{closed: make(chan struct{})}
	r := ready(t, testConfig(b), in)
	js := stream(t, b.client())
	if err := js.DeleteStream(within(t), "COMPOZY_NETWORK_V0"); err != nil {
		t.Fatal(err)
	}
	if o := r.send(message("t1", "x")); o.err != nil && sendCode(t, o.err) == core.CodeFailed {
		t.Errorf("the outcome is %v", o.err)
	}
	r.awaitReady()
	eventually(t, "the stream is created again and messages pass", func() bool { return r.send(message("t2", "y")).err == nil })
}

func TestTooLargeForTheServer(t *testing.T) {
	b := newBroker(t, func(o *server.Options) { o.MaxPayload = 4096 })
	r := ready(t, testConfig(b), committing())
	o := r.send(message("t1", strings.Repeat("x", 5000)))
	if sendCode(t, o.err) != core.CodeTooLarge || !strings.Contains(o.err.Error(), "too large for carrier") {
		t.Errorf("the outcome is %v", o.err)
	}
	if o := r.send(message("t2", "small")); o.err != nil {
		t.Errorf("the next one: %v", o.err)
	}
}

func TestTooLargeForTheStream(t *testing.T) {
	b := newBroker(t)
	if _, err := stream(t, b.client()).CreateStream(within(t), jetstream.StreamConfig{
		Name: "COMPOZY_NETWORK_V0", Subjects: []string{"compozy.network.v0.>"}, MaxMsgSize: 1024,
	}); err != nil {
		t.Fatal(err)
	}
	r := ready(t, testConfig(b), committing())
	if o := r.send(message("t1", strings.Repeat("x", 2000))); sendCode(t, o.err) != core.CodeTooLarge {
		t.Errorf("the outcome is %v", o.err)
	}
}

func TestFullStreamIsUnavailable(t *testing.T) {
	b := newBroker(t)
	if _, err := stream(t, b.client()).CreateStream(within(t), jetstream.StreamConfig{
		Name: "COMPOZY_NETWORK_V0", Subjects: []string{"compozy.network.v0.>"}, MaxMsgs: 1, Discard: jetstream.DiscardNew,
	}); err != nil {
		t.Fatal(err)
	}
	r := ready(t, testConfig(b), committing())
	if o := r.send(message("t1", "x")); o.err != nil {
		t.Fatal(o.err)
	}
	if o := r.send(message("t2", "y")); sendCode(t, o.err) != core.CodeUnavailable {
		t.Errorf("the outcome is %v", o.err)
	}
}

func TestPublishThatIsNotAllowedIsRefusedAtOnce(t *testing.T) {
	for _, mode := range []Mode{ModeJetStream, ModeCore} {
		t.Run(string(mode), func(t *testing.T) {
			b := newBroker(t, func(o *server.Options) {
				o.Users = []*server.User{{Username: "ada", Password: "s3cret", Permissions: &server.Permissions{
					Publish: &server.SubjectPermission{Deny: []string{"compozy.network.v0.closed-é.>"}},
				}}}
			})
			cfg := testConfig(b)
			cfg.Mode = mode
			cfg.URL = strings.Replace(b.url(), "nats://", "nats://ada:s3cret@", 1)
			r := ready(t, cfg, committing())
			out := message("t1", "x")
			out.Envelope.WorkspaceID = "closed-é"
			o := r.send(out)
			if sendCode(t, o.err) != core.CodeRefused {
				t.Fatalf("the outcome is %+v, %v", o.ack, o.err)
			}
			if strings.Contains(o.err.Error(), "s3cret") || strings.Contains(fmt.Sprint(r.Status()), "s3cret") {
				t.Error("the password is shown")
			}
			if o := r.send(message("t2", "x")); o.err != nil {
				t.Errorf("the next one: %v", o.err)
			}
		})
	}
}

// The server dies with a window of
// sends under way. Each is reported once, none as sent that is not stored, and
// after the recovery the whole window is free again.
func TestSendsSurviveTheServersDeath(t *testing.T) {
	b := newBroker(t)
	r := ready(t, testConfig(b), committing())
	for round := range 3 {
		var reports []<-chan outcome
		var payloads []string
		for i := range streamWindow {
			payload := fmt.Sprintf("r%d-%d", round, i)
			payloads = append(payloads, payload)
			reports = append(reports, r.begin(within(t), message("token "+payload, payload)))
			if i == streamWindow/2 {
				b.stop()
			}
		}
		acked := map[string]bool{}
		for i, reported := range reports {
			o := r.outcome(reported)
			if o.err == nil {
				acked[payloads[i]] = true
			} else if code := sendCode(t, o.err); code != core.CodeTimeout && code != core.CodeUnavailable {
				t.Errorf("%s: %v", payloads[i], o.err)
			}
		}
		b.start()
		r.awaitReady()
		for i, reported := range reports {
			if len(reported) > 0 {
				t.Errorf("%s was reported twice", payloads[i])
			}
		}
		kept := stored(t, stream(t, b.client()))
		for payload := range acked {
			if !slices.Contains(kept, payload) {
				t.Errorf("%s was acknowledged and is not stored", payload)
			}
		}
		for i, payload := range payloads {
			reports[i] = r.begin(within(t), message("token "+payload, payload))
		}
		for i := range payloads {
			if o := r.outcome(reports[i]); o.err != nil {
				t.Fatalf("%s once more: %v", payloads[i], o.err)
			}
		}
		if n := len(stored(t, stream(t, b.client()))); n != (round+1)*streamWindow {
			t.Errorf("after round %d the stream holds %d messages, want %d", round, n, (round+1)*streamWindow)
		}
	}
}

func TestSendsKeepTheirOrder(t *testing.T) {
	b := newBroker(t)
	r := ready(t, testConfig(b), committing())
	var want []string
	var reports []<-chan outcome
	for i := range streamWindow {
		payload := fmt.Sprintf("%d", i)
		want = append(want, payload)
		reports = append(reports, r.begin(within(t), message("t"+payload, payload)))
	}
	for _, reported := range reports {
		if o := r.outcome(reported); o.err != nil {
			t.Fatal(o.err)
		}
	}
	if got := stored(t, stream(t, b.client())); !slices.Equal(got, want) {
		t.Errorf("stored in the order %v", got)
	}
}

func TestSendWithoutADeadlineIsBounded(t *testing.T) {
	w := newWaiting()
	ended := make(chan error, 1)
	if _, ok := w.add(context.Background(), "s", func(_ core.Ack, err error) { ended <- err }); !ok {
		t.Fatal("not taken")
	}
	w.abort()
	if sendCode(t, <-ended) != core.CodeTimeout {
		t.Error("not aborted")
	}
	<-w.gate.stop()
	if _, ok := w.add(context.Background(), "s", nil); ok {
		t.Error("taken after the end")
	}
}

func TestPubAckErrors(t *testing.T) {
	cases := []struct {
		name string
		err  jetstream.APIError
		want core.SendCode
	}{
		{"stream's size limit", jetstream.APIError{Code: 400, ErrorCode: 10054}, core.CodeTooLarge},
		{"stream is full", jetstream.APIError{Code: 503, ErrorCode: 10077}, core.CodeUnavailable},
		{"no JetStream", jetstream.APIError{Code: 503, ErrorCode: 10076}, core.CodeUnavailable},
		{"no JetStream for the account", jetstream.APIError{Code: 503, ErrorCode: 10039}, core.CodeUnavailable},
		{"no quorum", jetstream.APIError{Code: 503, ErrorCode: 10008}, core.CodeUnavailable},
		{"not the leader", jetstream.APIError{Code: 500, ErrorCode: 10009}, core.CodeUnavailable},
		{"account's limits", jetstream.APIError{Code: 400, ErrorCode: 10002}, core.CodeUnavailable},
		{"no resources", jetstream.APIError{Code: 503, ErrorCode: 10023}, core.CodeUnavailable},
		{"no memory", jetstream.APIError{Code: 500, ErrorCode: 10028}, core.CodeUnavailable},
		{"no storage", jetstream.APIError{Code: 500, ErrorCode: 10047}, core.CodeUnavailable},
		{"offline", jetstream.APIError{Code: 500, ErrorCode: 10118}, core.CodeUnavailable},
		{"offline with a reason", jetstream.APIError{Code: 500, ErrorCode: 10194}, core.CodeUnavailable},
		{"too many requests", jetstream.APIError{Code: 429, ErrorCode: 10167}, core.CodeBusy},
		{"sealed", jetstream.APIError{Code: 400, ErrorCode: 10109}, core.CodeFailed},
		{"anything else", jetstream.APIError{Code: 500, ErrorCode: 10051}, core.CodeFailed},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got := pubAckError(&tc.err, "s")
			if got.Code != tc.want {
				t.Errorf("code %q, want %q", got.Code, tc.want)
			}
			if (got.Code == core.CodeBusy) != (got.RetryAfter > 0) {
				t.Errorf("retry after %v", got.RetryAfter)
			}
		})
	}
}
