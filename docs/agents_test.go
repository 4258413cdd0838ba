package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// boundRows are the rows of the table of bounds on a page.
func boundRows(t *testing.T, page string) []string {
	t.Helper()
	_, table, found := strings.Cut(read(t, page), "| bound | default | ceiling |\n|---|---|---|\n")
	if !found {
		t.Fatalf("%s has no table of bounds", page)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	return strings.Split(table, "\n")
}

func TestTheBoundsOfAgentsAreThoseOfTheProtocol(t *testing.T) {
	if got, want := boundRows(t, "agents.md"), boundRows(t, "protocol.md"); !slices.Equal(got, want) {
		t.Errorf("agents.md has the bounds %q, protocol.md %q", got, want)
	}
}

func TestTheEnvironmentOfAgentsIsNamed(t *testing.T) {
	variable := regexp.MustCompile(`COMPOZY_[A-Z_]+`)
	set := variable.FindAllString(read(t, root("carriers", "stdio", "process.go")), -1)
	_, page, _ := strings.Cut(read(t, "agents.md"), "\n## Environment\n")
	page, _, _ = strings.Cut(page, "\n## ")
	named := variable.FindAllString(page, -1)
	for _, names := range []*[]string{&set, &named} {
		slices.Sort(*names)
		*names = slices.Compact(*names)
	}
	if len(set) == 0 || !slices.Equal(set, named) {
		t.Errorf("an agent gets %q, and agents.md names %q", set, named)
	}
}
