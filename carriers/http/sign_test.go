package http

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

// verify checks a signature as the convention has it, by other means than the
// carrier makes it.
func (c call) verify(t *testing.T, key string, number int) {
	t.Helper()
	secret, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s.%s.%s", c.header.Get("webhook-id"), c.header.Get("webhook-timestamp"), c.body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	if got := strings.Split(c.header.Get("webhook-signature"), " "); got[number] != want {
		t.Errorf("signature %d of %v, want %s", number, got, want)
	}
}

func TestAWebhookGetsTheBytesSigned(t *testing.T) {
	h := newHook(t)
	secret := file(t, "secret", "whsec_"+keyOne+"\n")
	s := start(t, withHook(h.URL+"/hook?x=1", func(w *WebhookConfig) { w.SecretFile = secret }))
	h.answers(500)
	if _, err := s.send(delivery(odd)); err == nil || err.Code != core.CodeFailed {
		t.Fatalf("error %v", err)
	}
	if err := os.WriteFile(secret, []byte("whsec_"+keyTwo+"\nwhsec_"+keyOne+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.answers(204)
	ack, err := s.send(delivery(odd))
	if err != nil || ack.Kind != core.AckHTTP2xx || ack.At.IsZero() || ack.Detail != "204" {
		t.Fatalf("ack %+v, error %v", ack, err)
	}
	calls := h.called()
	calls[0].verify(t, keyOne, 0)
	calls[1].verify(t, keyTwo, 0)
	calls[1].verify(t, keyOne, 1)
	for _, c := range calls {
		if c.body != odd || c.header.Get("Content-Type") != typeJSON {
			t.Errorf("call %+v", c)
		}
		if id := c.header.Get("webhook-id"); id != "msg_0123456789abcdef0123456789abcdef" {
			t.Errorf("webhook-id %q", id)
		}
	}
	if s.carrier.Status().LastSend.IsZero() {
		t.Error("the status tells of no send")
	}
}

func TestASecretThatCannotBeReadStopsTheCallOnly(t *testing.T) {
	h := newHook(t)
	secret := file(t, "secret", keyOne)
	s := start(t, withHook(h.URL, func(w *WebhookConfig) { w.SecretFile = secret }))
	if err := os.WriteFile(secret, []byte("whsec_not*base64*at*all"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := s.send(delivery(`{}`))
	if codeOf(err) != core.CodeUnavailable || strings.Contains(err.Error(), "not*base64") {
		t.Errorf("error %v", err)
	}
}
