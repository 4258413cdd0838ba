package main

import (
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
