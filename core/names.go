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

// named holds the values of an object's members of certain names, in the order
// of the names; absent and null are nil.
type named [maxNames][]byte

// pick gives the values of an object's members of these names.
func pick(object []byte, names []string) (values named) {
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
// Where there is none, values hold what pick gives.
func (values *named) twin(object []byte, names []string) string {
	*values = named{}
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
			return names[i]
		}
		seen[i] = true
	}
	return ""
}

// subject is the object that a body is about, a card or a capability, with its
// named members.
type subject struct {
	raw    []byte
	values named
}

// twinInBody looks for twins in the body of a kind, and in the objects inside
// it that the protocol names. A body that is no object has none. It gives the
// body's subject too, nil where that is absent or no object.
func twinInBody(kind Kind, body []byte) (about *subject, name string) {
	if body == nil || !isObject(body) {
		return nil, ""
	}
	var values named
	switch kind {
	case KindSay:
		return nil, values.twin(body, sayNames)
	case KindReceipt:
		return nil, values.twin(body, receiptNames)
	case KindTrace:
		return nil, values.twin(body, traceNames)
	case KindCapability:
		if name = values.twin(body, transferNames); name == "" {
			return twinInSubject(values[0], capabilityNames)
		}
	case KindGreet:
		if name = values.twin(body, greetNames); name == "" {
			return twinInCard(values[0])
		}
	case KindWhois:
		if name = values.twin(body, whoisNames); name == "" {
			return twinInCard(values[2])
		}
	}
	return nil, name
}

func twinInSubject(v []byte, names []string) (about *subject, name string) {
	if v == nil || !isObject(v) {
		return nil, ""
	}
	about = &subject{raw: v}
	return about, about.values.twin(v, names)
}

func twinInCard(card []byte) (about *subject, name string) {
	about, name = twinInSubject(card, cardNames)
	if about == nil || name != "" {
		return about, name
	}
	return about, twinInNested(about.values[6], cardExtNames, briefNames)
}

// twinInExt looks for twins in the members of ext that the protocol names.
func twinInExt(ext []byte) string {
	if ext == nil || !isObject(ext) {
		return ""
	}
	var values named
	if name := values.twin(ext, extNames); name != "" {
		return name
	}
	return twinInNested(values[2], catalogueNames, capabilityNames)
}

// twinInNested looks for twins in a value that may be anything, or nil, and
// then in the objects that the first of its named members lists.
func twinInNested(v []byte, names, entryNames []string) string {
	if v == nil || !isObject(v) {
		return ""
	}
	var values named
	if name := values.twin(v, names); name != "" {
		return name
	}
	list := values[0]
	if list == nil || !isArray(list) {
		return ""
	}
	for e := (elements{buf: list}); e.next(); {
		if isObject(e.value()) {
			if name := values.twin(e.value(), entryNames); name != "" {
				return name
			}
		}
	}
	return ""
}
