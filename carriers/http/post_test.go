package http

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	nethttp "net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

func TestPostAnswersANewEnvelopeAndItsDuplicate(t *testing.T) {
	s := start(t)
	envelope := say("e1")
	var first, second map[string]any
	r := s.post(envelope)
	wantStatus(t, r, 202)
	r.into(t, &first)
	if first["id"] != "e1" || first["seq"] != float64(1) || first["duplicate"] != false || first["parked"] != false {
		t.Errorf("answer %s", r.body)
	}
	if _, err := time.Parse(time.RFC3339Nano, fmt.Sprint(first["committed_at"])); err != nil {
		t.Error(err)
	}
	r = s.post(envelope)
	wantStatus(t, r, 200)
	r.into(t, &second)
	if second["duplicate"] != true || second["seq"] != first["seq"] || second["committed_at"] != first["committed_at"] {
		t.Errorf("answer %s, after %v", r.body, first)
	}
}

func TestPostAnswersAParkedEnvelopeWithoutASeq(t *testing.T) {
	s := start(t)
	s.mem.settleWith = &core.Settlement{Verdict: core.VerdictCommitted, ID: "e1", Parked: true, CommittedAt: time.Now()}
	r := s.post(say("e1"))
	wantStatus(t, r, 202)
	if !bytes.Contains(r.body, []byte(`"seq":null`)) || !bytes.Contains(r.body, []byte(`"parked":true`)) {
		t.Errorf("answer %s", r.body)
	}
}

func TestPostOffersTheBytesAsTheyCame(t *testing.T) {
	s := start(t)
	envelope := say("e1", `,"ext":{"n":1.10,"big":1e400,"s":"\u0041\/ž"}`)
	wantStatus(t, s.post("\r\n "+envelope+"\n"), 202)
	in := s.mem.offers()[0]
	if string(in.Payload) != envelope || in.Arrival != core.ArrivalIngress || in.Address != nil || in.Principal != nil {
		t.Errorf("offered %+v", in)
	}
}

// refusalStatuses is the whole table: a reason that is missing fails the test.
var refusalStatuses = map[core.Reason]int{
	core.ReasonMalformed:             422,
	core.ReasonExpired:               422,
	core.ReasonDuplicate:             409,
	core.ReasonUnsupportedKind:       422,
	core.ReasonUnsupportedProfile:    422,
	core.ReasonVerificationFailed:    422,
	core.ReasonNotTarget:             403,
	core.ReasonNotFound:              422,
	core.ReasonBusy:                  429,
	core.ReasonInternal:              422,
	core.ReasonInvalidSurface:        422,
	core.ReasonConversationNotFound:  422,
	core.ReasonWorkClosed:            409,
	core.ReasonWorkContainerMismatch: 409,
	core.ReasonLegacyFieldRejected:   422,
}

func TestPostAnswersEachRefusalWithItsStatus(t *testing.T) {
	s := start(t)
	for _, reason := range core.ReasonCodes() {
		t.Run(string(reason), func(t *testing.T) {
			s.mem.with(func() {
				st := refused("e1", &core.Rejection{Reason: reason, Detail: "because"})
				s.mem.settleWith = &st
			})
			r := s.post(say("e1"))
			wantStatus(t, r, refusalStatuses[reason])
			p := r.problem(t)
			if p.ReasonCode != reason || p.Detail != "because" || p.ID != "e1" || p.Type != reasonType+string(reason) {
				t.Errorf("problem %s", r.body)
			}
			if r.status == 429 && r.header.Get("Retry-After") == "" {
				t.Error("429 says not when to come again")
			}
		})
	}
}

func TestARefusalWithoutAReasonIsOurOwnFault(t *testing.T) {
	s := start(t)
	s.mem.settleWith = &core.Settlement{Verdict: core.VerdictRejected}
	wantStatus(t, s.post(say("e1")), 500)
	if got := s.batch(say("e2")); statuses(got) != "1:500" {
		t.Errorf("results %s", statuses(got))
	}
}

func TestPostRefusesWhatIsNotDeclaredAsJSON(t *testing.T) {
	s := start(t)
	for name, headers := range map[string][]string{
		"no type":        {"Content-Type", ""},
		"text":           {"Content-Type", "text/plain"},
		"form":           {"Content-Type", "application/x-www-form-urlencoded"},
		"two types":      {"Content-Type", "text/plain, application/json"},
		"not a type":     {"Content-Type", "application/json;;="},
		"suffix":         {"Content-Type", "application/problem+json"},
		"other charset":  {"Content-Type", "application/json; charset=latin1"},
		"gzip":           {"Content-Encoding", "gzip"},
		"stacked coding": {"Content-Encoding", "identity, br"},
		"gzip in NDJSON": {"Content-Type", typeNDJSON, "Content-Encoding", "gzip"},
	} {
		t.Run(name, func(t *testing.T) { wantStatus(t, s.post(say("e1"), headers...), 415) })
	}
	if n := len(s.mem.offers()); n != 0 {
		t.Errorf("%d frames were offered", n)
	}
	wantStatus(t, s.post(say("e1"), "Content-Type", "Application/JSON; charset=UTF-8", "Content-Encoding", "identity"), 202)
}

func TestPostRecordsBodiesThatAreNoEnvelopes(t *testing.T) {
	s := start(t)
	for _, body := range []string{"\n", "nonsense", "{", `{"id":1}`, "\xff", "\ufeff" + say("e1")} {
		r := s.post(body)
		wantStatus(t, r, 422)
	}
	if n := len(s.mem.offers()); n != 6 {
		t.Errorf("%d of 6 frames were offered", n)
	}
}

func TestPostRefusesATooLargeBodyWithoutReadingIt(t *testing.T) {
	s := start(t)
	conn := s.dial()
	size := testMaxEnvelope + spaceAllowance + 1
	fmt.Fprintf(conn, "POST /v0/envelopes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
		"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n", size)
	r := readReply(t, conn)
	wantStatus(t, r, 413)
	if r.problem(t).ReasonCode != core.ReasonMalformed {
		t.Errorf("problem %s", r.body)
	}
	if in := s.mem.offers()[0]; in.Size != int64(size) || len(in.Payload) != 0 {
		t.Errorf("offered size %d with %d bytes", in.Size, len(in.Payload))
	}
}

func TestPostRefusesATooLargeChunkedBody(t *testing.T) {
	s := start(t)
	req := s.request("POST", "/v0/envelopes", "")
	req.Body = io.NopCloser(strings.NewReader(strings.Repeat("x", 4*testMaxEnvelope)))
	req.ContentLength = -1
	req.Header.Set("Content-Type", typeJSON)
	wantStatus(t, s.do(req), 413)
	if in := s.mem.offers()[0]; in.Size <= testMaxEnvelope || len(in.Payload) != keptPrefix {
		t.Errorf("offered size %d with %d bytes", in.Size, len(in.Payload))
	}
}

func TestPostDoesNotCountWhiteSpaceAroundTheEnvelope(t *testing.T) {
	s := start(t)
	envelope := say("e1", `,"ext":{"pad":"`, strings.Repeat("x", testMaxEnvelope-len(say("e1"))-17), `"}`)
	if len(envelope) != testMaxEnvelope {
		t.Fatalf("the envelope has %d bytes", len(envelope))
	}
	wantStatus(t, s.post(envelope+"\r\n"), 202)
	wantStatus(t, s.post(" "+strings.Replace(envelope, "xx", "xxx", 1)+" "), 413)
}

func TestPostGivesUpOnASlowBody(t *testing.T) {
	s := start(t, func(c *Config) { c.BodyTimeout = 50 * time.Millisecond })
	conn := s.dial()
	fmt.Fprint(conn, "POST /v0/envelopes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	r := readReply(t, conn)
	wantStatus(t, r, 408)
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection goes on")
	}
}

func TestPostGivesUpOnASlowHeader(t *testing.T) {
	s := start(t, func(c *Config) { c.ReadHeaderTimeout = 50 * time.Millisecond })
	conn := s.dial()
	fmt.Fprint(conn, "POST /v0/envelopes HTTP/1.1\r\nHost: loc")
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("the connection did not end: %v", err)
	}
}

func TestPostAsksToComeAgainWhenTheSettlementDoesNotCome(t *testing.T) {
	quick := func(c *Config) { c.AcceptTimeout = 50 * time.Millisecond }
	for name, prepare := range map[string]func(m *memory){
		"held":     func(m *memory) { m.held = true },
		"full":     func(m *memory) { m.full = make(chan struct{}) },
		"stopping": func(m *memory) { m.offerErr = core.ErrStopping },
		"retry":    func(m *memory) { m.settleWith = &core.Settlement{Verdict: core.VerdictRetry, RetryAfter: time.Minute} },
		"zero":     func(m *memory) { m.settleWith = &core.Settlement{} },
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, quick)
			s.mem.with(func() { prepare(s.mem) })
			r := s.post(say("e1"))
			wantStatus(t, r, 503)
			want := "2"
			if name == "retry" {
				want = "60"
			}
			if got := r.header.Get("Retry-After"); got != want {
				t.Errorf("Retry-After %q, want %q", got, want)
			}
		})
	}
}

func TestAConnectionMayRestLongerThanAWriteMayTake(t *testing.T) {
	s := start(t, func(c *Config) { c.WriteTimeout = 20 * time.Millisecond })
	conn := s.dial()
	for i := range 2 {
		envelope := say(fmt.Sprint("e", i))
		fmt.Fprintf(conn, "POST /v0/envelopes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
			"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(envelope))
		wantLine(t, conn, "HTTP/1.1 100 Continue\r\n\r\n")
		fmt.Fprint(conn, envelope)
		wantStatus(t, readReply(t, conn), 202)
		rest := time.Now().Add(60 * time.Millisecond)
		eventually(t, "the connection has rested", func() bool { return time.Now().After(rest) })
	}
}

func wantLine(t *testing.T, conn net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Fatalf("read %q, error %v; want %q", got, err, want)
	}
}

func TestPostTakesAnEnvelopeWhollyOrNotAtAll(t *testing.T) {
	s := start(t)
	s.mem.with(func() { s.mem.held = true })
	envelope := say("e1")
	head := "POST /v0/envelopes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
	cut := s.dial()
	fmt.Fprintf(cut, head+"%s", len(envelope), envelope[:len(envelope)-1])
	cut.Close()
	whole := s.dial()
	fmt.Fprintf(whole, head+"%s", len(envelope), envelope)
	eventually(t, "the whole envelope is offered", func() bool { return len(s.mem.offers()) > 0 })
	whole.Close()
	s.mem.with(func() { s.mem.held = false })
	eventually(t, "it is committed", func() bool {
		s.mem.mu.Lock()
		defer s.mem.mu.Unlock()
		return len(s.mem.messages) == 1
	})
	wantStatus(t, s.post(envelope), 200)
	if n := len(s.mem.offers()); n != 2 {
		t.Errorf("%d frames were offered, want the whole one and its repeat", n)
	}
}

func TestFiftyPostsOfOneEnvelopeMakeOneMessage(t *testing.T) {
	s := start(t)
	envelope := say("e1")
	counts := map[int]int{}
	var mu sync.Mutex
	var posts sync.WaitGroup
	for range 50 {
		posts.Go(func() {
			r := s.post(envelope)
			mu.Lock()
			defer mu.Unlock()
			counts[r.status]++
		})
	}
	posts.Wait()
	if counts[202] != 1 || counts[200] != 49 {
		t.Errorf("answers by status: %v", counts)
	}
	r := s.post(strings.Replace(envelope, "hello", "other", 1))
	wantStatus(t, r, 409)
	if p := r.problem(t); p.ReasonCode != core.ReasonDuplicate {
		t.Errorf("problem %s", r.body)
	}
	if got := string(s.mem.messages[0].Envelope); got != envelope {
		t.Errorf("the first version is now %s", got)
	}
}

// dial opens a raw connection to the carrier.
func (s *site) dial() net.Conn {
	s.Helper()
	conn, err := net.Dial("tcp", s.carrier.Addr().String())
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		s.Fatal(err)
	}
	return conn
}

func readReply(t *testing.T, conn net.Conn) reply {
	t.Helper()
	resp, err := nethttp.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, body}
}
