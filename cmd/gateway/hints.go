package main

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/compozy-gateway/gateway/cmd/gateway/internal/client"
)

// advise adds to an error what can be done about it, where that is known.
func (p *process) advise(err error) string {
	var unreachable *client.UnreachableError
	if errors.As(err, &unreachable) {
		return fmt.Sprintf("; is it running? start it with `%s serve`, or say where it is with --url", p.program)
	}
	return ""
}

// notFound names what was asked for when the gateway does not know it. What
// belongs to a direct room is unknown to everybody else, so a reader who named no
// peer is told of that.
func notFound(err error, what, workspace, peer string) error {
	var problem *client.Problem
	if !errors.As(err, &problem) || problem.Status != http.StatusNotFound {
		return err
	}
	hint := "; what belongs to a direct room is shown to its two peers: name one with --peer"
	if peer != "" {
		hint = fmt.Sprintf("; --peer %s is shown the direct rooms of that peer alone", printable(peer))
	}
	return fmt.Errorf("workspace %s has no %s%s: %w", printable(workspace), what, hint, err)
}
