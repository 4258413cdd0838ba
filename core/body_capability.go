package core

import "strings"

func (e *Envelope) readCapability() *Rejection {
	if e.subject == nil {
		return badBody("body.capability is missing or not an object")
	}
	c, fault := readCapability(e.subject)
	if fault != "" {
		return badBody(fault)
	}
	if c.Digest == "" {
		return badBody("capability.digest is missing or not a string")
	}
	if c.Digest != c.digest() {
		return &Rejection{
			Step: StepBody, Reason: ReasonVerificationFailed,
			Detail: "capability.digest is not the digest of the document",
		}
	}
	e.Capability = c
	return nil
}

// readCapability reads a capability document; the digest may be absent. The
// fault is what is wrong with it, or "".
func readCapability(document *subject) (c *Capability, fault string) {
	c = &Capability{Raw: document.raw}
	v := &document.values
	var copies texts
	copies.makeRoom(v[:])
	scalars := [...]*string{&c.ID, &c.Summary, &c.Outcome, &c.Digest, &c.Version}
	for i, into := range scalars {
		if !isStringOrNil(v[i]) {
			return nil, "capability." + capabilityNames[i] + " is not a string"
		}
		*into = copies.stringOf(v[i])
	}
	for i, required := range scalars[:3] {
		if strings.TrimSpace(*required) == "" {
			return nil, "capability." + capabilityNames[i] + " is missing or blank"
		}
	}
	for i, into := range [...]*[]string{
		&c.ContextNeeded, &c.ArtifactsExpected, &c.ExecutionOutline,
		&c.Constraints, &c.Examples, &c.Requirements,
	} {
		i += len(scalars)
		if v[i] == nil {
			continue
		}
		var ok bool
		if *into, ok = copies.stringsOf(v[i]); !ok {
			return nil, "capability." + capabilityNames[i] + " is not an array of strings"
		}
	}
	return c, c.requirementsFault()
}

// requirementsFault looks for a blank or a repeated requirement.
func (c *Capability) requirementsFault() string {
	seen := make(map[string]struct{}, len(c.Requirements))
	for _, r := range c.Requirements {
		r = strings.TrimSpace(r)
		if r == "" {
			return "capability.requirements has a blank entry"
		}
		if _, ok := seen[r]; ok {
			return "capability.requirements names one twice"
		}
		seen[r] = struct{}{}
	}
	return ""
}
