package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// bench is one run.
type bench struct {
	// source is the gateway's checkout; dir is on the disk that is measured.
	source, dir string
	gateway     string
	natsServer  string
	mosquitto   string
	benchmarks  *goBenchmarks

	rounds        int
	warm, counted time.Duration
	inFlight      []int
	relayWindows  []int
	stored        int
	// minutes is for how long the memory is watched.
	minutes int

	mint    mint
	results results
	started time.Time
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var o contestOptions
	full := flag.Bool("full", false, "longer rounds, 5,000,000 stored messages, and the memory over 10 minutes")
	rounds := flag.Int("rounds", 0, "how often everything is measured (default 3, with -full 5)")
	stored := flag.Int("stored", 0, "how many messages the filled store has (default 1000000, with -full 5000000)")
	minutes := flag.Int("minutes", 0, "for how long the memory is watched (default not at all, with -full 10)")
	out := flag.String("out", "docs/bench", "where the data and the plots go, relative to -source")
	source := flag.String("source", "../..", "the gateway's checkout")
	parent := flag.String("on", "", "a directory on the disk to measure (default the one for temporary files)")
	only := flag.String("only", "", "the parts to run, of "+strings.Join(partNames(), ", ")+" (default all)")
	contestantName := flag.String("contestant", "", "run as this contestant; used by the program itself")
	flag.StringVar(&o.nats, "nats", "", "with -contestant: the address of NATS")
	flag.StringVar(&o.mqtt, "mqtt", "", "with -contestant: the address of MQTT")
	flag.StringVar(&o.dir, "dir", "", "with -contestant: the directory of the database")
	flag.Parse()
	if *contestantName != "" {
		return contest(ctx, *contestantName, o)
	}
	b := &bench{
		rounds: 3, warm: 500 * time.Millisecond, counted: time.Second, stored: 1_000_000, started: time.Now(),
		inFlight: []int{1, 16, 256, 4096}, relayWindows: []int{1, 16, 256, fullLoad},
	}
	if *full {
		b.rounds, b.counted, b.stored, b.minutes = 5, 4*time.Second, 5_000_000, 10
		b.inFlight = []int{1, 4, 16, 64, 256, 1024, 4096}
		b.relayWindows = []int{1, 4, 16, 64, 256, 1024, fullLoad}
	}
	if *rounds > 0 {
		b.rounds = *rounds
	}
	if *stored > 0 {
		b.stored = *stored
	}
	if *minutes > 0 {
		b.minutes = *minutes
	}
	if err := b.prepare(ctx, *source, *parent); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.dir) }()
	if err := b.measure(ctx, *only); err != nil {
		return err
	}
	if !filepath.IsAbs(*out) {
		*out = filepath.Join(b.source, *out)
	}
	return b.report(*out)
}

// prepare builds the gateway and what it is measured beside.
func (b *bench) prepare(ctx context.Context, source, parent string) error {
	var err error
	if b.source, err = filepath.Abs(source); err != nil {
		return err
	}
	if b.mosquitto, err = findProgram("mosquitto"); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp(parent, "gateway-bench-"); err != nil {
		return err
	}
	b.gateway, b.natsServer = filepath.Join(b.dir, "gateway-binary"), filepath.Join(b.dir, "nats-server")
	if err := build(ctx, b.source, b.gateway, "./cmd/gateway"); err != nil {
		return err
	}
	// The server that the gateway embeds, as a program of its own.
	if err := build(ctx, filepath.Join(b.source, "integration", "bench"), b.natsServer, "github.com/nats-io/nats-server/v2"); err != nil {
		return err
	}
	b.benchmarks, err = b.compileBenchmarks(ctx)
	return err
}

func build(ctx context.Context, dir, out, pkg string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", out, pkg)
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, text)
	}
	return nil
}

// findProgram also looks where distributions put servers.
func findProgram(name string) (string, error) {
	for _, candidate := range []string{name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("the benchmark needs %s", name)
}

// part is a share of the run.
type part struct {
	name string
	run  func(*bench, context.Context) error
	// rounds is true for what is measured once in every round.
	rounds bool
}

func parts() []part {
	return []part{
		{"path", (*bench).measureGoBenchmarks, true},
		{"accept", (*bench).measureAcceptance, true},
		{"relay", (*bench).measureRelays, true},
		{"fanout", (*bench).measureFanout, true},
		{"idle", (*bench).measureIdle, true},
		{"latency", (*bench).measureLatency, true},
		{"memory", (*bench).measureMemory, false},
		{"growth", (*bench).measureGrowth, false},
	}
}

func partNames() []string {
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	return names
}

func (b *bench) measure(ctx context.Context, only string) error {
	wanted := func(p part) bool { return only == "" || strings.Contains(","+only+",", ","+p.name+",") }
	once := func(p part) error {
		b.say("%s", p.name)
		if err := p.run(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		return ctx.Err()
	}
	for round := range b.rounds {
		b.say("round %d of %d, load average %s", round+1, b.rounds, loadAverage())
		for _, p := range parts() {
			if p.rounds && wanted(p) {
				if err := once(p); err != nil {
					return err
				}
			}
		}
	}
	for _, p := range parts() {
		if !p.rounds && wanted(p) {
			if err := once(p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) report(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := b.results.print(os.Stdout); err != nil {
		return err
	}
	fmt.Println()
	if err := b.results.printTargets(os.Stdout, float64(b.stored)); err != nil {
		return err
	}
	if err := b.results.save(dir); err != nil {
		return err
	}
	return b.results.draw(dir)
}

// say tells how far the run is.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%6s  %s\n", time.Since(b.started).Round(time.Second), fmt.Sprintf(format, args...))
}

// scratch is a new directory on the measured disk.
func (b *bench) scratch(name string) (string, error) { return os.MkdirTemp(b.dir, name+"-") }

func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}
