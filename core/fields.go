package core

// field is a top-level field that the protocol names.
type field uint8

// The named fields. Those whose value is a string come first, and the two that
// must not be there last.
const (
	fieldNone field = iota
	fieldProtocol
	fieldID
	fieldWorkspaceID
	fieldKind
	fieldChannel
	fieldSurface
	fieldThreadID
	fieldDirectID
	fieldFrom
	fieldTo
	fieldWorkID
	fieldReplyTo
	fieldTraceID
	fieldCausationID
	fieldMentions
	fieldTS
	fieldExpiresAt
	fieldBody
	fieldProof
	fieldExt
	fieldInteractionID
	fieldCarrier
	fieldCount
)

// name is the field's name on the wire.
func (f field) name() string {
	return [fieldCount]string{
		"", "protocol", "id", "workspace_id", "kind", "channel", "surface", "thread_id",
		"direct_id", "from", "to", "work_id", "reply_to", "trace_id", "causation_id",
		"mentions", "ts", "expires_at", "body", "proof", "ext", "interaction_id", "carrier",
	}[f]
}

// fieldNamed finds the field of that name.
func fieldNamed(name []byte) field {
	switch string(name) {
	case "protocol":
		return fieldProtocol
	case "id":
		return fieldID
	case "workspace_id":
		return fieldWorkspaceID
	case "kind":
		return fieldKind
	case "channel":
		return fieldChannel
	case "surface":
		return fieldSurface
	case "thread_id":
		return fieldThreadID
	case "direct_id":
		return fieldDirectID
	case "from":
		return fieldFrom
	case "to":
		return fieldTo
	case "work_id":
		return fieldWorkID
	case "reply_to":
		return fieldReplyTo
	case "trace_id":
		return fieldTraceID
	case "causation_id":
		return fieldCausationID
	case "mentions":
		return fieldMentions
	case "ts":
		return fieldTS
	case "expires_at":
		return fieldExpiresAt
	case "body":
		return fieldBody
	case "proof":
		return fieldProof
	case "ext":
		return fieldExt
	case "interaction_id":
		return fieldInteractionID
	case "carrier":
		return fieldCarrier
	}
	return fieldNone
}

// fields collects the values of the named fields as they are spelled.
type fields struct {
	// value is nil for what is absent or null.
	value [fieldCount][]byte
	// given says that the field is there, even if null; seen that some key is,
	// which is equal to its name but for case.
	given, seen [fieldCount]bool
}

// take takes in one member. It gives the field that the member is, if any, and
// the name that it shares with an earlier key but for case, if any.
func (f *fields) take(m *members) (which field, twin string) {
	name := m.name()
	which = fieldNamed(name)
	near := which
	if which == fieldNone {
		var buf [maxNameBytes]byte
		near = fieldNamed(fold(&buf, name))
	}
	if near == fieldNone {
		return fieldNone, ""
	}
	if f.seen[near] {
		return which, near.name()
	}
	f.seen[near] = true
	if which != fieldNone {
		f.given[which] = true
		if !isNull(m.value()) {
			f.value[which] = m.value()
		}
	}
	return which, ""
}
