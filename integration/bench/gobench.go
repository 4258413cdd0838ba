package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

const (
	acceptPath = "accept path in process"
	parsing    = "parse and validate"
	allocs     = "allocations to parse and validate"
)

// goBenchmarks are ordinary benchmarks of the gateway's packages, compiled once
// and run in turn.
type goBenchmarks struct{ accept, core string }

func (b *bench) compileBenchmarks(ctx context.Context) (*goBenchmarks, error) {
	g := &goBenchmarks{accept: filepath.Join(b.dir, "gateway.test"), core: filepath.Join(b.dir, "core.test")}
	for pkg, out := range map[string]string{"./gateway": g.accept, "./core": g.core} {
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", out, pkg)
		cmd.Dir = b.source
		if text, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("compile the benchmarks of %s: %w\n%s", pkg, err, text)
		}
	}
	return g, nil
}

func (b *bench) measureGoBenchmarks(ctx context.Context) error {
	lines, err := runBenchmarks(ctx, b.benchmarks.accept, "^Benchmark(AcceptPath|BareInsert)$", "40960x")
	if err != nil {
		return err
	}
	for name, l := range lines {
		b.results.add(acceptPath, name, 512, perSecond, 1e9/l.nanoseconds)
	}
	lines, err = runBenchmarks(ctx, b.benchmarks.core, "^Benchmark(Check|Unmarshal)$", "200ms")
	if err != nil {
		return err
	}
	for name, l := range lines {
		b.results.add(parsing, name, 0, "µs", l.nanoseconds/1000)
		b.results.add(allocs, name, 0, "", l.allocations)
	}
	return nil
}

type benchmarkLine struct{ nanoseconds, allocations float64 }

func benchmarkPattern() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op(?:.*?(\d+) allocs/op)?`)
}

func runBenchmarks(ctx context.Context, binary, which, length string) (map[string]benchmarkLine, error) {
	cmd := exec.CommandContext(ctx, binary, "-test.run=^$", "-test.bench="+which, "-test.benchtime="+length)
	cmd.Dir = filepath.Dir(binary)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("benchmarks: %w\n%s", err, out.String())
	}
	found := map[string]benchmarkLine{}
	for _, m := range benchmarkPattern().FindAllStringSubmatch(out.String(), -1) {
		var l benchmarkLine
		l.nanoseconds, _ = strconv.ParseFloat(m[2], 64) // The pattern takes numbers only.
		l.allocations, _ = strconv.ParseFloat(m[3], 64) // Nothing is no allocations.
		found[strings.ReplaceAll(m[1], "_", " ")] = l
	}
	return found, nil
}
