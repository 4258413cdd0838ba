package core

// Capability is the document of a capability message.
type Capability struct{}
