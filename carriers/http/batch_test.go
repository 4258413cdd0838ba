package http

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	nethttp "net/http"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// result is one line of the answer.
type result struct {
	Line       int
	Status     int
	ID         string
	Seq        *int64
	Duplicate  bool
	Detail     string
	Title      string
	Type       string
	ReasonCode core.Reason `json:"reason_code"`
	RetryAfter int         `json:"retry_after"`
}

// results reads a whole answer.
func (r reply) results(t *testing.T) []result {
	t.Helper()
	wantStatus(t, r, 200)
	if got := r.header.Get("Content-Type"); got != typeNDJSON {
		t.Errorf("the answer has the type %q", got)
	}
	var list []result
	for line := range strings.Lines(string(r.body)) {
		var one result
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		list = append(list, one)
	}
	return list
}

func (s *site) batch(body string) []result {
	s.Helper()
	return s.post(body, "Content-Type", "application/x-ndjson; charset=utf-8").results(s.T)
}

// statuses are the lines and statuses of results, as text.
func statuses(list []result) string {
	var b strings.Builder
	for _, r := range list {
		fmt.Fprintf(&b, "%d:%d ", r.Line, r.Status)
	}
	return strings.TrimSpace(b.String())
}

func TestBatchAnswersEachLineInOrder(t *testing.T) {
	s := start(t)
	long := say("e5", `,"ext":{"pad":"`, strings.Repeat("x", 2*testMaxEnvelope), `"}`)
	got := s.batch(strings.Join([]string{
		say("e1"), "nonsense\r", "", "  ", say("e1", `,"ext":{}`), long, say("e2"), say("e1"),
	}, "\n"))
	if want := "1:202 2:422 5:409 6:413 7:202 8:200"; statuses(got) != want {
		t.Errorf("got  %s\nwant %s", statuses(got), want)
	}
	if got[0].ID != "e1" || *got[0].Seq != 1 || !got[5].Duplicate || *got[5].Seq != 1 {
		t.Errorf("results %+v", got)
	}
	if got[1].ReasonCode != core.ReasonMalformed || got[1].Type == "" || got[1].Title == "" || got[1].Detail == "" {
		t.Errorf("refusal %+v", got[1])
	}
	if in := s.mem.offers()[3]; in.Size != int64(len(long)+1) || len(in.Payload) != keptPrefix {
		t.Errorf("the long line was offered with size %d and %d bytes", in.Size, len(in.Payload))
	}
}

func TestBatchWithoutLinesIsAnsweredWithNone(t *testing.T) {
	if got := start(t).batch("\n"); len(got) != 0 {
		t.Errorf("results %+v", got)
	}
}

// talk is a batch whose client reads while it sends.
type talk struct {
	*site
	in    *io.PipeWriter
	lines *bufio.Reader
}

func (s *site) talk(headers ...string) *talk {
	s.Helper()
	r, w := io.Pipe()
	req := s.request("POST", "/v0/envelopes", "", headers...)
	req.Header.Set("Content-Type", typeNDJSON)
	req.Body, req.ContentLength = r, -1
	resp, err := s.client.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { w.Close(); resp.Body.Close() })
	return &talk{s, w, bufio.NewReader(resp.Body)}
}

func (k *talk) send(line string) {
	k.Helper()
	if _, err := io.WriteString(k.in, line); err != nil {
		k.Fatal(err)
	}
}

func (k *talk) next() result {
	k.Helper()
	line, err := k.lines.ReadBytes('\n')
	if err != nil {
		k.Fatal(err)
	}
	var r result
	if err := json.Unmarshal(line, &r); err != nil {
		k.Fatal(err)
	}
	return r
}

func TestBatchAnswersWhileTheClientStillSends(t *testing.T) {
	k := start(t).talk()
	for i := 1; i <= 3; i++ {
		k.send(say(fmt.Sprint("e", i)) + "\n")
		if got := k.next(); got.Line != i || got.Status != 202 {
			t.Errorf("result %+v", got)
		}
	}
}

func TestBatchOffersManyBeforeTheFirstIsSettled(t *testing.T) {
	s := start(t)
	s.mem.with(func() { s.mem.held = true })
	k := s.talk()
	const n = 1000
	for i := range n {
		k.send(say(fmt.Sprint("e", i)) + "\n")
	}
	eventually(t, "all lines are offered", func() bool { return len(s.mem.offers()) == n })
	s.mem.with(func() { s.mem.held = false })
	for i := range n {
		if got := k.next(); got.Line != i+1 || got.ID != fmt.Sprint("e", i) {
			t.Fatalf("result %d is %+v", i, got)
		}
	}
}

func TestBatchAsksToComeAgainLineByLine(t *testing.T) {
	s := start(t, func(c *Config) { c.AcceptTimeout = 100 * time.Millisecond })
	s.mem.with(func() { s.mem.held = true })
	k := s.talk()
	k.send(say("e1") + "\n")
	if got := k.next(); got.Status != 503 || got.RetryAfter < 1 {
		t.Errorf("result %+v", got)
	}
	s.mem.with(func() { s.mem.held = false })
	k.send(say("e2") + "\n" + say("e1") + "\n")
	if got := k.next(); got.Line != 2 || got.Status != 202 {
		t.Errorf("result %+v", got)
	}
	if got := k.next(); got.Line != 3 || got.Status != 200 {
		t.Errorf("the line that was settled late: %+v", got)
	}
}

func TestBatchThatIsCutOffTakesNoHalfLine(t *testing.T) {
	s := start(t)
	conn := s.dial()
	whole, half := say("e1")+"\n", `{"id":1}`
	fmt.Fprintf(conn, "POST /v0/envelopes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"+
		"Content-Length: %d\r\n\r\n%s%s", len(whole)+100, whole, half)
	eventually(t, "the whole line is offered", func() bool { return len(s.mem.offers()) == 1 })
	conn.Close()
	s.stop()
	if n := len(s.mem.offers()); n != 1 {
		t.Errorf("%d frames were offered", n)
	}
}

func TestBatchOfAClientThatOnlyStopsSendingIsTakenWhole(t *testing.T) {
	s := start(t)
	conn := s.dial()
	body := say("e1") + "\n" + say("e2")
	fmt.Fprintf(conn, "POST /v0/envelopes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"+
		"Connection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got := statuses(readReply(t, conn).results(t)); got != "1:202 2:202" {
		t.Errorf("results %s", got)
	}
}

func TestBatchGivesUpOnASlowLine(t *testing.T) {
	s := start(t, func(c *Config) { c.BodyTimeout = 100 * time.Millisecond })
	k := s.talk()
	k.send(say("e1") + "\n{")
	if got := k.next(); got.Status != 202 {
		t.Errorf("result %+v", got)
	}
	if got := k.next(); got.Line != 2 || got.Status != 408 {
		t.Errorf("result %+v", got)
	}
	if _, err := k.lines.ReadByte(); err != io.EOF {
		t.Errorf("the answer goes on: %v", err)
	}
}

func TestBatchEndsAtItsBound(t *testing.T) {
	s := start(t, func(c *Config) { c.MaxBody = int64(len(say("e1")) + 1) })
	if got := statuses(s.batch(say("e1") + "\n")); got != "1:202" {
		t.Errorf("results at the bound: %s", got)
	}
	if got := statuses(s.batch(say("e2") + "\n" + say("e3") + "\n")); got != "1:202 2:413" {
		t.Errorf("results over the bound: %s", got)
	}
}

func TestBatchEndsWithTheGateway(t *testing.T) {
	s := start(t)
	k := s.talk()
	k.send(say("e1") + "\n")
	k.next()
	go s.stop()
	if got := k.next(); got.Line != 2 || got.Status != 503 {
		t.Errorf("result %+v", got)
	}
	if _, err := k.lines.ReadByte(); err != io.EOF {
		t.Errorf("the answer does not end cleanly: %v", err)
	}
}

func TestBatchOfAClientThatReadsNothingEnds(t *testing.T) {
	s := start(t, func(c *Config) { c.WriteTimeout = 200 * time.Millisecond })
	conn := s.dial()
	fmt.Fprint(conn, "POST /v0/envelopes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n")
	chunk := strings.Repeat("x\n", 8<<10)
	for {
		if _, err := fmt.Fprintf(conn, "%x\r\n%s\r\n", len(chunk), chunk); err != nil {
			break
		}
	}
	if err := conn.SetDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, s.post(say("e1")), 202)
}

func TestBatchIsReadAsFramesOnlyWhereItSaysSo(t *testing.T) {
	s := start(t)
	r := s.post(say("e1") + "\n" + say("e2"))
	wantStatus(t, r, nethttp.StatusUnprocessableEntity)
}
