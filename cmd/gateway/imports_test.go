package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/compozy-gateway/gateway"

// importRules says which of our packages a package may import, the longest
// prefix that fits. What its tests may import beside that is in tests.
func importRules() map[string]struct{ code, tests []string } {
	return map[string]struct{ code, tests []string }{
		"core":                 {},
		"store":                {code: []string{"core"}},
		"carriers/internal":    {code: []string{"core"}},
		"carriers/carriertest": {code: []string{"core"}},
		"carriers":             {code: []string{"core", "carriers/internal"}, tests: []string{"carriers/carriertest"}},
		"examples":             {code: []string{"core"}, tests: []string{"carriers/carriertest"}},
		"gateway":              {code: []string{"core", "store"}, tests: []string{"carriers/carriertest"}},
	}
}

func TestPackagesImportOnlyWhatTheDesignAllows(t *testing.T) {
	root := filepath.Join("..", "..")
	seen := map[string]bool{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		dir := path.Dir(filepath.ToSlash(relative))
		prefix := ""
		for p := range importRules() {
			if below(dir, p) && len(p) > len(prefix) {
				prefix = p
			}
		}
		if prefix == "" {
			return nil
		}
		seen[prefix] = true
		rule := importRules()[prefix]
		allowed := append([]string{dir}, rule.code...)
		if strings.HasSuffix(name, "_test.go") {
			allowed = append(allowed, rule.tests...)
		}
		checkImports(t, name, allowed)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for p := range importRules() {
		if !seen[p] {
			t.Errorf("there is no package below %s, so its rule says nothing", p)
		}
	}
}

func checkImports(t *testing.T, file string, allowed []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Error(err)
		return
	}
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Error(err)
			continue
		}
		ours, ok := strings.CutPrefix(imported, module+"/")
		if !ok {
			continue
		}
		if !slices.ContainsFunc(allowed, func(a string) bool { return below(ours, a) }) {
			t.Errorf("%s must not import %s", file, imported)
		}
	}
}

// below reports whether a package is the one named or stands below it.
func below(pkg, parent string) bool {
	return pkg == parent || strings.HasPrefix(pkg, parent+"/")
}
