package http

import (
	"context"
	nethttp "net/http"

	"github.com/compozy-gateway/gateway/core"
)

// deadLetterAction is what is done to one dead letter.
type deadLetterAction func(ctx context.Context, id core.DeliveryID) error

// getDeadLetters lists the deliveries that were given up.
func (s *server) getDeadLetters(w nethttp.ResponseWriter, r *request) error {
	if err := r.mustOperate("dead letters"); err != nil {
		return err
	}
	limit, err := r.limit()
	if err != nil {
		return err
	}
	after, err := r.optional("after", func(v string) bool { _, err := core.ParseDeliveryID(v); return err == nil }, "of the form SEQ-RECIPIENT")
	if err != nil {
		return err
	}
	letters, err := s.deadLetters(r, after, limit)
	if err != nil {
		return err
	}
	var next *string
	if len(letters) == limit {
		next = &letters[limit-1].Delivery
	}
	visible := make([]core.DeadLetter, 0, len(letters))
	for _, l := range letters {
		if r.reaches(l) {
			visible = append(visible, l)
		}
	}
	return writeJSON(w, nethttp.StatusOK, map[string]any{"deadletters": visible, "next": next})
}

// postReplay makes a dead letter pending again.
func (s *server) postReplay(w nethttp.ResponseWriter, r *request) error {
	return s.handleDeadLetter(w, r, s.backend.DeadLetters.Replay)
}

// deleteDeadLetter gives a dead letter up for good.
func (s *server) deleteDeadLetter(w nethttp.ResponseWriter, r *request) error {
	return s.handleDeadLetter(w, r, s.backend.DeadLetters.Discard)
}

func (s *server) handleDeadLetter(w nethttp.ResponseWriter, r *request, do deadLetterAction) error {
	if err := r.mustOperate("dead letters"); err != nil {
		return err
	}
	id, err := core.ParseDeliveryID(r.PathValue("delivery"))
	if err != nil {
		return badRequest("the delivery id is not of the form SEQ-RECIPIENT")
	}
	if err := s.checkReach(r, id); err != nil {
		return err
	}
	ctx, cancel := s.reader(r)
	defer cancel()
	if err := do(ctx, id); err != nil {
		return err
	}
	w.WriteHeader(nethttp.StatusNoContent)
	return nil
}

// mustOperate refuses callers who may not handle what only an operator may.
func (r *request) mustOperate(what string) error {
	if r.caller.operator {
		return nil
	}
	return forbidden(what + " need an admin token")
}

// reaches reports whether the letter is in the caller's workspaces.
func (r *request) reaches(l core.DeadLetter) bool {
	return r.caller.mayUse(l.WorkspaceID, "") == nil
}

// checkReach makes a letter that is outside the caller's workspaces one that
// does not exist.
func (s *server) checkReach(r *request, id core.DeliveryID) error {
	if r.caller.scope.Workspaces == nil {
		return nil
	}
	for after := ""; ; {
		letters, err := s.deadLetters(r, after, maxLimit)
		if err != nil {
			return err
		}
		for _, l := range letters {
			if l.Delivery == id.String() && r.reaches(l) {
				return nil
			}
		}
		if len(letters) < maxLimit {
			return core.ErrNotFound
		}
		after = letters[len(letters)-1].Delivery
	}
}

func (s *server) deadLetters(r *request, after string, limit int) ([]core.DeadLetter, error) {
	ctx, cancel := s.reader(r)
	defer cancel()
	return s.backend.DeadLetters.DeadLetters(ctx, after, limit)
}
