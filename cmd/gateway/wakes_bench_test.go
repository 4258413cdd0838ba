package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/carriers/stdio"
	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/gateway"
	"github.com/compozy-gateway/gateway/store"
)

// benchTimes names, in an agent's environment, the file in which it writes when
// its first byte of each wake came.
const benchTimes = "GATEWAY_BENCH_TIMES"

// benchAgent is an agent that writes down when it is given something, and ends
// each wake at once.
func benchAgent(file string) {
	out, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		os.Exit(1)
	}
	buffer := make([]byte, 64<<10)
	for {
		n, err := os.Stdin.Read(buffer)
		now := time.Now()
		if err != nil {
			os.Exit(0)
		}
		_, rest, wakes := strings.Cut(string(buffer[:n]), `{"carrier":{"wake":"`)
		if !wakes {
			continue
		}
		fmt.Fprintln(out, now.UnixNano())
		id, _, _ := strings.Cut(rest, `"`)
		fmt.Printf("{\"carrier\":{\"done\":%q}}\n", id)
	}
}

// BenchmarkFirstByteOfAWake measures from the end of the coalescing window of a
// committed message to the agent's first byte, over a real store.
func BenchmarkFirstByteOfAWake(b *testing.B) {
	for _, launch := range []stdio.LaunchMode{stdio.LaunchStart, stdio.LaunchWake} {
		b.Run(string(launch), func(b *testing.B) {
			file := filepath.Join(b.TempDir(), "times")
			say, agents := benchGateway(b, launch, file)
			var delays []time.Duration
			for n := 0; b.Loop(); n++ {
				committed := say(n)
				awaitWakes(b, agents, n+1)
				text, err := os.ReadFile(file)
				if err != nil {
					b.Fatal(err)
				}
				lines := strings.Fields(string(text))
				at, err := strconv.ParseInt(lines[len(lines)-1], 10, 64)
				if err != nil {
					b.Fatal(err)
				}
				delays = append(delays, time.Unix(0, at).Sub(committed.Add(100*time.Millisecond)))
				if (n+1)%60 == 0 {
					if err := agents.RenewAgent(b.Context(), "bench"); err != nil {
						b.Fatal(err)
					}
				}
			}
			slices.Sort(delays)
			b.ReportMetric(delays[len(delays)/2].Seconds()*1000, "p50-ms")
			b.ReportMetric(delays[len(delays)*99/100].Seconds()*1000, "p99-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// awaitWakes waits until the wake of that number is over.
func awaitWakes(b *testing.B, agents *gateway.View, n int) {
	b.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		list, err := agents.Agents(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if w := list[0].Wakes; len(w) > 0 && w[0].ID == core.WakeID(int64(n)) && w[0].State.Final() {
			return
		}
	}
	b.Fatal("a wake did not end")
}

// offerer is a carrier through which the benchmark speaks.
type offerer struct{ in chan core.Intake }

func (o *offerer) Run(ctx context.Context, in core.Intake) error {
	o.in <- in
	<-ctx.Done()
	return nil
}
func (*offerer) Send(context.Context, core.Outbound, func(core.Ack, error)) {}
func (*offerer) Links() []core.Link                                         { return nil }
func (*offerer) Limits() core.Limits                                        { return core.Limits{InFlight: 1} }

func (*offerer) Status() core.Status { return core.Status{State: core.StateReady} }

func benchGateway(b *testing.B, launch stdio.LaunchMode, file string) (say func(n int) time.Time, agents *gateway.View) {
	b.Helper()
	db, err := store.Open(b.Context(), store.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	g, err := gateway.New(gateway.Options{Config: gateway.DefaultConfig(), Store: db, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	wakes, total, window := 64, 2*time.Hour, 100*time.Millisecond
	cfg := stdio.DefaultConfig()
	cfg.Agents["bench"] = stdio.AgentConfig{
		Command: []string{exe}, Env: map[string]stdio.EnvValue{benchTimes: stdio.EnvValue(file)},
		PeerID: "bench", Workspace: "demo", Channel: "general", Launch: launch,
		Participation: stdio.ParticipationConfig{Mode: stdio.ModeLive, Bounds: stdio.Bounds{
			MaxWakes: &wakes, MaxTotalWallTime: &total, CoalesceWindow: &window,
		}},
	}
	host, err := stdio.New(cfg, g.Host("agents"))
	if err != nil {
		b.Fatal(err)
	}
	speaker := &offerer{in: make(chan core.Intake, 1)}
	for name, c := range map[string]core.Carrier{"agents": host, "bench": speaker} {
		if err := g.AddCarrier(name, "bench", c); err != nil {
			b.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	in := <-speaker.in
	for host.Status().State != core.StateReady {
		time.Sleep(time.Millisecond)
	}
	return func(n int) time.Time {
		raw := fmt.Appendf(nil, `{"protocol":"compozy-network/v0","id":"m-%d","workspace_id":"demo","channel":"general","kind":"say",`+
			`"surface":"thread","thread_id":"thread_one","from":"ann","to":"bench","ts":%d,"body":{"text":"hello"}}`, n, time.Now().Unix())
		settled := make(chan core.Settlement, 1)
		if err := in.Offer(context.Background(), core.Inbound{Payload: raw}, func(s core.Settlement) { settled <- s }); err != nil {
			b.Fatal(err)
		}
		return (<-settled).CommittedAt
	}, g.View("bench")
}
