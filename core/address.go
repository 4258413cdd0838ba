package core

import (
	"crypto/sha256"
	"encoding/hex"
)

// AddressClass is the last part of a carrier address.
type AddressClass string

// The classes of address.
const (
	AddressBroadcast AddressClass = "broadcast"
	AddressPeer      AddressClass = "peer"
	AddressIngress   AddressClass = "ingress"
)

// Address is a logical address on a bus. It grants nothing; it is checked
// against the envelope.
type Address struct {
	WorkspaceID string
	Channel     string
	Class       AddressClass
	// Token is the route token of a peer address, else empty.
	Token string
}

// RouteToken is the last part of a peer's address: the first 32 hex digits of
// the SHA-256 of the peer id. Different peers have different tokens for all
// practical purposes; a token does not hide its peer.
func RouteToken(peer string) string {
	sum := sha256.Sum256([]byte(peer))
	return hex.EncodeToString(sum[:16])
}

// CheckAddress is the second half of step 4: whether the carrier's address
// says the same as the envelope (section 10 of docs/protocol.md). A nil address
// is always right, and of an ingress address only the workspace and channel
// count. A direct room's message without a recipient passes on any peer
// address: who the recipient is follows from the room, so CheckRoomAddress
// looks at it in step 9.
func (e *Envelope) CheckAddress(a *Address) *Rejection {
	if a == nil {
		return nil
	}
	if a.WorkspaceID != e.WorkspaceID || a.Channel != e.Channel {
		return malformed(StepShape, "the carrier's address names another workspace or channel")
	}
	hasRecipient := e.To != "" || e.Surface == SurfaceDirect
	switch {
	case a.Class == AddressIngress:
		return nil
	case a.Class == AddressBroadcast && !hasRecipient:
		return nil
	case a.Class == AddressBroadcast:
		return malformed(StepShape, "an envelope with a recipient came on a broadcast address")
	case a.Class != AddressPeer:
		return malformed(StepShape, "the carrier's address is of no known class")
	case !hasRecipient:
		return malformed(StepShape, "an envelope without a recipient came on a peer's address")
	case e.To != "" && a.Token != RouteToken(e.To):
		return malformed(StepShape, "the carrier's address is another peer's")
	}
	return nil
}

// CheckRoomAddress is the part of CheckAddress that had to wait for step 9:
// whether the peer address on which a direct room's message without to came in
// is that of the room's other party. Addresses that are not a peer's pass.
func CheckRoomAddress(a *Address, recipient string) *Rejection {
	if a == nil || a.Class != AddressPeer || a.Token == RouteToken(recipient) {
		return nil
	}
	return malformed(StepState, "the carrier's address is not that of the room's other party")
}
