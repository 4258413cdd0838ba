package store

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"math"
	"strings"

	"github.com/compozy-gateway/gateway/core"
)

// Rejections lists refused frames, the latest entry first, behind the position
// after (0: from the latest), at most limit. A repeat does not move its entry.
func (s *Store) Rejections(ctx context.Context, after int64, limit int) ([]core.RejectionView, error) {
	if after <= 0 {
		after = math.MaxInt64
	}
	list := []core.RejectionView{}
	err := scanRows(ctx, s.readers, func(rows *sql.Rows) error {
		var r core.RejectionView
		var hash []byte
		var first, last int64
		if err := rows.Scan(&r.Position, &hash, &r.Carrier, &r.Reason, &r.Bytes, &r.ClaimedWorkspaceID,
			&r.ClaimedID, &r.ClaimedFrom, &r.Detail, &r.Count, &first, &last); err != nil {
			return err
		}
		r.SHA256, r.FirstAt, r.LastAt = hex.EncodeToString(hash), instant(first), instant(last)
		// Strangers chose these, and cutting may have split a character.
		for _, text := range []*string{&r.ClaimedWorkspaceID, &r.ClaimedID, &r.ClaimedFrom, &r.Detail} {
			*text = strings.ToValidUTF8(*text, "\uFFFD")
		}
		list = append(list, r)
		return nil
	}, "SELECT r.id, r.hash, n.name, r.reason, r.size, COALESCE(r.claimed_space, ''), COALESCE(r.claimed_id, ''),"+
		" COALESCE(r.claimed_from, ''), COALESCE(r.detail, ''), r.count, r.first_at, r.last_at"+
		" FROM rejections r JOIN names n ON n.id = r.carrier_id WHERE r.id < ? ORDER BY r.id DESC LIMIT ?", after, limit)
	if err != nil {
		return nil, fmt.Errorf("read the rejection log: %w", err)
	}
	return list, nil
}
