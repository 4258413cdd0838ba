package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/compozy-gateway/gateway/cmd/gateway/internal/client"
)

func TestAnInboxThatBeganAnewIsReadFromItsStart(t *testing.T) {
	var acknowledged []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		acknowledged = append(acknowledged, string(body))
	}))
	t.Cleanup(server.Close)
	to, err := client.New(client.Options{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	a := &attachment{client: to, out: &lineWriter{w: &out}, written: 99, acked: 99}
	for _, page := range []client.Page{
		{Entries: []client.Entry{{Position: 3, Envelope: []byte(`{"n":3}`)}}, Next: 3},
		{Next: 3},
		{Next: 2},
	} {
		if err := a.deliver(t.Context(), page); err != nil {
			t.Fatal(err)
		}
	}
	if out.String() != "{\"n\":3}\n" || a.written != 2 || a.acked != 2 {
		t.Errorf("wrote %q, and stands at %d, acknowledged %d", out.String(), a.written, a.acked)
	}
	if want := []string{`{"position":3}`, `{"position":2}`}; !slices.Equal(acknowledged, want) {
		t.Errorf("acknowledged %q", acknowledged)
	}
}
