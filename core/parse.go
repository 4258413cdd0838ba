package core

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is how deep an envelope may nest; its own object is the first level.
const maxDepth = 64

// Parse runs steps 1 and 2 (section 3 of docs/protocol.md): from bytes to an
// envelope whose named fields have the right types and grammars. What the kind
// demands is not looked at yet.
//
// With a refusal of step 2, and of a field that must not be there, the envelope
// holds what could be read, checked or not, so that the refusal can name it;
// where the bytes have no single reading the envelope is nil.
//
// The envelope refers to raw instead of copying it; raw must not be changed
// afterwards. Size is not limited here.
func Parse(raw []byte) (*Envelope, *Rejection) {
	raw = slices.Clip(bytes.Trim(raw, " \t\r\n"))
	if rej := checkStrict(raw); rej != nil {
		return nil, rej
	}
	var f fields
	e := &Envelope{Raw: raw}
	hashed := newContent(raw)
	for m := (members{buf: raw}); m.next(); {
		if m.depth >= maxDepth {
			return nil, malformed(StepParse, "nested deeper than 64 levels")
		}
		which, twin := f.take(&m)
		if twin != "" {
			return nil, twinRefusal(twin)
		}
		if which != fieldTS && which != fieldExpiresAt && which != fieldProof {
			hashed.keep(&m)
		}
	}
	hashed.sum(&e.Content)
	wrong := f.fill(e)
	about, twin := twinInBody(e.Kind, e.Body)
	if twin != "" {
		return nil, twinRefusal(twin)
	}
	e.subject = about
	if twin = twinInExt(e.Ext); twin != "" {
		return nil, twinRefusal(twin)
	}
	if rej := f.checkForbidden(); rej != nil {
		return e, rej
	}
	if rej := f.checkRequired(e); rej != nil {
		return e, rej
	}
	if wrong != nil {
		return e, wrong
	}
	return e, f.checkGrammar(e)
}

func twinRefusal(name string) *Rejection {
	return malformed(StepParse, "two keys of one object are "+name+" but for their case")
}

// checkStrict is the one strict pass over the bytes: exactly one JSON object,
// valid UTF-8, no lone surrogates, no duplicate names at any level.
func checkStrict(raw []byte) *Rejection {
	switch {
	case len(raw) == 0:
		return malformed(StepParse, "empty")
	case bytes.HasPrefix(raw, []byte("\xef\xbb\xbf")):
		return malformed(StepParse, "begins with a byte-order mark")
	case raw[0] != '{':
		return malformed(StepParse, "not a JSON object")
	case jsontext.Value(raw).IsValid():
		return nil
	}
	return malformed(StepParse, fault(raw))
}

// fault says what is wrong with text that is not valid, and where, without
// repeating any of it.
func fault(raw []byte) string {
	d := jsontext.NewDecoder(bytes.NewReader(raw))
	_, err := d.ReadValue()
	if err == nil {
		return fmt.Sprintf("something follows the object at byte %d", d.InputOffset())
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "not valid JSON: ends early"
	}
	what := "not valid JSON"
	if errors.Is(err, jsontext.ErrDuplicateName) {
		what = "a key stands twice in one object"
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Sprintf("%s at byte %d", what, syntax.ByteOffset)
	}
	return what
}
