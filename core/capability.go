package core

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
)

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
	sum := sha256.Sum256(document.appendTo(room[:0]))
	digest := make([]byte, 0, len("sha256:")+hex.EncodedLen(len(sum)))
	return string(hex.AppendEncode(append(digest, "sha256:"...), sum[:]))
}
