package docs

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// suite is what the source of a package says of its tests, whatever their build
// tags.
type suite struct {
	// texts are the string literals that stand in a test function, by its name.
	texts map[string]map[string]bool
	// shared are those of the whole test package and, where it runs the carriers'
	// conformance suite, of that.
	shared map[string]bool
}

func readSuite(t *testing.T, pkg string) *suite {
	t.Helper()
	s := &suite{texts: map[string]map[string]bool{}, shared: map[string]bool{}}
	carriers := false
	for name, file := range parseFiles(t, pkg) {
		if !strings.HasSuffix(name, "_test.go") {
			continue
		}
		literals(file, s.shared)
		for _, imported := range file.Imports {
			carriers = carriers || imported.Path.Value == strconv.Quote(module+"/carriers/carriertest")
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && f.Recv == nil && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Fuzz")) {
				s.texts[f.Name.Name] = map[string]bool{}
				literals(f, s.texts[f.Name.Name])
			}
		}
	}
	if carriers {
		for _, file := range parseFiles(t, "carriers/carriertest") {
			literals(file, s.shared)
		}
	}
	return s
}

func parseFiles(t *testing.T, pkg string) map[string]*ast.File {
	t.Helper()
	names, err := filepath.Glob(root(pkg, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("package %s: no files, %v", pkg, err)
	}
	files := map[string]*ast.File{}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, content, 0)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = file
	}
	return files
}

// literals adds the string literals below the node.
func literals(node ast.Node, to map[string]bool) {
	ast.Inspect(node, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				to[text] = true
			}
		}
		return true
	})
}

// has says what is missing of a test. A subtest is there when its name stands as
// a literal in the test or in what the test shares; that it ran by that name is
// for the log of a run to show.
func (s *suite) has(name string) error {
	test, sub, nested := strings.Cut(name, "/")
	texts, ok := s.texts[test]
	if !ok {
		return errors.New("there is no such test")
	}
	if nested && !s.named(texts, sub) {
		return fmt.Errorf("%s has no subtest %q", test, sub)
	}
	return nil
}

// named reports whether the name is that of a subtest, or those of subtests
// inside each other.
func (s *suite) named(texts map[string]bool, name string) bool {
	if texts[name] || s.shared[name] {
		return true
	}
	for i, c := range name {
		if c == '/' && s.named(texts, name[:i]) && s.named(texts, name[i+1:]) {
			return true
		}
	}
	return false
}
