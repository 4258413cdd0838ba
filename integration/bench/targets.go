package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// target is one demand on the gateway, from the medians of a run.
type target struct {
	what string
	// value is what was reached; ok is false when it was not measured.
	value func(*results) (v float64, ok bool)
	// bound is the least value, or the greatest where atMost is true.
	bound  float64
	atMost bool
}

func ratio(a, b float64, okA, okB bool) (float64, bool) { return a / b, okA && okB && b > 0 }

func targets(stored float64) []target {
	list := []target{
		{"accept path in process, share of the bare insert", func(r *results) (float64, bool) {
			a, okA := r.median(acceptPath, "AcceptPath", 512)
			b, okB := r.median(acceptPath, "BareInsert", 512)
			return ratio(a, b, okA, okB)
		}, 0.6, false},
		{"acceptance over NDJSON, times JetStream with sync always", overJetStream("gateway, HTTP NDJSON"), 2, false},
		{"acceptance over JetStream, times JetStream with sync always", overJetStream("gateway, JetStream"), 2, false},
		{"NATS to MQTT, times the better of Watermill and by hand", func(r *results) (float64, bool) {
			g, okG := r.best(relay, "gateway")
			w, okW := r.best(relay, contestWatermill)
			h, okH := r.best(relay, contestByHand)
			return ratio(g, max(w, h), okG, okW && okH)
		}, 5, false},
		{"allocations for the message of 600 B", func(r *results) (float64, bool) { return r.median(allocs, "Check/say 600 B", 0) }, 8, true},
		{"one message alone, p50, over 2 commits + 1 ms", func(r *results) (float64, bool) {
			p50, okP := r.median(relayP50, "gateway", 1)
			commit, okC := r.median(alone, "bare insert", 1)
			return ratio(p50, 2*commit+1, okP, okC)
		}, 1, true},
		{"p99 at half of the highest load, ms", func(r *results) (float64, bool) { return r.median(latencyP99, "gateway", 50) }, 25, true},
		{"resident memory idle, MiB", func(r *results) (float64, bool) { return r.median(memoryIdle, "gateway", 0) }, 40, true},
		{"resident memory at full load, relay, MiB", func(r *results) (float64, bool) { return r.median(memoryUnderLoad, "gateway", 0) }, 150, true},
		{"resident memory at full load, NDJSON, MiB", func(r *results) (float64, bool) {
			return r.median(memoryUnderLoad, "gateway, HTTP NDJSON", 4096)
		}, 150, true},
		{"memory after 10 minutes of load, times after 2", func(r *results) (float64, bool) {
			late, okL := r.median(memoryOverTime, "gateway", 10)
			early, okE := r.median(memoryOverTime, "gateway", 2)
			return ratio(late, early, okL, okE)
		}, 1.15, true},
		{"database bytes by envelope byte", func(r *results) (float64, bool) { return r.median(databaseRatio, "gateway", stored) }, 1.6, true},
		{"opening the filled store, ms", func(r *results) (float64, bool) { return r.median(opening, "gateway", stored) }, 2000, true},
		{"deliveries/s to SSE readers", func(r *results) (float64, bool) { return r.median(fanout, "all read", fanoutReaders) }, 50_000, false},
		{"the same with one stalled, share", func(r *results) (float64, bool) {
			s, okS := r.median(fanout, "one stalled", fanoutReaders)
			a, okA := r.median(fanout, "all read", fanoutReaders)
			return ratio(s, a, okS, okA)
		}, 0.9, false},
	}
	for _, sample := range []string{"say 600 B", "capability 1.2 KiB", "say 64 KiB", "say 1 MiB"} {
		list = append(list, target{"parse and validate, share of unmarshalling, " + sample, func(r *results) (float64, bool) {
			c, okC := r.median(parsing, "Check/"+sample, 0)
			u, okU := r.median(parsing, "Unmarshal/"+sample, 0)
			return ratio(c, u, okC, okU)
		}, 1, true})
	}
	for _, c := range conversations() {
		list = append(list, target{"acceptance over the filled store, share of empty, " + c.name, func(r *results) (float64, bool) {
			f, okF := r.median(growthRate, c.name, stored)
			e, okE := r.median(growthRate, c.name, 0)
			return ratio(f, e, okF, okE)
		}, 0.85, false})
	}
	return list
}

func overJetStream(name string) func(*results) (float64, bool) {
	return func(r *results) (float64, bool) {
		g, okG := r.best(accept, name)
		j, okJ := r.best(accept, "JetStream, sync always")
		return ratio(g, j, okG, okJ)
	}
}

// printTargets shows what was asked for and what was reached.
func (r *results) printTargets(w io.Writer, stored float64) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "target\tmust\tis\t")
	for _, target := range targets(stored) {
		v, ok := target.value(r)
		if !ok {
			continue
		}
		sign, verdict := "≥", "met"
		if target.atMost {
			sign = "≤"
		}
		if (target.atMost && v > target.bound) || (!target.atMost && v < target.bound) {
			verdict = "missed"
		}
		fmt.Fprintf(t, "%s\t%s %g\t%s\t%s\n", target.what, sign, target.bound, short(v), verdict)
	}
	return t.Flush()
}
