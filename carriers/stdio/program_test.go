package stdio

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProgramsThatCannotBeStartedAreFound(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"plain": 0o600, "program": 0o700} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	live := ParticipationConfig{Mode: ModeLive}
	for name, c := range map[string]struct {
		agent AgentConfig
		why   string
	}{
		"on the PATH":          {AgentConfig{Command: []string{"sh"}, Participation: live}, ""},
		"not on the PATH":      {AgentConfig{Command: []string{"no-such-program"}, Participation: live}, "PATH"},
		"a file":               {AgentConfig{Command: []string{filepath.Join(dir, "program")}, Participation: live}, ""},
		"no file":              {AgentConfig{Command: []string{filepath.Join(dir, "gone"), "-x"}, Participation: live}, "no such file"},
		"no program":           {AgentConfig{Command: []string{filepath.Join(dir, "plain")}, Participation: live}, "may not be run"},
		"a directory":          {AgentConfig{Command: []string{dir}, Participation: live}, "is a directory"},
		"in its directory":     {AgentConfig{Command: []string{"./program"}, Dir: dir, Participation: live}, ""},
		"not in its directory": {AgentConfig{Command: []string{"./gone"}, Dir: dir, Participation: live}, "no such file"},
		"of a local agent":     {AgentConfig{Command: []string{"no-such-program"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			found := Config{Agents: one("ada", c.agent)}.MissingPrograms("carriers.here")
			if c.why == "" {
				if len(found) > 0 {
					t.Errorf("got %+v", found)
				}
				return
			}
			if len(found) != 1 || found[0].Key != "carriers.here.agents.ada.command" || found[0].Program != c.agent.Command[0] ||
				!strings.Contains(found[0].Why, c.why) || found[0].Advice == "" {
				t.Errorf("got %+v", found)
			}
		})
	}
}
