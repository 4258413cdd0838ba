package core

import "time"

// RejectionView is one entry of the rejection log: a frame that was refused,
// repeats of the same bytes on the same carrier for the same reason together.
// Its content was never kept. Its JSON is the HTTP interface's.
type RejectionView struct {
	// Position grows with each new entry, and is where a page goes on.
	Position int64  `json:"position"`
	Carrier  string `json:"carrier"`
	// Reason is the protocol's code, Detail what was wrong.
	Reason Reason `json:"reason_code"`
	Detail string `json:"detail,omitempty"`
	// The claims are what the frame said of itself, cut to a bounded length; any
	// of them may be missing, or a lie.
	ClaimedWorkspaceID string `json:"claimed_workspace_id,omitempty"`
	ClaimedID          string `json:"claimed_id,omitempty"`
	ClaimedFrom        string `json:"claimed_from,omitempty"`
	// SHA256 is the hash of the frame's bytes, in hexadecimal, and Bytes their
	// number.
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	// Count is how often it came, and the times are of the first and the last.
	Count   int64     `json:"count"`
	FirstAt time.Time `json:"first_at"`
	LastAt  time.Time `json:"last_at"`
}
