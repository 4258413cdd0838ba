package core

import "bytes"

// The names that the protocol gives to the members of its objects, per object.
// The lists are never changed. The order is that in which pick returns values.
var (
	sayNames        = []string{"text", "intent", "artifacts"}
	receiptNames    = []string{"for_id", "status", "reason_code", "detail"}
	traceNames      = []string{"state", "message", "result", "artifact_refs"}
	greetNames      = []string{"peer_card", "summary"}
	whoisNames      = []string{"type", "query", "peer_card"}
	cardNames       = []string{"peer_id", "display_name", "profiles_supported", "capabilities", "artifacts_supported", "trust_modes_supported", "ext"}
	cardExtNames    = []string{"compozy.capabilities_brief"}
	briefNames      = []string{"id", "summary"}
	transferNames   = []string{"capability"}
	capabilityNames = []string{"id", "summary", "outcome", "digest", "version", "context_needed", "artifacts_expected", "execution_outline", "constraints", "examples", "requirements"}
	extNames        = []string{"compozy.include", "compozy.capability_ids", "compozy.capability_catalog"}
	catalogueNames  = []string{"capabilities"}
)

// maxNames is the length of the longest list of names.
const maxNames = 11

// pick gives the values of an object's members of these names, in the order of
// the names; absent and null are nil.
func pick(object []byte, names []string) (values [maxNames][]byte) {
	for m := (members{buf: object}); m.next(); {
		name := m.name()
		for i, n := range names {
			if string(name) == n && !isNull(m.value()) {
				values[i] = m.value()
			}
		}
	}
	return values
}

// maxNameBytes is the length of the longest name that the protocol gives.
const maxNameBytes = 26

// fold gives the name in lower case, or nil where it cannot be one of the
// protocol's names in any case. It folds as encoding/json matches keys: the
// long s and the Kelvin sign are letters s and k.
func fold(buf *[maxNameBytes]byte, name []byte) []byte {
	n := 0
	for i := 0; i < len(name); n++ {
		if n == len(buf) {
			return nil
		}
		c, width := name[i], 1
		switch {
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		case c < 0x80:
		case bytes.HasPrefix(name[i:], []byte("\u017f")):
			c, width = 's', len("\u017f")
		case bytes.HasPrefix(name[i:], []byte("\u212a")):
			c, width = 'k', len("\u212a")
		default:
			return nil
		}
		buf[n] = c
		i += width
	}
	return buf[:n]
}

// twin gives the first of the names that two of the object's keys are equal to
// but for their case, or "". Some readers would take the one, some the other.
func twin(object []byte, names []string) string {
	var seen [maxNames]bool
	for m := (members{buf: object}); m.next(); {
		var buf [maxNameBytes]byte
		folded := fold(&buf, m.name())
		for i, n := range names {
			if string(folded) != n {
				continue
			}
			if seen[i] {
				return n
			}
			seen[i] = true
		}
	}
	return ""
}

// twinInBody looks for twins in the body of a kind, and in the objects inside
// it that the protocol names. A body that is no object has none.
func twinInBody(kind Kind, body []byte) string {
	switch kind {
	case KindSay:
		return twinIn(body, sayNames)
	case KindReceipt:
		return twinIn(body, receiptNames)
	case KindTrace:
		return twinIn(body, traceNames)
	case KindCapability:
		if t := twinIn(body, transferNames); t != "" {
			return t
		}
		return twinIn(child(body, "capability"), capabilityNames)
	case KindGreet:
		if t := twinIn(body, greetNames); t != "" {
			return t
		}
		return twinInCard(child(body, "peer_card"))
	case KindWhois:
		if t := twinIn(body, whoisNames); t != "" {
			return t
		}
		return twinInCard(child(body, "peer_card"))
	}
	return ""
}

func twinInCard(card []byte) string {
	if t := twinIn(card, cardNames); t != "" {
		return t
	}
	ext := child(card, "ext")
	if t := twinIn(ext, cardExtNames); t != "" {
		return t
	}
	return twinInEach(child(ext, "compozy.capabilities_brief"), briefNames)
}

// twinInExt looks for twins in the members of ext that the protocol names.
func twinInExt(ext []byte) string {
	if t := twinIn(ext, extNames); t != "" {
		return t
	}
	catalogue := child(ext, "compozy.capability_catalog")
	if t := twinIn(catalogue, catalogueNames); t != "" {
		return t
	}
	return twinInEach(child(catalogue, "capabilities"), capabilityNames)
}

// twinIn is twin for a value that may be anything, or nil.
func twinIn(v []byte, names []string) string {
	if v == nil || !isObject(v) {
		return ""
	}
	return twin(v, names)
}

// twinInEach is twinIn for the elements of a value that may be anything.
func twinInEach(v []byte, names []string) string {
	if v == nil || !isArray(v) {
		return ""
	}
	for e := (elements{buf: v}); e.next(); {
		if t := twinIn(e.value(), names); t != "" {
			return t
		}
	}
	return ""
}

// child gives the member of that name of a value that may be anything.
func child(v []byte, name string) []byte {
	if v == nil || !isObject(v) {
		return nil
	}
	for m := (members{buf: v}); m.next(); {
		if string(m.name()) == name {
			return m.value()
		}
	}
	return nil
}
