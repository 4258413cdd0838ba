package core

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
