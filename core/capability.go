package core

// Capability is the document of a capability message.
type Capability struct {
	ID      string
	Summary string
	Outcome string
	Version string

	ContextNeeded     []string
	ArtifactsExpected []string
	ExecutionOutline  []string
	Constraints       []string
	Examples          []string
	Requirements      []string

	// Digest is the digest that the document claims.
	Digest string
	// Raw is the document as it came.
	Raw []byte
}
