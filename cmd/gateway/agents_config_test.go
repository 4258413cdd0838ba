package main

import (
	"slices"
	"strings"
	"testing"
)

// twoHosts is two carriers with one agent each.
func twoHosts(first, second string) string {
	return "carriers:\n  one: {type: stdio, agents: {x: {command: [cat], " + first + "}}}\n" +
		"  two: {type: stdio, agents: {y: {command: [cat], " + second + "}}}\n"
}

func TestAgentsOfTwoCarriersHavePeerIdsOfTheirOwn(t *testing.T) {
	const (
		ada   = "peer_id: ada, workspace: w, channel: c"
		local = ada + ", participation: {mode: local}"
		live  = ada + ", participation: {mode: live}"
	)
	token := writeFile(t, "token", strings.Repeat("a", 40))
	for name, tc := range map[string]struct {
		file string
		good bool
	}{
		"both live":           {twoHosts(live, live), false},
		"one of them local":   {twoHosts(live, local), false},
		"in two workspaces":   {twoHosts(live, strings.Replace(live, "workspace: w", "workspace: v", 1)), true},
		"in two channels":     {twoHosts(live, strings.Replace(live, "channel: c", "channel: d", 1)), false},
		"with two ids":        {twoHosts(live, strings.Replace(live, "ada", "bob", 1)), true},
		"without a workspace": {twoHosts("peer_id: ada", "peer_id: ada"), true},
		"a token that names it": {
			twoHosts(live, "peer_id: bob, workspace: w") + "  web: {type: http, tokens: {t: {token_file: " + token + ", peers: [ada]}}}\n", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := command(t, "", "config", "check", "--config", writeFile(t, "gateway.yaml", tc.file))
			if tc.good {
				if got.status != exitGood {
					t.Errorf("got %+v", got)
				}
				return
			}
			const says = "error: carriers.two.agents.y.peer_id: ada is the peer id of carriers.one.agents.x.peer_id too, in workspace w: give one of them another\n"
			if got.status != exitUsage || got.stderr != says {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestAProgramThatIsNotThereIsAWarningAlone(t *testing.T) {
	const live = "peer_id: ada, workspace: w, channel: c, participation: {mode: live}"
	file := writeFile(t, "gateway.yaml", "carriers: {s: {type: stdio, agents: {x: {command: [no-such-program], "+live+"}}}}\n")
	for _, format := range []string{"text", "json"} {
		got := command(t, "", "config", "check", "--config", file, "-o", format)
		if got.status != exitGood || !strings.Contains(got.stdout, "good") {
			t.Errorf("%s: got %+v", format, got)
		}
		for _, part := range []string{"level=WARN", "key=carriers.s.agents.x.command ", "program=no-such-program ", "why=", "advice="} {
			if !strings.Contains(got.stderr, part) || strings.Count(got.stderr, "\n") != 1 {
				t.Errorf("%s: %q is missing, or more is said: %s", format, part, got.stderr)
			}
		}
	}
}

func TestKeysOfAgentsThatMeanNothingThereAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ more, says string }{
		"launch of nothing":        {`launch: ""`, "carriers.s.agents.x.launch: is empty; leave the key out to get its default"},
		"acknowledgement":          {`ack: ""`, "carriers.s.agents.x.ack: is empty; leave the key out to get its default"},
		"mode of nothing":          {`participation: {mode: ""}`, "carriers.s.agents.x.participation.mode: is empty; leave the key out to get its default"},
		"what is for all":          {"restart: {min: 1s}", "carriers.s.agents.x.restart: unknown key; it belongs further up: carriers.s.restart"},
		"what the agent itself is": {"participation: {launch: wake}", "carriers.s.agents.x.participation.launch: unknown key; it belongs further up: carriers.s.agents.x.launch"},
	} {
		t.Run(name, func(t *testing.T) {
			file := writeFile(t, "gateway.yaml", "carriers: {s: {type: stdio, agents: {x: {command: [cat], "+tc.more+"}}}}\n")
			got := command(t, "", "config", "check", "--config", file)
			if got.status != exitUsage || got.stderr != "error: "+tc.says+"\n" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestAnAgentThatLeavesItsChoicesOpenIsPrintedSoThatItCanBeLoadedAgain(t *testing.T) {
	file := writeFile(t, "gateway.yaml", "carriers: {s: {type: stdio, agents: {x: {command: [cat]}}}}\n")
	printed := command(t, "", "config", "print", "--config", file)
	again := command(t, "", "config", "print", "--config", writeFile(t, "printed.yaml", printed.stdout))
	if printed.status != exitGood || again != printed {
		t.Errorf("printed %+v, and from that %+v", printed, again)
	}
}

func TestALineLimitBelowTheLargestEnvelopeIsToldOnce(t *testing.T) {
	file := writeFile(t, "gateway.yaml", "carriers: {s: {type: stdio, max_line: 1000}}\n")
	const says = "error: carriers.s.max_line: 1000 is less than the largest envelope, 1048576 (protocol.max_envelope_bytes): raise it, or leave it out\n"
	for _, args := range [][]string{{"config", "check", "--config", file}, {"serve", "--config", file, "--data-dir", t.TempDir()}} {
		if got := command(t, "", args...); got.status != exitUsage || got.stderr != says {
			t.Errorf("%s: got %+v", args[0], got)
		}
	}
}

// liveAgent is a carrier with one agent, x, whose section holds more.
func liveAgent(peer, bounds string) string {
	return "carriers: {s: {type: stdio, agents: {x: {command: [cat], peer_id: " + peer +
		", workspace: w, channel: c, participation: {mode: live, bounds: {" + bounds + "}}}}}}\n"
}

func TestBoundsAndIdsOfAgentsAreCheckedBeforeTheStart(t *testing.T) {
	const bounds = "carriers.s.agents.x.participation.bounds."
	cases := []struct {
		name, file string
		says       []string
	}{
		{
			"defaults that are not positive", "participation: {defaults: {max_wakes: 0, max_wake_depth: -1, max_wake_wall_time: 0s}}\n",
			[]string{"participation.defaults.max_wakes: must be positive", "participation.defaults.max_wake_depth: must be positive", "participation.defaults.max_wake_wall_time: must be positive"},
		},
		{
			"limits above the ceilings", "participation: {limits: {max_wakes: 65, max_total_wall_time: 121m, coalesce_window: 6s}}\n",
			[]string{"participation.limits.max_wakes: 65 is above the ceiling of 64", "participation.limits.max_total_wall_time: 2h1m0s is above", "participation.limits.coalesce_window: 6s is above"},
		},
		{"a window below the floor", "participation: {defaults: {coalesce_window: 99ms}}\n", []string{"participation.defaults.coalesce_window: 99ms is below the floor"}},
		{"a wake too short to do anything", liveAgent("a", "max_wake_wall_time: 1ns, max_total_wall_time: 999ms"), []string{bounds + "max_wake_wall_time: 1ns is below the floor of 1s", bounds + "max_total_wall_time: 999ms is below the floor of 1s"}},
		{"a default above a limit", "participation: {limits: {max_wakes: 4}, defaults: {max_wakes: 5}}\n", []string{"participation.defaults.max_wakes: 5 is above the limit of 4"}},
		{"a wake longer than all wakes", "participation: {defaults: {max_wake_wall_time: 10m, max_total_wall_time: 5m}}\n", []string{"participation.defaults.max_wake_wall_time: 10m0s is more than max_total_wall_time"}},
		{
			"unknown keys", "participation: {limits: {max_wakez: 4}, defalts: {max_wakes: 5}}\n",
			[]string{"participation.limits.max_wakez: unknown key", "participation.defalts: unknown key"},
		},
		{"values of another type", "participation: {defaults: {max_wakes: 1.5, coalesce_window: 3}}\n", []string{"participation.defaults.max_wakes: must be a whole number", "participation.defaults.coalesce_window: must be a duration"}},
		{"an agent's bounds that are not positive", liveAgent("a", "max_wakes: 0, max_input_tokens: -1"), []string{bounds + "max_wakes: must be positive", bounds + "max_input_tokens: must be positive"}},
		{"an agent's bounds above the ceilings", liveAgent("a", "max_input_tokens: 1000001"), []string{bounds + "max_input_tokens: 1000001 is above the ceiling of 1000000"}},
		{"an agent's unknown bound", liveAgent("a", "max_foo: 1"), []string{bounds + "max_foo: unknown key"}},
		{"an agent's bounds above a limit", "participation: {limits: {max_wakes: 4}}\n" + liveAgent("a", "max_wakes: 5"), []string{bounds + "max_wakes: 5 is above the limit of 4 that participation.limits.max_wakes sets"}},
		{"an agent's wake above the limit of all wakes", "participation: {limits: {max_total_wall_time: 1m}}\n" + liveAgent("a", "max_wake_wall_time: 2m"), []string{bounds + "max_wake_wall_time: 2m0s is more than max_total_wall_time, 1m0s"}},
		{"the gateway's own peer id", "name: den\n" + liveAgent("gateway.den", ""), []string{"carriers.s.agents.x.peer_id: gateway.den is the peer id of the gateway itself"}},
		{"the gateway's own peer id, of a local agent", "carriers: {s: {type: stdio, agents: {x: {command: [cat], peer_id: gateway.local}}}}\n", []string{"carriers.s.agents.x.peer_id: gateway.local is"}},
		{"envelopes that are too large", "protocol: {max_envelope_bytes: 16777217}\n", []string{"protocol.max_envelope_bytes: is 16777217: use 4096 to 16777216"}},
		{"envelopes that are too small", "protocol: {max_envelope_bytes: 4095}\n", []string{"protocol.max_envelope_bytes: is 4095"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got := command(t, "", "config", "check", "--config", writeFile(t, "gateway.yaml", tc.file))
			if got.status != exitUsage {
				t.Fatalf("status %d, %s", got.status, got.stderr)
			}
			lines := strings.Split(strings.TrimSpace(got.stderr), "\n")
			if len(lines) != len(tc.says) {
				t.Errorf("%d problems are told, want %d:\n%s", len(lines), len(tc.says), got.stderr)
			}
			for _, text := range tc.says {
				if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "error: "+text) }) {
					t.Errorf("%q is missing in:\n%s", text, got.stderr)
				}
			}
		})
	}
	good := "participation: {limits: {max_wakes: 64}, defaults: {max_wakes: 64}}\nprotocol: {max_envelope_bytes: 16777216}\n" + liveAgent("gateway.other", "max_wakes: 64")
	if _, err := (&loading{file: good}).load(t); err != nil {
		t.Errorf("what is at the limits: %v", err)
	}
}
