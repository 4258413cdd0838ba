package docs

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// statements is how many the protocol makes.
const statements = 134

// statement is one row of conformance.md.
type statement struct {
	number  int
	level   string
	text    string
	shownBy string
}

// citation names a test.
type citation struct{ pkg, test string }

func (c citation) String() string { return c.pkg + ": " + c.test }

var (
	rowForm      = regexp.MustCompile(`^\| (\d+) \| (\w+) \| (.+?) \| (.+) \|$`)
	citationForm = regexp.MustCompile("`([a-z0-9/]+): ((?:Test|Fuzz)[^`]*)`")
)

func readStatements(t *testing.T) []statement {
	t.Helper()
	page, err := os.ReadFile("conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	var list []statement
	for line := range strings.Lines(string(page)) {
		row := rowForm.FindStringSubmatch(strings.TrimSpace(line))
		if row == nil {
			continue
		}
		number, err := strconv.Atoi(row[1])
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, statement{number, row[2], row[3], row[4]})
	}
	return list
}

func (s statement) citations() []citation {
	var list []citation
	for _, m := range citationForm.FindAllStringSubmatch(s.shownBy, -1) {
		list = append(list, citation{m[1], m[2]})
	}
	return list
}

func TestEveryStatementIsThereOnceAndInOrder(t *testing.T) {
	list := readStatements(t)
	if len(list) != statements {
		t.Errorf("%d statements, want %d", len(list), statements)
	}
	for i, s := range list {
		if s.number != i+1 {
			t.Fatalf("statement %d stands at place %d", s.number, i+1)
		}
		if s.level != "must" && s.level != "should" && s.level != "asked" {
			t.Errorf("statement %d has the level %q", s.number, s.level)
		}
	}
}

// Besides tests these say why there is none.
var excuses = regexp.MustCompile(`the (sender|asker|target|peer)'s matter|\*\*not yet built\*\*|\*\*Choice\*\*|\]\(protocol\.md#`)

func TestEveryStatementNamesWhatShowsIt(t *testing.T) {
	known := map[string]*suite{}
	for _, s := range readStatements(t) {
		cited := s.citations()
		if len(cited) == 0 && !excuses.MatchString(s.shownBy) {
			t.Errorf("statement %d names neither a test nor a reason", s.number)
		}
		for _, c := range cited {
			if known[c.pkg] == nil {
				known[c.pkg] = readSuite(t, c.pkg)
			}
			if err := known[c.pkg].has(c.test); err != nil {
				t.Errorf("statement %d: %s: %v", s.number, c, err)
			}
		}
	}
}

// logVariable names, in the environment, the output of go test -v over all
// packages. The continuous integration sets it once the tests have run.
const logVariable = "GATEWAY_TEST_LOG"

// TestEveryCitedTestPassed reads the log of a run. Without one it only shows
// that it can tell a test that passed from one that did not run.
func TestEveryCitedTestPassed(t *testing.T) {
	passed := passedIn(t, strings.NewReader("=== RUN   TestA\n    --- PASS: TestA/a_b (0.00s)\n--- PASS: TestA (0.01s)\n--- FAIL: TestB (0.00s)\n"+
		"ok  \t"+module+"/core\t0.1s\n--- PASS: TestA (0.00s)\nFAIL\t"+module+"/store\t0.1s\n"))
	for c, want := range map[citation]bool{
		{"core", "TestA"}: true, {"core", "TestA/a b"}: true, {"core", "TestB"}: false, {"store", "TestA"}: true, {"store", "TestA/a b"}: false,
	} {
		if passed[c.key()] != want {
			t.Errorf("%s passed: %t", c, !want)
		}
	}
	name := os.Getenv(logVariable)
	if name == "" {
		return
	}
	log, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	passed = passedIn(t, log)
	for _, s := range readStatements(t) {
		for _, c := range s.citations() {
			if !passed[c.key()] {
				t.Errorf("statement %d: %s is not among the tests that passed", s.number, c)
			}
		}
	}
}

// key is the test as the log of a run names it.
func (c citation) key() string { return c.pkg + " " + strings.ReplaceAll(c.test, " ", "_") }

var passForm = regexp.MustCompile(`^ *--- PASS: (\S+) \(`)

// passedIn collects the tests that passed, by citation.key. A package's name
// stands behind its tests.
func passedIn(t *testing.T, log interface{ Read([]byte) (int, error) }) map[string]bool {
	t.Helper()
	passed := map[string]bool{}
	var names []string
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		line := lines.Text()
		if m := passForm.FindStringSubmatch(line); m != nil {
			names = append(names, m[1])
			continue
		}
		fields := strings.Fields(line)
		if len(fields) < 2 || (fields[0] != "ok" && fields[0] != "FAIL") || !strings.HasPrefix(fields[1], module) {
			continue
		}
		pkg := strings.TrimPrefix(strings.TrimPrefix(fields[1], module), "/")
		for _, name := range names {
			passed[pkg+" "+name] = true
		}
		names = nil
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return passed
}

func root(parts ...string) string { return filepath.Join(append([]string{".."}, parts...)...) }

const module = "github.com/compozy-gateway/gateway"

func TestTheChecksOfThisFileFindWhatIsWrong(t *testing.T) {
	s := readSuite(t, "core")
	for _, name := range []string{"TestNobodyWroteThis", "TestWhoisBody/no such row", "mustCheck"} {
		if s.has(name) == nil {
			t.Errorf("%s is found", name)
		}
	}
	if got := fmt.Sprint((statement{shownBy: "`core: TestA`, `carriers/nats: TestB/a b`; see `config`"}).citations()); got != "[core: TestA carriers/nats: TestB/a b]" {
		t.Errorf("citations %s", got)
	}
}
