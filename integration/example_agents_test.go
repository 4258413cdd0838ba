package integration

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// exampleLines is how long an example of an agent may be.
const exampleLines = 39

// exampleAgent is an agent of examples/agents.
type exampleAgent struct {
	file string
	// runtime runs the file.
	runtime string
	// strict is true for an agent that says of its wake that it failed when it
	// could not read a message. The other one cannot tell, and passes it over.
	strict bool
}

// command is how the agent is run.
func (a exampleAgent) command(t *testing.T) []string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "examples", "agents", a.file))
	if err != nil {
		t.Fatal(err)
	}
	return []string{a.runtime, path}
}

func TestTheShellAgent(t *testing.T) {
	t.Parallel()
	checkExampleAgent(t, exampleAgent{file: "agent.sh", runtime: "sh"})
}

func TestTheConfigurationOfTheExamplesIsGood(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), gatewayBinary, "config", "check", "--config", filepath.Join("examples", "agents", "gateway.yaml"))
	cmd.Dir = ".."
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, said)
	}
}

// checkExampleAgent checks one example in all that it is to show.
func checkExampleAgent(t *testing.T, a exampleAgent) {
	text, err := os.ReadFile(a.command(t)[1])
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("\n")); n > exampleLines {
		t.Errorf("%s has %d lines, at most %d are easy to read", a.file, n, exampleLines)
	}
	t.Run("survives what it cannot read", a.survives)
	t.Run("answers only what is said to it in a wake", a.answersOnlyItsOwn)
	t.Run("says the same again when a wake is run again", a.repeats)
	for _, launch := range []string{"start", "wake"} {
		t.Run("through a gateway with launch "+launch, func(t *testing.T) { checkExampleThroughAGateway(t, a, launch) })
	}
}

// exampleAnswer is a line of an agent.
type exampleAnswer struct {
	ID          string `json:"id"`
	Kind        string `json:"kind"`
	To          string `json:"to"`
	CausationID string `json:"causation_id"`
	Carrier     *struct {
		Done   string          `json:"done"`
		Failed json.RawMessage `json:"failed"`
	} `json:"carrier"`
}

// run gives the agent its whole input and reads all that it says.
func (a exampleAgent) run(t *testing.T, lines ...string) ([]exampleAnswer, error) {
	t.Helper()
	command := a.command(t)
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "COMPOZY_PEER_ID=bob", "COMPOZY_WORKSPACE_ID=demo", "COMPOZY_CHANNEL=general", "COMPOZY_WAKE_ID=wake_2")
	cmd.Stdin, cmd.Stderr = strings.NewReader(strings.Join(lines, "\n")+"\n"), os.Stderr
	out, failure := cmd.Output()
	var answers []exampleAnswer
	for line := range strings.Lines(string(out)) {
		var answer exampleAnswer
		if err := json.Unmarshal([]byte(line), &answer); err != nil {
			t.Fatalf("the agent says %q, which is no JSON: %v", line, err)
		}
		answers = append(answers, answer)
	}
	return answers, failure
}

// exampleGiven is what the agent bob may be given.
func exampleGiven(id, to string) string {
	w := newMatrixWorld(0)
	return w.sayFrom("ann").text("id", id).text("to", to).String()
}

const exampleWake = `{"carrier":{"wake":"wake_2","deadline":1893456000,"messages":1,"untrusted":true}}`

// survives gives the agent what is no JSON, half of it, or JSON of another
// shape, outside a wake and in one, and wants the next wake to go well.
func (a exampleAgent) survives(t *testing.T) {
	broken := []string{
		"", " ", "{", `{bad`, "null", "true", "[]", `"carrier"`, "17", `{"kind":"say"}`, `{"kind":["say"],"to":{},"body":null}`,
		`{"kind":"say","to":"bob"}`, `{"kind":"say","to":"bob","id":"x","from":"ann","body":[]}`, "\xff\xfe\x80", "\x1b[2J\a\r",
		strings.Repeat("[", 100_000), strings.Repeat(`{"a":`, 5_000), `{"id":"` + strings.Repeat("x", 100_000),
		`{"id":"\ud800","kind":"say","to":"bob","from":"ann","body":`,
	}
	lines := slices.Clone(broken)
	for _, line := range broken {
		lines = append(lines, strings.Replace(exampleWake, "wake_2", "wake_1", 1), line)
	}
	lines = append(lines, exampleWake, exampleGiven("whole", "bob"))
	answers, err := a.run(t, lines...)
	if err != nil {
		t.Errorf("the last wake went well, and the agent ends with %v", err)
	}
	ended, said := 0, 0
	for _, answer := range answers {
		switch {
		case answer.Carrier == nil:
			said++
		case answer.Carrier.Done == "wake_1":
			ended++
		case answer.Carrier.Done != "wake_2" || answer.Carrier.Failed != nil:
			t.Errorf("the agent ends its last wake by %+v", answer.Carrier)
		}
	}
	if ended != len(broken) || said != 1 || len(answers) != len(broken)+2 {
		t.Errorf("of %d wakes with broken lines the agent ends %d, and it says %d things in all, want 1", len(broken), ended, said)
	}
	_, err = a.run(t, exampleWake, "{bad")
	if (err != nil) != a.strict {
		t.Errorf("after a wake with a line that cannot be read the agent ends with %v", err)
	}
}

func (a exampleAgent) answersOnlyItsOwn(t *testing.T) {
	wake := strings.Replace(exampleWake, `"messages":1`, `"messages":6`, 1)
	w := newMatrixWorld(1)
	answers, err := a.run(t,
		exampleGiven("early", "bob"), wake,
		exampleGiven("mine", "bob"), exampleGiven("another's", "bobby"), w.say().text("id", "everybody's").String(),
		`{"carrier":{"omitted":"long","bytes":70000}}`, w.receipt("ann", "bob", "canceled").String(), w.greet().String(),
		`{"carrier":{"nack":"x","reason_code":"busy","detail":"later"}}`, exampleGiven("late", "bob"),
	)
	if err != nil {
		t.Fatal(err)
	}
	if len(answers) != 2 || answers[0].CausationID != "mine" || answers[0].To != "ann" || answers[1].Carrier == nil {
		t.Errorf("the agent says %+v", answers)
	}
}

func (a exampleAgent) repeats(t *testing.T) {
	w := newMatrixWorld(0)
	opener := w.about(w.sayFrom("ann"), "bob").String()
	ids := func() (list []string) {
		answers, err := a.run(t, exampleWake, opener)
		if err != nil {
			t.Fatal(err)
		}
		for _, answer := range answers {
			if answer.Carrier == nil {
				list = append(list, answer.ID)
			}
		}
		return list
	}
	first, again := ids(), ids()
	if len(first) != 3 || !slices.Equal(first, again) {
		t.Errorf("the ids are %q, and then %q", first, again)
	}
	slices.Sort(first)
	if len(slices.Compact(first)) != 3 {
		t.Errorf("the ids are not different: %q", first)
	}
}

// exampleWithin bounds the time from a message to the answers. A turn takes
// milliseconds; starting an interpreter on a busy machine takes longer.
const exampleWithin = time.Minute
