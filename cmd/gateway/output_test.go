package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// A command whose output nobody reads any more ends, quietly and at once.
func TestACommandEndsWhenTheReaderOfItsOutputHasGone(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"config", "print"}, {"validate", "-"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			reader, stdout, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer stdout.Close()
			if err := reader.Close(); err != nil {
				t.Fatal(err)
			}
			var stderr bytes.Buffer
			p := &process{stdin: endless{}, stdout: stdout, stderr: &stderr, program: "gateway"}
			if status := p.run(t.Context(), args); status != exitFailed || stderr.Len() != 0 {
				t.Errorf("status %d, stderr %q; want %d and nothing", status, &stderr, exitFailed)
			}
		})
	}
}

// endless is input that never ends.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return copy(b, "{}\n"), nil }

// Whatever a command that writes lines is given, its output is JSON lines and
// nothing else.
func TestLinesOfOutputAreJSONWhateverComesIn(t *testing.T) {
	for name, stdin := range map[string]string{
		"nothing":        "",
		"noise":          "Starting up...\n\x1b[31mwarning\x1b[0m\n",
		"broken":         "{\"id\":\n{bad}\n\xff\xfe\n",
		"other values":   "1 null [] \"x\"\n{}\n",
		"a control line": "{\"carrier\":{\"ack\":\"x\"}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			got := command(t, stdin, "validate", "-o", "json", "-")
			for lines := json.NewDecoder(strings.NewReader(got.stdout)); ; {
				var line map[string]any
				err := lines.Decode(&line)
				if errors.Is(err, io.EOF) {
					return
				}
				if err != nil {
					t.Fatalf("stdout %q: %v", got.stdout, err)
				}
			}
		})
	}
}
