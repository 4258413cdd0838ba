package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestTheExampleCarrierIsQuotedAsItIs(t *testing.T) {
	code := read(t, root("examples", "spool", "carrier.go"))
	if !strings.Contains(read(t, "carriers.md"), "\n```go\n"+code+"```\n") {
		t.Error("carriers.md does not quote examples/spool/carrier.go as it is")
	}
}

func TestEveryPairOfCarriersHasItsGuarantee(t *testing.T) {
	from, to := 0, 0
	for line := range strings.Lines(read(t, "guarantees.md")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		switch {
		case strings.HasPrefix(line, "| from \\ to |"):
			to = len(cells)
		case to == 0 || strings.HasPrefix(line, "|---"):
		case !strings.HasPrefix(line, "|"):
			to = 0
		default:
			from++
			if len(cells) != to {
				t.Errorf("%d cells, want %d: %s", len(cells), to, line)
			}
			for _, cell := range cells[1:] {
				if c := strings.TrimSpace(cell); c != "full" && c != "broker" && c != "pipe" && c != "read" && c != "lossy in" {
					t.Errorf("the guarantee %q is not one that is explained: %s", c, line)
				}
			}
		}
	}
	if from != 7 {
		t.Errorf("%d carriers to come from, want 7", from)
	}
}

func TestTheMetricsThatAreNamedExist(t *testing.T) {
	code := read(t, root("gateway", "metrics.go"))
	names := regexp.MustCompile("gateway_[a-z_]+").FindAllString(read(t, "operations.md"), -1)
	if len(names) == 0 {
		t.Error("operations.md names no metric")
	}
	for _, name := range names {
		if !strings.Contains(code, `"`+name+`"`) {
			t.Errorf("operations.md names %s, which is none of the gateway's metrics", name)
		}
	}
}

var (
	linkForm = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	codeForm = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
)

func TestLinksLeadSomewhere(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, root("README.md"), root("CONTRIBUTING.md"), root("examples", "agents", "README.md"))
	for _, page := range pages {
		for _, m := range linkForm.FindAllStringSubmatch(codeForm.ReplaceAllString(read(t, page), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), filepath.FromSlash(path.Clean(file)))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s leads nowhere", page, m[1])
				continue
			}
			if anchor != "" && !anchors(read(t, target))[anchor] {
				t.Errorf("%s: %s leads to no heading", page, m[1])
			}
		}
	}
}

// anchors are the names that a page's headings have in links.
func anchors(page string) map[string]bool {
	names := map[string]bool{}
	for line := range strings.Lines(codeForm.ReplaceAllStringFunc(page, func(code string) string {
		if strings.HasPrefix(code, "```") {
			return ""
		}
		return strings.Trim(code, "`")
	})) {
		if !strings.HasPrefix(line, "#") {
			continue
		}
		names[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(strings.TrimLeft(line, "#")))] = true
	}
	return names
}
