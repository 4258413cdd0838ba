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
		if i := indexOf(names, m.name()); i >= 0 && !isNull(m.value()) {
			values[i] = m.value()
		}
	}
	return values
}

func indexOf(names []string, name []byte) int {
	for i, n := range names {
		if string(name) == n {
			return i
		}
	}
	return -1
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
// Where there is none, it gives what pick gives.
func twin(object []byte, names []string) (values [maxNames][]byte, name string) {
	var seen [maxNames]bool
	for m := (members{buf: object}); m.next(); {
		i := indexOf(names, m.name())
		if i >= 0 && !isNull(m.value()) {
			values[i] = m.value()
		}
		if i < 0 {
			var buf [maxNameBytes]byte
			i = indexOf(names, fold(&buf, m.name()))
		}
		if i < 0 {
			continue
		}
		if seen[i] {
			return values, names[i]
		}
		seen[i] = true
	}
	return values, ""
}

// twinInBody looks for twins in the body of a kind, and in the objects inside
// it that the protocol names. A body that is no object has none.
func twinInBody(kind Kind, body []byte) (name string) {
	switch kind {
	case KindSay:
		_, name = twinIn(body, sayNames)
	case KindReceipt:
		_, name = twinIn(body, receiptNames)
	case KindTrace:
		_, name = twinIn(body, traceNames)
	case KindCapability:
		v, t := twinIn(body, transferNames)
		if t != "" {
			return t
		}
		_, name = twinIn(v[0], capabilityNames)
	case KindGreet:
		v, t := twinIn(body, greetNames)
		if t != "" {
			return t
		}
		name = twinInCard(v[0])
	case KindWhois:
		v, t := twinIn(body, whoisNames)
		if t != "" {
			return t
		}
		name = twinInCard(v[2])
	}
	return name
}

func twinInCard(card []byte) string {
	v, t := twinIn(card, cardNames)
	if t != "" {
		return t
	}
	if v, t = twinIn(v[6], cardExtNames); t != "" {
		return t
	}
	return twinInEach(v[0], briefNames)
}

// twinInExt looks for twins in the members of ext that the protocol names.
func twinInExt(ext []byte) string {
	v, t := twinIn(ext, extNames)
	if t != "" {
		return t
	}
	if v, t = twinIn(v[2], catalogueNames); t != "" {
		return t
	}
	return twinInEach(v[0], capabilityNames)
}

// twinIn is twin for a value that may be anything, or nil.
func twinIn(v []byte, names []string) (values [maxNames][]byte, name string) {
	if v == nil || !isObject(v) {
		return values, ""
	}
	return twin(v, names)
}

// twinInEach is twinIn for the elements of a value that may be anything.
func twinInEach(v []byte, names []string) string {
	if v == nil || !isArray(v) {
		return ""
	}
	for e := (elements{buf: v}); e.next(); {
		if _, t := twinIn(e.value(), names); t != "" {
			return t
		}
	}
	return ""
}
