package core

import (
	"crypto/sha256"
	"encoding/hex"
)

// Container is the thread or direct room that a message belongs to. Its zero
// value is no container.
type Container struct {
	Surface Surface
	// ID is the thread_id or the direct_id.
	ID string
}

// Container gives the thread or room of a conversation kind.
func (e *Envelope) Container() Container {
	switch e.Surface {
	case SurfaceThread:
		return Container{SurfaceThread, e.ThreadID}
	case SurfaceDirect:
		return Container{SurfaceDirect, e.DirectID}
	}
	return Container{}
}

// DirectRoomID derives the id of the direct room of two parties in a channel
// (section 2 of docs/protocol.md); the order of the parties does not matter.
// A runtime hashes its own stable session identities, so the result names a
// room only among those who derive it from the same identities: for somebody
// else's room it says nothing.
func DirectRoomID(workspace, channel, a, b string) string {
	if b < a {
		a, b = b, a
	}
	h := sha256.New()
	for _, part := range []string{"compozy-network/direct-room/v1", workspace, channel, a} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	h.Write([]byte(b))
	return "direct_" + hex.EncodeToString(h.Sum(nil)[:16])
}
