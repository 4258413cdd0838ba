package stdio

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

// filled is an envelope of about n bytes.
func filled(id string, n int) string {
	return strings.Replace(say(id), "hello", strings.Repeat("x", n), 1)
}

// feed runs a puppet that writes the text, and waits until n frames are offered.
func feed(t *testing.T, text string, n int) (*bench, *puppet) {
	t.Helper()
	p := newPuppet(t)
	b := run(t, one("ada", p.config(t, "ada")))
	p.write(t, text)
	until(t, "the frames are offered", func() bool { return len(b.in.frames()) >= n })
	return b, p
}

func TestFrames(t *testing.T) {
	lineSeparators := strings.Replace(say("u2028"), "hello", "a\u2028b\u2029c\u0085d", 1)
	for name, c := range map[string]struct {
		text string
		// want are the payloads that are offered.
		want  []string
		noise uint64
	}{
		"two lines":                    {say("a") + "\n" + say("b") + "\n", []string{say("a"), say("b")}, 0},
		"CRLF":                         {say("a") + "\r\n" + say("b") + "\r\n", []string{say("a"), say("b")}, 0},
		"white space around":           {" \t" + say("a") + " \r\n", []string{say("a")}, 0},
		"blank lines":                  {"\n\r\n  \n" + say("a") + "\n", []string{say("a")}, 0},
		"line separators in a string":  {lineSeparators + "\n", []string{lineSeparators}, 0},
		"a byte-order mark":            {"\ufeff" + say("a") + "\n" + say("b") + "\n", []string{"\ufeff" + say("a"), say("b")}, 0},
		"a malformed object":           {"{bad\n" + say("a") + "\n", []string{"{bad", say("a")}, 0},
		"two objects on a line":        {say("a") + say("b") + "\n" + say("c") + "\n", []string{say("a") + say("b"), say("c")}, 0},
		"an object over two lines":     {"{\"id\":\n\"a\"}\n" + say("b") + "\n", []string{`{"id":`, say("b")}, 1},
		"a banner":                     {"Server listening on [::]:80\n# {}\n[1]\n\"{\"\n" + say("a") + "\n", []string{say("a")}, 4},
		"bytes that are no text":       {"\xff\xfe\x00\x01\n" + say("a") + "\n", []string{say("a")}, 1},
		"a byte-order mark on a log":   {"\ufeffhello\n" + say("a") + "\n", []string{say("a")}, 1},
		"a control line with protocol": {`{"carrier":{"ack":"x"},"protocol":"compozy-network/v0"}` + "\n", []string{`{"carrier":{"ack":"x"},"protocol":"compozy-network/v0"}`}, 0},
		"carrier in an envelope":       {`{"id":"a","carrier":{}}` + "\n", []string{`{"id":"a","carrier":{}}`}, 0},
		"a broken control line":        {`{"carrier":{"ack":` + "\n", []string{`{"carrier":{"ack":`}, 0},
		"a control line of no object":  {`{"carrier":1}` + "\n", []string{`{"carrier":1}`}, 0},
		"200 KiB and a small one":      {filled("big", 200<<10) + "\n" + say("a") + "\n", []string{filled("big", 200<<10), say("a")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := feed(t, c.text, len(c.want))
			var got []string
			for _, f := range b.in.frames() {
				got = append(got, string(f.Payload))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("offered\n%q\nwant\n%q", got, c.want)
			}
			until(t, "the noise is counted", func() bool { return b.agent("ada").Noise == c.noise })
			if n := b.agent("ada").Starts; n != 1 {
				t.Errorf("the agent was started %d times", n)
			}
		})
	}
}

func TestOfferTellsWhoSpeaks(t *testing.T) {
	b, _ := feed(t, say("a")+"\n", 1)
	f := b.in.frames()[0]
	if f.Arrival != core.ArrivalIngress || f.Address != nil || f.Principal == nil || f.Principal.Name != "ada" {
		t.Fatalf("offered as %+v", f)
	}
	scope := f.Principal.Scope
	for name, allowed := range map[string]bool{
		"its own":           scope.Allows(testWorkspace, testChannel, "ada"),
		"another peer":      !scope.Allows(testWorkspace, testChannel, "bob"),
		"another channel":   !scope.Allows(testWorkspace, "den", "ada"),
		"another workspace": !scope.Allows("ws-2", testChannel, "ada"),
	} {
		if !allowed {
			t.Errorf("the scope is wrong about %s", name)
		}
	}
}

func TestLineOverTheLimitIsSkippedInConstantMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b := run(t, one("ada", testAgent(t, "ada", "flood")))
	until(t, "the frames are offered", func() bool { return len(b.in.frames()) >= 3 })
	runtime.ReadMemStats(&after)

	frames := b.in.frames()
	if idOf(frames[0].Payload) != "first" || idOf(frames[2].Payload) != "second" {
		t.Errorf("the lines around it were offered as %.60q and %.60q", frames[0].Payload, frames[2].Payload)
	}
	if long := frames[1]; long.Size != 64<<20 || len(long.Payload) > testLimit+lineSlack {
		t.Errorf("it was offered with %d of %d bytes, want the size %d", len(long.Payload), long.Size, 64<<20)
	}
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 8*testLimit {
		t.Errorf("%d bytes were allocated", taken)
	}
}

func TestNoiseIsLoggedShortAndWithItsAgent(t *testing.T) {
	b, _ := feed(t, "secret-of-ada "+strings.Repeat("n", 5000)+"\n"+say("a")+"\n", 1)
	until(t, "it is logged", func() bool { return strings.Contains(b.logs.String(), "no envelope") })
	for _, entry := range strings.Split(b.logs.String(), "\n") {
		if strings.Contains(entry, "no envelope") && (len(entry) > 500 || !strings.Contains(entry, "agent=ada")) {
			t.Errorf("logged as %s", entry)
		}
	}
}

func TestConfiguredValuesStandInNoLog(t *testing.T) {
	const secret = "sk-0123456789abcdef"
	cfg := shell("ada", `echo "token $KEY"; echo "token $KEY" >&2; exit 1`)
	cfg.Env["KEY"] = secret
	b := run(t, one("ada", cfg))
	until(t, "it was started twice", func() bool { return b.agent("ada").Starts >= 2 })
	until(t, "the status tells of it", func() bool { return strings.Contains(b.agent("ada").Stderr, "token") })
	b.stop()
	s := b.Status()
	for where, text := range map[string]string{"log": b.logs.String(), "status": s.Why + b.agent("ada").Stderr} {
		if strings.Contains(text, secret) || !strings.Contains(text, hidden) && where == "log" {
			t.Errorf("in the %s: %s", where, text)
		}
	}
}

func TestValueThatIsCutOffIsNotShownInPart(t *testing.T) {
	const secret = "sk-0123456789abcdef"
	a := &agent{censor: newCensor(AgentConfig{Env: map[string]EnvValue{"KEY": secret}}), stderr: &tail{}}
	for padding := range 2 * len(secret) {
		for _, size := range []int{mostTail, mostKept} {
			a.stderr.reset()
			_, _ = a.stderr.Write([]byte(secret + secret + strings.Repeat("x", size-padding)))
			if text := strings.ReplaceAll(a.complaints(), hidden, ""); strings.ContainsAny(text, "0f-") {
				t.Fatalf("%d bytes after it: %.60q", size-padding, text)
			}
		}
	}
}

func TestFloodOfStderrDoesNotStopAnAgent(t *testing.T) {
	for name, part := range map[string]string{"with line feeds": strings.Repeat("e", 99) + "\n", "without": strings.Repeat("e", 100)} {
		t.Run(name, func(t *testing.T) {
			p := newPuppet(t)
			b := run(t, one("ada", p.config(t, "ada")))
			flood := []byte(strings.Repeat(part, 1<<20/len(part)))
			for _, id := range []string{"a", "b", "c"} {
				p.must(t, order{Complain: flood})
				p.write(t, say(id)+"\n")
				until(t, "the envelope is offered", func() bool { return slices.Contains(b.in.ids(), id) })
			}
			p.must(t, order{Complain: []byte("\nthe end")})
			until(t, "the end of it is kept", func() bool { return strings.HasSuffix(b.agent("ada").Stderr, "\nthe end") })
			if n := len(b.agent("ada").Stderr); n > mostTail {
				t.Errorf("%d bytes are kept", n)
			}
		})
	}
}

func TestWhatAnAgentWroteBeforeItEndedIsOffered(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		want   []string
	}{
		"whole lines":             {`echo '{"id":"a"}'; echo '{"id":"b"}'; exit 1`, []string{`{"id":"a"}`, `{"id":"b"}`}},
		"half a line":             {`echo '{"id":"a"}'; printf '{"id":"half'; exit 1`, []string{`{"id":"a"}`, `{"id":"half`}},
		"a line without its feed": {`printf '{"id":"a"}'`, []string{`{"id":"a"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			b := run(t, one("ada", shell("ada", c.script)))
			full := make(chan struct{})
			b.in.set(func(in *testIntake) { in.full = full }) // The agent is long gone when it opens.
			until(t, "the agent has ended", func() bool { s := b.agent("ada"); return s.PID == 0 && s.Starts > 0 || s.Starts > 1 })
			close(full)
			until(t, "all is offered", func() bool { return len(b.in.frames()) >= len(c.want) })
			for i, want := range c.want {
				if got := string(b.in.frames()[i].Payload); got != want {
					t.Errorf("frame %d was offered as %q, want %q", i, got, want)
				}
			}
		})
	}
}

func TestOutputKeptOpenByAStrangerEndsWithTheAgent(t *testing.T) {
	// The sleeper leaves the group and keeps the pipes.
	file := filepath.Join(t.TempDir(), "pid")
	cfg := shell("ada", `setsid sh -c 'echo $$ > "$OUT.part"; mv "$OUT.part" "$OUT"; exec sleep 30' & while [ ! -e "$OUT" ]; do sleep 0.01; done; echo '{"id":"a"}'; exit 1`)
	cfg.Env["OUT"] = EnvValue(file)
	b := run(t, one("ada", cfg))
	until(t, "the agent was started again", func() bool { return b.agent("ada").Starts >= 2 })
	b.stop()
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the stranger was not there: %v", err)
	}
}

func TestAgentMayCloseItsOutput(t *testing.T) {
	p := newPuppet(t)
	b := run(t, one("ada", p.config(t, "ada")))
	b.ready()
	p.must(t, order{CloseOutput: true})
	if got := wait(t, b.send(t.Context(), "ada", "a")); got.err != nil {
		t.Fatal(got.err)
	}
	until(t, "the agent has read it", func() bool { return slices.Equal(p.heard(), []string{say("a")}) })
	if n := b.agent("ada").Starts; n != 1 {
		t.Errorf("the agent was started %d times", n)
	}
}

func TestAgentThatNeverReadsGoesOnSpeaking(t *testing.T) {
	// Far more acknowledgements than the pipe and the bound take together.
	id := strings.Repeat("i", 200)
	const lines = 8000
	cfg := shell("ada", `i=0; while [ $i -lt `+"8000"+` ]; do echo '{"id":"`+id+`"}'; i=$((i+1)); done; exec sleep 1000`)
	b := run(t, one("ada", cfg))
	until(t, "all lines are offered", func() bool { return len(b.in.frames()) == lines })
	until(t, "the acknowledgements that nobody reads are counted", func() bool { return b.agent("ada").UnreadControls > 0 })
	if s := b.agent("ada"); s.Starts != 1 || s.State != "running" {
		t.Errorf("the agent is %+v", s)
	}
}

func TestSettlementsAreTold(t *testing.T) {
	p := newPuppet(t)
	b := run(t, one("ada", p.config(t, "ada")))
	var want []string
	for _, c := range settlementCases() {
		b.in.set(func(in *testIntake) { in.verdict = func(core.Inbound, int) core.Settlement { return c.settlement } })
		p.write(t, say("x")+"\n")
		if c.want != "" {
			want = append(want, c.want)
		}
		until(t, "the agent is told of "+c.name, func() bool { return len(p.heard()) >= len(want) })
	}
	if got := p.heard(); !slices.Equal(got, want) {
		t.Errorf("the agent was told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestStderrAndRefusalsStandInTheLogWithTheirAgent(t *testing.T) {
	cfg := testConfig(one("ada", shell("ada", `printf 'first \033[2Jline\nsecond\n' >&2; yes x | head -n 500 >&2; echo '{"id":"bad"}'; cat >/dev/null`)))
	b := &bench{t: t, in: newTestIntake(), logs: &logBuffer{}}
	b.Carrier = build(t, cfg, b.logs)
	b.in.verdict = func(core.Inbound, int) core.Settlement {
		return core.Settlement{Verdict: core.VerdictRejected, ID: "bad", Rejection: &core.Rejection{Reason: core.ReasonMalformed, Detail: "no kind"}}
	}
	b.start()
	for _, want := range []string{
		`level=INFO msg="agent says" agent=ada stderr="first \x1b[2Jline" bytes=`,
		`level=INFO msg="agent says" agent=ada stderr=second bytes=`,
		`level=WARN msg="an envelope of the agent is refused" agent=ada id=bad reason_code=malformed detail="no kind"`,
	} {
		until(t, "the log has "+want, func() bool { return strings.Contains(b.logs.String(), want) })
	}
	b.stop()
	logged := b.logs.String()
	if n := strings.Count(logged, "agent says\""); n > 2*saidBurst || !strings.Contains(logged, "lines_left_out=") {
		t.Errorf("%d of 502 lines are logged:\n%s", n, logged)
	}
}
