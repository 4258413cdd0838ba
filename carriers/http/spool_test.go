package http

import (
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestBatchOfAClientThatSendsEverythingFirstIsAnsweredWhole(t *testing.T) {
	const writeTimeout = 4 * time.Second
	s := start(t, func(c *Config) { c.WriteTimeout = writeTimeout })
	conn := s.dial()
	// So many lines take long with the race detector on a busy machine.
	if err := conn.SetDeadline(time.Now().Add(4 * patience)); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).SetReadBuffer(512 << 10); err != nil {
		t.Fatal(err)
	}
	// The answers are far more than what sockets hold.
	const lines = 60_000
	line := strings.Repeat("x", 399) + "\n"
	fmt.Fprintf(conn, "POST /v0/envelopes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"+
		"Connection: close\r\nContent-Length: %d\r\n\r\n", len(line)*lines)
	send := func(n int) {
		t.Helper()
		if _, err := fmt.Fprint(conn, strings.Repeat(line, n)); err != nil {
			t.Fatalf("the body is not taken: %v", err)
		}
	}
	for range lines/1000 - 1 {
		send(1000)
	}
	// For longer than an answer may wait, the rest comes in small pieces.
	piece := time.NewTicker(writeTimeout / 8)
	defer piece.Stop()
	for range 10 {
		send(100)
		<-piece.C
	}
	got := readReply(t, conn).results(t)
	if len(got) != lines || got[lines-1].Line != lines || got[lines-1].Status != 422 {
		t.Errorf("%d answers, want %d", len(got), lines)
	}
}

func TestASpoolHoldsWhatItMayAndNoMore(t *testing.T) {
	for name, c := range map[string]struct {
		total int64
		want  int
	}{
		"alone":                   {0, spoolRequest},
		"where others hold a lot": {spoolTotal, spoolLeast},
	} {
		t.Run(name, func(t *testing.T) {
			var total atomic.Int64
			total.Store(c.total)
			s := newSpool(&total)
			line := make([]byte, 1<<10)
			added, full := 0, make(chan int, 1)
			go func() {
				for s.add(line) {
					added += len(line)
				}
				full <- added
			}()
			eventually(t, "it is full", func() bool { return total.Load() == c.total+int64(c.want) })
			s.abandon()
			if got := <-full; got != c.want {
				t.Errorf("held %d bytes, want %d", got, c.want)
			}
			if got := total.Load(); got != c.total {
				t.Errorf("%d bytes are still counted", got-c.total)
			}
		})
	}
}

func TestASpoolGivesAnswersInOrderAndThenEnds(t *testing.T) {
	var total atomic.Int64
	s := newSpool(&total)
	go func() {
		defer s.finish()
		for i := range 1000 {
			s.add([]byte(fmt.Sprintln(i)))
		}
	}()
	var got, want strings.Builder
	piece := make([]byte, 100)
	for n, _ := s.take(piece); n > 0; n, _ = s.take(piece) {
		got.Write(piece[:n])
	}
	for i := range 1000 {
		fmt.Fprintln(&want, i)
	}
	if got.String() != want.String() || total.Load() != 0 {
		t.Errorf("got %d bytes, want %d; %d are still counted", got.Len(), want.Len(), total.Load())
	}
}
