package store

import (
	"encoding/binary"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/uptrace/bun"

	"github.com/compozy-gateway/gateway/core"
)

// The models of rows that are read or written one at a time. What a group
// writes in bulk is spelt out where it is written.

type gatewayModel struct {
	bun.BaseModel `bun:"table:gateway"`

	ID            int64 `bun:",pk"`
	InstanceID    string
	Secret        []byte
	CreatedAt     int64
	LastSeq       int64
	PrunedThrough int64
}

type recipientModel struct {
	bun.BaseModel `bun:"table:recipients,alias:r"`

	ID        int64 `bun:",pk,autoincrement"`
	Carrier   string
	Link      string
	Workspace string
	Channel   string
	Peer      string
	Attached  int64
	Push      int64
	Pending   int64 `bun:",scanonly"`
}

func (m *recipientModel) row() RecipientRow {
	return RecipientRow{
		ID: m.ID,
		Recipient: core.Recipient{
			Carrier: m.Carrier, Link: m.Link, WorkspaceID: m.Workspace, Channel: m.Channel, Peer: m.Peer,
		},
		Attached: m.Attached != 0, Push: m.Push != 0, Pending: m.Pending,
	}
}

// The codes of small closed sets. A code is never given another meaning.

const (
	statePending   = 0
	stateAcked     = 1
	stateExpired   = 2
	stateDead      = 3
	stateDiscarded = 4
)

func deliveryStates() []core.DeliveryState {
	return []core.DeliveryState{
		statePending: core.DeliveryPending, stateAcked: core.DeliveryAcked, stateExpired: core.DeliveryExpired,
		stateDead: core.DeliveryDead, stateDiscarded: core.DeliveryDiscarded,
	}
}

func kinds() []core.Kind {
	return []core.Kind{
		core.KindSay, core.KindGreet, core.KindWhois, core.KindCapability, core.KindReceipt, core.KindTrace,
	}
}

func surfaces() []core.Surface { return []core.Surface{"", core.SurfaceThread, core.SurfaceDirect} }

// workStates begins with the placeholder of a work that nobody has opened.
func workStates() []core.WorkState {
	return []core.WorkState{
		"", core.WorkSubmitted, core.WorkWorking, core.WorkNeedsInput,
		core.WorkCompleted, core.WorkFailed, core.WorkCanceled,
	}
}

func ignores() []core.Ignore {
	return []core.Ignore{
		core.IgnoreOrigin, core.IgnoreOutOfScope, core.IgnoreNotAddressed,
		core.IgnoreNotParticipant, core.IgnoreLocatedElsewhere,
	}
}

// wakeStates are coded so that the open ones are less than wakeEnded.
func wakeStates() []core.WakeState { return core.WakeStates() }

func usageStates() []core.UsageState { return core.UsageStates() }

func skips() []core.Skip { return core.Skips() }

// encode gives a value's code, -1 if the set has no such value.
func encode[T comparable](set []T, value T) int64 {
	for i, v := range set {
		if v == value {
			return int64(i)
		}
	}
	return -1
}

// decode gives a code's value, the zero value if there is no such code.
func decode[T any](set []T, code int64) T {
	var zero T
	if code < 0 || code >= int64(len(set)) {
		return zero
	}
	return set[code]
}

// millis is how instants are stored; the zero time is 0.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// packIgnored is the compact column of a message's ignore decisions: for each,
// the recipient as a varint and one byte for the reason.
func packIgnored(list []Ignored) []byte {
	if len(list) == 0 {
		return nil
	}
	b := make([]byte, 0, 3*len(list))
	for _, i := range list {
		b = binary.AppendUvarint(b, uint64(i.Recipient))
		b = append(b, byte(encode(ignores(), i.Reason)))
	}
	return b
}

func unpackIgnored(b []byte) []Ignored {
	var list []Ignored
	for len(b) > 0 {
		recipient, n := binary.Uvarint(b)
		if n <= 0 || n >= len(b) {
			return list
		}
		list = append(list, Ignored{Recipient: int64(recipient), Reason: decode(ignores(), int64(b[n]))})
		b = b[n+1:]
	}
	return list
}

// The bounds, in bytes, of texts that others chose.
const (
	maxClaim  = 256
	maxDetail = 512
)

// cut makes a text valid UTF-8 and bounds it. What is behind the limit is not
// looked at, however long it is.
func cut(s string, limit int) string {
	return prefix(strings.ToValidUTF8(prefix(s, limit), "\uFFFD"), limit)
}

// prefix bounds a text without splitting a character.
func prefix(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// optional is NULL for an empty text.
func optional(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// optionalID is NULL for no id.
func optionalID(id int64) any {
	if id == 0 {
		return nil
	}
	return id
}
