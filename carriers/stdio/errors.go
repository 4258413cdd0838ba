package stdio

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// Every failed send of this carrier is one of these.

func errNoSuchAgent(to core.Recipient) *core.SendError {
	return &core.SendError{
		Code:   core.CodeBadAddress,
		Detail: fmt.Sprintf("no live agent is peer %q of channel %q in workspace %q", to.Peer, to.Channel, to.WorkspaceID),
	}
}

func errNotRunning(agent, why string, again time.Duration) *core.SendError {
	return &core.SendError{
		Code:       core.CodeUnavailable,
		Detail:     fmt.Sprintf("agent %q is %s", agent, why),
		RetryAfter: max(again, 0),
	}
}

// errInputClosed may come again until the process has ended and another one is
// there, which takes stopGrace or longer.
func errInputClosed(agent string, err error) *core.SendError {
	return &core.SendError{
		Code:       core.CodeUnavailable,
		Detail:     fmt.Sprintf("agent %q takes no more input", agent),
		RetryAfter: stopGrace,
		Err:        err,
	}
}

func errNotReading(agent string) *core.SendError {
	return &core.SendError{Code: core.CodeUnavailable, Detail: fmt.Sprintf("agent %q does not read its input", agent)}
}

func errHalfWritten(agent string) *core.SendError {
	return &core.SendError{
		Code:   core.CodeTimeout,
		Detail: fmt.Sprintf("agent %q stopped reading in the middle of the line", agent),
	}
}

func errGivenUp(agent string, cause error) *core.SendError {
	return &core.SendError{
		Code:   core.CodeTimeout,
		Detail: fmt.Sprintf("agent %q has not taken the line in time", agent),
		Err:    cause,
	}
}

func errUnacknowledged(agent string, cause error) *core.SendError {
	return &core.SendError{
		Code:   core.CodeTimeout,
		Detail: fmt.Sprintf("agent %q has not acknowledged in time", agent),
		Err:    cause,
	}
}

func errLate(agent string) *core.SendError {
	return &core.SendError{
		Code:   core.CodeExpired,
		Detail: fmt.Sprintf("the deadline passed before agent %q could be given the line", agent),
	}
}

// startFailure says for people why an agent could not be started.
func startFailure(err error) string {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return "its command was not found"
	case errors.Is(err, fs.ErrPermission):
		return "its command may not be run"
	}
	// Which program it is, the status and the log say.
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Sprintf("could not start: %v", err)
}

// exitReason says for people how an agent ended.
func exitReason(err error) string {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "exit status 0"
	case errors.As(err, &exit):
		return exit.String()
	default:
		return err.Error()
	}
}
