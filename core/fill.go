package core

import (
	"strconv"
	"strings"
)

// fill copies the values that have the right type into the envelope and gives
// a refusal for one that has not, if any.
func (f *fields) fill(e *Envelope) *Rejection {
	wrong := f.fillStrings(e)
	if v := f.value[fieldTS]; v != nil {
		var ok bool
		if e.TS, ok = integer(v); !ok {
			wrong = wrongType(fieldTS, "an integer before the year 10000")
		}
	}
	if v := f.value[fieldExpiresAt]; v != nil {
		if e.ExpiresAt, e.HasExpiry = integer(v); !e.HasExpiry {
			wrong = wrongType(fieldExpiresAt, "an integer before the year 10000")
		}
	}
	e.Body, e.Ext, e.Proof = f.value[fieldBody], f.value[fieldExt], f.value[fieldProof]
	for _, which := range [...]field{fieldBody, fieldExt, fieldProof} {
		if v := f.value[which]; v != nil && !isObject(v) {
			wrong = wrongType(which, "an object")
		}
	}
	return wrong
}

// fillStrings copies the fields that are strings, and the mentions.
func (f *fields) fillStrings(e *Envelope) (wrong *Rejection) {
	var copies texts
	copies.makeRoom(f.value[:fieldMentions+1])
	get := func(which field) string {
		v := f.value[which]
		if !isStringOrNil(v) {
			wrong = wrongType(which, "a string")
			return ""
		}
		return copies.stringOf(v)
	}
	e.Protocol = get(fieldProtocol)
	e.ID = get(fieldID)
	e.WorkspaceID = get(fieldWorkspaceID)
	e.Kind = Kind(get(fieldKind))
	e.Channel = get(fieldChannel)
	e.Surface = Surface(get(fieldSurface))
	e.ThreadID = get(fieldThreadID)
	e.DirectID = get(fieldDirectID)
	e.From = get(fieldFrom)
	e.To = get(fieldTo)
	e.WorkID = strings.TrimSpace(get(fieldWorkID))
	e.ReplyTo = get(fieldReplyTo)
	e.TraceID = get(fieldTraceID)
	e.CausationID = get(fieldCausationID)
	if v := f.value[fieldMentions]; v != nil {
		list, ok := copies.stringsOf(v)
		if !ok {
			wrong = wrongType(fieldMentions, "an array of strings")
		}
		e.Mentions = withoutRepeats(list)
	}
	return wrong
}

// checkForbidden refuses the fields that no envelope may have, even as null.
func (f *fields) checkForbidden() *Rejection {
	if f.given[fieldInteractionID] {
		return &Rejection{
			Step: StepParse, Reason: ReasonLegacyFieldRejected,
			Detail: "interaction_id belongs to a retired form of the protocol",
		}
	}
	if f.given[fieldCarrier] {
		return malformed(StepParse, "a top-level carrier field marks a control frame, not an envelope")
	}
	return nil
}

// checkRequired holds the fields that every envelope has, and then the two
// that say whether it is ours to read at all.
func (f *fields) checkRequired(e *Envelope) *Rejection {
	for _, which := range [...]field{
		fieldProtocol, fieldID, fieldWorkspaceID, fieldKind,
		fieldChannel, fieldFrom, fieldTS, fieldBody,
	} {
		if v := f.value[which]; v == nil || isEmptyString(v) {
			return malformed(StepFields, which.name()+" is missing")
		}
	}
	if e.Protocol != Protocol {
		return malformed(StepFields, "protocol is not "+Protocol)
	}
	if isString(f.value[fieldKind]) && !e.Kind.Valid() {
		return &Rejection{
			Step: StepFields, Reason: ReasonUnsupportedKind,
			Detail: "kind is not one of greet, whois, say, capability, receipt, trace",
		}
	}
	return nil
}

// checkGrammar holds the fields that have the right type to their grammars.
// Those of surface, thread_id and direct_id come in step 4, with their own
// reason.
func (f *fields) checkGrammar(e *Envelope) *Rejection {
	switch {
	case !validID(e.ID):
		return badGrammar(fieldID, idGrammar)
	case !ValidWorkspaceID(e.WorkspaceID):
		return badGrammar(fieldWorkspaceID, WorkspaceGrammar)
	case !ValidChannel(e.Channel):
		return badGrammar(fieldChannel, ChannelGrammar)
	case !ValidPeerID(e.From):
		return badGrammar(fieldFrom, PeerGrammar)
	case f.has(fieldTo) && !ValidPeerID(e.To):
		return badGrammar(fieldTo, PeerGrammar)
	case f.has(fieldWorkID) && !validWorkID(e.WorkID):
		return badGrammar(fieldWorkID, workIDGrammar)
	case f.has(fieldReplyTo) && !validOpaque(e.ReplyTo):
		return badGrammar(fieldReplyTo, opaqueGrammar)
	case f.has(fieldTraceID) && !validOpaque(e.TraceID):
		return badGrammar(fieldTraceID, opaqueGrammar)
	case f.has(fieldCausationID) && !validOpaque(e.CausationID):
		return badGrammar(fieldCausationID, opaqueGrammar)
	case e.TS <= 0:
		return malformed(StepFields, "ts is not after 1970")
	}
	for _, peer := range e.Mentions {
		if !ValidPeerID(peer) {
			return badGrammar(fieldMentions, PeerGrammar)
		}
	}
	e.emptySurface = f.has(fieldSurface) && e.Surface == "" ||
		f.has(fieldThreadID) && e.ThreadID == "" ||
		f.has(fieldDirectID) && e.DirectID == ""
	return nil
}

func (f *fields) has(which field) bool { return f.value[which] != nil }

func wrongType(which field, want string) *Rejection {
	return malformed(StepFields, which.name()+" is not "+want)
}

func badGrammar(which field, grammar string) *Rejection {
	what := which.name()
	if which == fieldMentions {
		what = "an entry of mentions"
	}
	return malformed(StepFields, what+" does not fit its grammar: "+grammar)
}

// year10000 is the first second, in Unix time, that no envelope may name.
const year10000 = 253402300800

// integer reads a JSON number without fraction or exponent.
func integer(v []byte) (int64, bool) {
	if c := v[0]; c != '-' && (c < '0' || c > '9') {
		return 0, false
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	return n, err == nil && n < year10000
}

// withoutRepeats keeps the first of equal entries, in place.
func withoutRepeats(list []string) []string {
	if len(list) < 2 {
		return list
	}
	seen := make(map[string]struct{}, len(list))
	kept := list[:0]
	for _, s := range list {
		if _, ok := seen[s]; !ok {
			seen[s] = struct{}{}
			kept = append(kept, s)
		}
	}
	return kept
}
