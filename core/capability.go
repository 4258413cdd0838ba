package core

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// canonical is a capability as its digest sees it (section 2 of
// docs/protocol.md): these members in this order, written as encoding/json
// writes them.
type canonical struct {
	ID                string   `json:"id"`
	Summary           string   `json:"summary"`
	Outcome           string   `json:"outcome"`
	Version           string   `json:"version,omitempty"`
	ContextNeeded     []string `json:"context_needed,omitempty"`
	ArtifactsExpected []string `json:"artifacts_expected,omitempty"`
	ExecutionOutline  []string `json:"execution_outline,omitempty"`
	Constraints       []string `json:"constraints,omitempty"`
	Examples          []string `json:"examples,omitempty"`
	Requirements      []string `json:"requirements,omitempty"`
}

// CapabilityDigest gives the digest of a capability document, "sha256:" and 64
// hex digits. A digest that the document carries is not looked at. The error is
// a *Rejection and says why the bytes are no capability document.
func CapabilityDigest(raw []byte) (string, error) {
	c, err := ReadCapability(raw)
	if err != nil {
		return "", err
	}
	return c.digest(), nil
}

// ReadCapability reads a capability document that stands by itself. A digest
// that it carries is not compared. The error is a *Rejection and says why the
// bytes are no capability document.
func ReadCapability(raw []byte) (*Capability, error) {
	raw = bytes.Trim(raw, " \t\r\n")
	if rej := checkStrict(raw); rej != nil {
		return nil, rej
	}
	document, name := twinInSubject(raw, capabilityNames)
	if name != "" {
		return nil, twinRefusal(name)
	}
	c, fault := readCapability(document)
	if fault != "" {
		return nil, badBody(fault)
	}
	return c, nil
}

func (c *Capability) digest() string {
	document := c.canonical()
	var room [2048]byte
	sum := sha256.Sum256(document.append(room[:0]))
	digest := make([]byte, 0, len("sha256:")+hex.EncodedLen(len(sum)))
	return string(hex.AppendEncode(append(digest, "sha256:"...), sum[:]))
}

// canonical gives the document with white space trimmed, blank entries dropped
// and requirements sorted. Its lists may be those of the document.
func (c *Capability) canonical() canonical {
	requirements := trimmed(c.Requirements)
	if !slices.IsSorted(requirements) {
		requirements = slices.Sorted(slices.Values(requirements))
	}
	return canonical{
		ID:                strings.TrimSpace(c.ID),
		Summary:           strings.TrimSpace(c.Summary),
		Outcome:           strings.TrimSpace(c.Outcome),
		Version:           strings.TrimSpace(c.Version),
		ContextNeeded:     trimmed(c.ContextNeeded),
		ArtifactsExpected: trimmed(c.ArtifactsExpected),
		ExecutionOutline:  trimmed(c.ExecutionOutline),
		Constraints:       trimmed(c.Constraints),
		Examples:          trimmed(c.Examples),
		Requirements:      requirements,
	}
}

// trimmed gives the entries without white space around them, and without those
// that are blank: the list itself where that changes nothing, else a new one.
func trimmed(list []string) []string {
	clean := func(s string) bool { return s != "" && len(strings.TrimSpace(s)) == len(s) }
	if !slices.ContainsFunc(list, func(s string) bool { return !clean(s) }) {
		return list
	}
	kept := make([]string, 0, len(list))
	for _, s := range list {
		if s = strings.TrimSpace(s); s != "" {
			kept = append(kept, s)
		}
	}
	return kept
}
