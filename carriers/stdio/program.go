package stdio

import (
	"errors"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// MissingProgram is a live agent's program that cannot be started as things
// stand. That is no fault of the configuration: the program may come later, and
// the agent is tried again until then.
type MissingProgram struct {
	// Key is that of the command, Program its first word.
	Key, Program string
	// Why says what is wrong, and Advice what to do, both for people.
	Why, Advice string
}

// MissingPrograms looks for the programs of the live agents, as a start would.
func (c Config) MissingPrograms(key string) []MissingProgram {
	var list []MissingProgram
	for _, name := range sortedKeys(c.Agents) {
		a := c.Agents[name]
		if a.Participation.Mode != ModeLive || len(a.Command) == 0 {
			continue
		}
		if why, advice := a.lookUp(); why != "" {
			list = append(list, MissingProgram{key + ".agents." + name + ".command", a.Command[0], why, advice})
		}
	}
	return list
}

// lookUp looks for the agent's program; why is empty where it is there.
func (a AgentConfig) lookUp() (why, advice string) {
	program := a.Command[0]
	path := strings.ContainsRune(program, filepath.Separator)
	if path && a.Dir != "" && !filepath.IsAbs(program) {
		program = filepath.Join(a.Dir, program) // The process looks for it in its own directory.
	}
	_, err := exec.LookPath(program)
	switch {
	case err == nil:
		return "", ""
	case errors.Is(err, exec.ErrNotFound):
		return "it is not on the gateway's own PATH", "install it, or give the path of its file"
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file", "install it there, or correct the path"
	case errors.Is(err, syscall.EISDIR):
		return "it is a directory", "give the path of the program's file"
	case errors.Is(err, fs.ErrPermission):
		return "it may not be run", "chmod +x the file, and let the gateway's user reach it"
	}
	return err.Error(), "start the program by hand to see what it needs"
}
