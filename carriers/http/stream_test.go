package http

import (
	"bufio"
	"fmt"
	"io"
	nethttp "net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// event is one event as a strict parser sees it.
type event struct{ id, name, data string }

// listener reads one event stream as the standard has it.
type listener struct {
	*testing.T
	header nethttp.Header
	events chan event
	// ended gets how the stream ended: nil for a clean end.
	ended chan error
	mu    sync.Mutex
	beats int
	// lastID is the last id of any block, also of one that is no event.
	lastID string
}

// events opens a stream and reads it until the test ends.
func (s *site) events(path string, headers ...string) *listener {
	s.Helper()
	req := s.request("GET", path, "", headers...)
	client := &nethttp.Client{Transport: &nethttp.Transport{}}
	resp, err := client.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != typeSSE {
		s.Fatalf("stream answered %d %s", resp.StatusCode, resp.Header)
	}
	l := &listener{T: s.T, header: resp.Header, events: make(chan event, 100_000), ended: make(chan error, 1)}
	go l.read(resp.Body)
	s.Cleanup(func() { resp.Body.Close(); <-l.ended; client.CloseIdleConnections() })
	return l
}

// read parses events by the letter: only LF ends lines here, as we write them,
// and a CR anywhere is a fault.
func (l *listener) read(body io.Reader) {
	lines := bufio.NewReader(body)
	var e event
	var data []string
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			close(l.events)
			l.ended <- err
			return
		}
		line = strings.TrimSuffix(line, "\n")
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case strings.Contains(line, "\r"):
			l.Errorf("line %q holds a CR", line)
		case line == "":
			if len(data) > 0 {
				e.data = strings.Join(data, "\n")
				l.events <- e
			}
			e, data = event{}, nil
		case field == "":
			l.mu.Lock()
			l.beats++
			l.mu.Unlock()
		case field == "id":
			e.id = value
			l.mu.Lock()
			l.lastID = value
			l.mu.Unlock()
		case field == "event":
			e.name = value
		case field == "data":
			data = append(data, value)
		default:
			l.Errorf("line %q is no field", line)
		}
	}
}

func (l *listener) comments() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.beats
}

func (l *listener) position() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastID
}

func (l *listener) next() event {
	l.Helper()
	select {
	case e, open := <-l.events:
		if !open {
			l.Fatal("the stream has ended")
		}
		return e
	case <-time.After(patience):
		l.Fatal("no event comes")
		return event{}
	}
}

// wantEnvelopes wants exactly these envelopes to come next, by id.
func (l *listener) wantEnvelopes(ids ...string) {
	l.Helper()
	for _, id := range ids {
		if e := l.next(); e.name != "envelope" || e.id != id {
			l.Fatalf("event %+v, want envelope %s", e, id)
		}
	}
}

// wantGap wants a gap to come next: behind the position that was asked for, up
// to the one from which the stream goes on.
func (l *listener) wantGap(after, goesOn string) {
	l.Helper()
	want := event{id: goesOn, name: "gap", data: `{"after":` + after + `,"continues_after":` + goesOn + `}`}
	if e := l.next(); e != want {
		l.Fatalf("event %+v, want %+v", e, want)
	}
}

// wantEnd wants the stream to end cleanly, without further events.
func (l *listener) wantEnd() {
	l.Helper()
	select {
	case e, open := <-l.events:
		if open {
			l.Fatalf("event %+v, want the end", e)
		}
	case <-time.After(patience):
		l.Fatal("the stream does not end")
	}
	err := <-l.ended
	l.ended <- err
	if err != nil {
		l.Errorf("the stream ended with %v", err)
	}
}

func TestStreamBeginsNowAndAtOnce(t *testing.T) {
	s := start(t)
	s.mem.put(1, `{"n":1}`)
	l := s.events(channelPath + "/stream")
	eventually(t, "the first byte comes", func() bool { return l.comments() > 0 })
	eventually(t, "the reader knows where to go on from, before any event", func() bool { return l.position() == "1" })
	if l.header.Get("X-Accel-Buffering") != "no" || l.header.Get("Cache-Control") != "no-cache" {
		t.Errorf("header %v", l.header)
	}
	s.mem.put(2, `{"n":2}`)
	if e := l.next(); e != (event{"2", "envelope", `{"n":2}`}) {
		t.Errorf("event %+v", e)
	}
}

func TestStreamGoesOnWithoutGapOrRepeat(t *testing.T) {
	s := start(t)
	for seq := int64(1); seq <= 300; seq++ {
		s.mem.put(seq, `{}`)
	}
	writing := make(chan struct{})
	go func() {
		defer close(writing)
		for seq := int64(301); seq <= 2000; seq++ {
			s.mem.put(seq, `{}`)
		}
	}()
	var readers sync.WaitGroup
	for _, from := range []int{0, 1, 150, 299, 300} {
		l := s.events(fmt.Sprintf("%s/stream?after=%d", channelPath, from))
		readers.Go(func() {
			for seq := from + 1; seq <= 2000; seq++ {
				if e, open := <-l.events; !open || e.id != strconv.Itoa(seq) {
					t.Errorf("after %d: event %+v, want %d", from, e, seq)
					return
				}
			}
		})
	}
	readers.Wait()
	<-writing
	l := s.events(channelPath+"/stream?after=1", "Last-Event-ID", "1998")
	l.wantEnvelopes("1999", "2000")
}

func TestStreamTellsOfAPositionThatItCannotGoOnFrom(t *testing.T) {
	s := start(t)
	for seq := int64(1); seq <= 10; seq++ {
		s.mem.put(seq, `{}`)
	}
	s.mem.with(func() { s.mem.oldest = 6 })
	for _, c := range []struct {
		name, path, lastID string
		gap                string
		then               []string
	}{
		{"older than retention", "?after=2", "", `{"after":2,"continues_after":5}`, []string{"6", "7", "8", "9", "10", "11"}},
		{"from the beginning", "?after=0", "", `{"after":0,"continues_after":5}`, []string{"6", "7", "8", "9", "10", "11"}},
		{"unknown", "?after=99", "", `{"after":99,"continues_after":10}`, []string{"11"}},
		{"not one of ours", "", "abc", `{"after":0,"continues_after":10}`, []string{"11"}},
		{"just retained", "?after=5", "", "", []string{"6", "7", "8", "9", "10", "11"}},
		{"the newest", "", "10", "", []string{"11"}},
	} {
		var headers []string
		if c.lastID != "" {
			headers = []string{"Last-Event-ID", c.lastID}
		}
		l := s.events(channelPath+"/stream"+c.path, headers...)
		t.Run(c.name, func(t *testing.T) {
			if c.gap != "" {
				if e := l.next(); e.name != "gap" || e.data != c.gap {
					t.Errorf("event %+v, want gap %s", e, c.gap)
				}
			}
			l.wantEnvelopes(c.then[:len(c.then)-1]...)
		})
		defer l.wantEnvelopes("11")
	}
	s.mem.put(11, `{}`)
}

func TestStreamWritesEachEnvelopeOnOneLine(t *testing.T) {
	s := start(t)
	l := s.events(channelPath + "/stream")
	s.mem.put(1, "{\r\n\"a\":\r1,\n\"s\":\"\u2028\"}")
	if e := l.next(); e.data != "{  \"a\": 1, \"s\":\"\u2028\"}" {
		t.Errorf("data %q", e.data)
	}
}

func TestStreamShowsDirectRoomsToTheirTwoPeersOnly(t *testing.T) {
	s := start(t)
	public, ada, eve := s.events(channelPath+"/stream"), s.events(channelPath+"/stream?peer=ada"), s.events(channelPath+"/stream?peer=eve")
	s.mem.put(1, `{}`, "ada", "bob")
	s.mem.put(2, `{}`)
	public.wantEnvelopes("2")
	ada.wantEnvelopes("1", "2")
	eve.wantEnvelopes("2")
	s.events(channelPath+"/stream?after=0&peer=bob").wantEnvelopes("1", "2")
	s.events(channelPath + "/stream?after=0").wantEnvelopes("2")
}

func TestStreamShowsDirectRoomsToAdmins(t *testing.T) {
	s := tokenSite(t)
	l := s.events(channelPath+"/stream", as("admin")...)
	s.mem.put(1, `{}`, "ada", "bob")
	l.wantEnvelopes("1")
}

func TestStreamKeepsAQuietConnectionAwake(t *testing.T) {
	s := start(t, func(c *Config) { c.Heartbeat = 20 * time.Millisecond })
	quiet, inbox := s.events(channelPath+"/stream"), s.events(channelPath+"/peers/ada/inbox", "Accept", typeSSE)
	eventually(t, "heartbeats come", func() bool { return quiet.comments() > 3 && inbox.comments() > 3 })
	s.mem.put(1, `{}`)
	quiet.wantEnvelopes("1")
}

func TestStreamsEndWithTheGateway(t *testing.T) {
	s := start(t)
	var streams []*listener
	for range 20 {
		streams = append(streams, s.events(channelPath+"/stream"))
	}
	streams = append(streams, s.events(channelPath+"/peers/ada/inbox", "Accept", typeSSE))
	begin := time.Now()
	s.stop()
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("the end took %v", took)
	}
	for _, l := range streams {
		l.wantEnd()
	}
}

func TestAReaderThatStallsCostsTheOthersNothing(t *testing.T) {
	s := start(t, func(c *Config) { c.WriteTimeout = time.Second })
	stalled := s.dial()
	fmt.Fprintf(stalled, "GET %s/stream HTTP/1.1\r\nHost: localhost\r\n\r\n", channelPath)
	eventually(t, "the stalled reader is served", func() bool { return len(s.carrier.streams) == 1 })
	first, second := s.events(channelPath+"/stream"), s.events(channelPath+"/stream")
	const n = 5000
	envelope := `{"pad":"` + strings.Repeat("x", 4<<10) + `"}`
	go func() {
		for seq := int64(1); seq <= n; seq++ {
			s.mem.put(seq, envelope)
		}
	}()
	for seq := 1; seq <= n; seq++ {
		first.wantEnvelopes(strconv.Itoa(seq))
		second.wantEnvelopes(strconv.Itoa(seq))
	}
	eventually(t, "the stalled reader is let go", func() bool { return len(s.carrier.streams) == 2 })
}

func TestOneReadOfTheStoreServesAllReaders(t *testing.T) {
	s := start(t)
	var streams []*listener
	for range 50 {
		streams = append(streams, s.events(channelPath+"/stream"))
	}
	s.mem.with(func() { s.mem.reads = 0 })
	const n = 100
	for seq := int64(1); seq <= n; seq++ {
		s.mem.put(seq, `{}`)
	}
	for _, l := range streams {
		for seq := 1; seq <= n; seq++ {
			l.wantEnvelopes(strconv.Itoa(seq))
		}
	}
	s.mem.mu.Lock()
	defer s.mem.mu.Unlock()
	if s.mem.reads > 3*n {
		t.Errorf("%d reads of the store for %d messages and %d readers", s.mem.reads, n, len(streams))
	}
}

func TestStreamsAreBounded(t *testing.T) {
	s := start(t, func(c *Config) { c.MaxStreams = 1 })
	s.events(channelPath + "/stream")
	wantStatus(t, s.get(channelPath+"/stream"), 503)
	wantStatus(t, s.get(channelPath+"/peers/ada/inbox"), 503)
}

func TestAStreamWhoseStoreFailsIsCutOff(t *testing.T) {
	s := start(t)
	s.mem.put(1, `{}`)
	s.mem.with(func() { s.mem.readErr = errSecretTooLong })
	l := s.events(channelPath + "/stream?after=0")
	if err := <-l.ended; err == nil {
		t.Error("the stream looks whole")
		l.ended <- err
	} else {
		l.ended <- err
	}
}
