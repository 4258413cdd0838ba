package core_test

import (
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// The protocol depends on nothing that does I/O and on nothing of ours, so it
// can be tested by tables and used by every other package.
func TestImportsStayPure(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		name := file.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		seen++
		tree, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range tree.Imports {
			path, err := strconv.Unquote(imported.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if !pure(path) {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
	if seen == 0 {
		t.Fatal("no files")
	}
}

func pure(path string) bool {
	switch path {
	case "os", "net", "io/fs", "io/ioutil", "syscall", "unsafe", "plugin", "testing", "C":
		return false
	case "github.com/go-json-experiment/json/jsontext":
		return true
	}
	root, _, _ := strings.Cut(path, "/")
	return !strings.Contains(root, ".") && root != "net" && root != "os" && root != "database"
}
