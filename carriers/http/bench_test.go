package http

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	nethttp "net/http"
	"strings"
	"sync"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

// BenchmarkStream measures deliveries to the readers of one channel: one
// operation is one event at one reader.
func BenchmarkStream(b *testing.B) {
	for _, readers := range []int{1, 20, 200} {
		b.Run(fmt.Sprintf("readers=%d", readers), func(b *testing.B) { benchmarkStream(b, readers) })
	}
}

func benchmarkStream(b *testing.B, readers int) {
	mem := newMemory()
	carrier, err := New(testConfig(), testHost(io.Discard), Backend{Reader: mem, Inboxes: mem, Fleet: mem})
	if err != nil {
		b.Fatal(err)
	}
	if err := carrier.Listen(); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = carrier.Run(ctx, mem) })
	defer running.Wait()
	defer cancel()

	messages := max(b.N/readers, 1)
	var reading sync.WaitGroup
	client := &nethttp.Client{Transport: &nethttp.Transport{DisableKeepAlives: true}}
	for range readers {
		resp, err := client.Get("http://" + carrier.Addr().String() + channelPath + "/stream")
		if err != nil {
			b.Fatal(err)
		}
		defer resp.Body.Close()
		reading.Go(func() {
			lines := bufio.NewScanner(resp.Body)
			for n := 0; n < messages && lines.Scan(); {
				if bytes.HasPrefix(lines.Bytes(), []byte("data: ")) {
					n++
				}
			}
		})
	}
	envelope := []byte(say("e1", `,"ext":{"pad":"`, strings.Repeat("x", 200), `"}`))
	b.ResetTimer()
	const group = 32
	for seq := 1; seq <= messages; {
		mem.with(func() {
			var batch []core.Message
			for ; len(batch) < group && seq <= messages; seq++ {
				batch = append(batch, core.Message{Seq: int64(seq), Envelope: envelope, WorkspaceID: testWS, Channel: testCh})
			}
			mem.commit(batch...)
		})
	}
	reading.Wait()
	b.StopTimer()
	b.ReportMetric(float64(messages*readers)/b.Elapsed().Seconds(), "deliveries/s")
}

// BenchmarkBatch measures envelopes that are taken from one NDJSON body.
func BenchmarkBatch(b *testing.B) {
	mem := newMemory()
	carrier, err := New(testConfig(), testHost(io.Discard), Backend{Reader: mem, Inboxes: mem, Fleet: mem})
	if err != nil {
		b.Fatal(err)
	}
	if err := carrier.Listen(); err != nil {
		b.Fatal(err)
	}
	mem.settleWith = &core.Settlement{Verdict: core.VerdictCommitted, ID: "e1", Seq: 1}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = carrier.Run(ctx, mem) })
	running.Go(func() { mem.run(ctx) })
	defer running.Wait()
	defer cancel()
	line := say("e1") + "\n"
	b.ResetTimer()
	r, w := io.Pipe()
	go func() {
		out := bufio.NewWriter(w)
		for range b.N {
			_, _ = out.WriteString(line)
		}
		_ = out.Flush()
		w.Close()
	}()
	resp, err := nethttp.Post("http://"+carrier.Addr().String()+"/v0/envelopes", typeNDJSON, r)
	if err != nil {
		b.Fatal(err)
	}
	n, err := io.Copy(io.Discard, resp.Body)
	if resp.Body.Close(); err != nil || n == 0 {
		b.Fatalf("%d bytes, error %v", n, err)
	}
	nethttp.DefaultClient.CloseIdleConnections()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "envelopes/s")
}
