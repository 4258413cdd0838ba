package http

import (
	"context"
	nethttp "net/http"

	"github.com/compozy-gateway/gateway/core"
)

// Rejections is the log of what was refused.
type Rejections interface {
	// Rejections lists up to limit entries, the latest first, behind the
	// position, 0 for the latest.
	Rejections(ctx context.Context, after int64, limit int) ([]core.RejectionView, error)
}

// getRejections lists what was refused, on any carrier.
func (s *server) getRejections(w nethttp.ResponseWriter, r *request) error {
	if err := r.mustOperate("rejections"); err != nil {
		return err
	}
	if s.backend.Rejections == nil {
		return core.ErrNotFound
	}
	limit, err := r.limit()
	if err != nil {
		return err
	}
	after, _, err := r.after()
	if err != nil {
		return err
	}
	ctx, cancel := s.reader(r)
	defer cancel()
	list, err := s.backend.Rejections.Rejections(ctx, after, limit)
	if err != nil {
		return err
	}
	var next *int64
	if len(list) == limit {
		next = &list[limit-1].Position
	}
	visible := make([]core.RejectionView, 0, len(list))
	for _, entry := range list {
		if r.caller.scope.Workspaces == nil || r.caller.mayUse(entry.ClaimedWorkspaceID, "") == nil {
			visible = append(visible, entry)
		}
	}
	return writeJSON(w, nethttp.StatusOK, rejectionsPage{Rejections: visible, Next: next})
}

type rejectionsPage struct {
	Rejections []core.RejectionView `json:"rejections"`
	// Next is where the next page starts, null on the last.
	Next *int64 `json:"next"`
}
