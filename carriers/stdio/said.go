package stdio

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/compozy-gateway/gateway/core"
)

// control is what an agent says about the carrier.
type control struct {
	// ack is the id of an envelope that the agent has taken, and done that of a
	// wake that is over; empty where the line says something else.
	ack, done string
	// failed is true where the wake failed; why is then what the agent says of it,
	// empty where that is nothing.
	failed bool
	why    string
	// usage is nil where the agent gives none that can be read.
	usage *core.Usage
	// unread are the members that are there and cannot be read.
	unread []string
}

// parseControl reads a line of the form {"carrier":{...}} without other members.
// Whatever is not exactly that is not about the carrier, and is left to the
// intake, which refuses it. The cheap look at the first name comes first: an
// envelope does not begin with it.
func parseControl(data []byte) (control, bool) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(data))
	if _, err := dec.ReadToken(); err != nil {
		return control{}, false
	}
	if name, err := dec.ReadToken(); err != nil || name.Kind() != '"' || name.String() != "carrier" {
		return control{}, false
	}
	body, err := dec.ReadValue()
	if err != nil || body.Kind() != '{' {
		return control{}, false
	}
	body = bytes.Clone(body)
	if end, err := dec.ReadToken(); err != nil || end.Kind() != '}' {
		return control{}, false
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return control{}, false
	}
	c := control{ack: stringMember(body, "ack"), done: stringMember(body, "done")}
	if c.done != "" {
		c.readFailed(member(body, "failed"))
		c.readUsage(member(body, "usage"))
	}
	return c, true
}

// readFailed reads whether the wake failed. Whatever is neither absent, null nor
// false says that it did, an empty string and what is no string too.
func (c *control) readFailed(value jsontext.Value) {
	switch {
	case value == nil || string(value) == "null" || string(value) == "false":
	case json.Unmarshal(value, &c.why) == nil:
		c.failed, c.why = true, strings.TrimSpace(c.why)
	default:
		c.failed = true
		c.unread = append(c.unread, "failed")
	}
}

// readUsage reads both counts, or nothing.
func (c *control) readUsage(value jsontext.Value) {
	if value == nil || string(value) == "null" {
		return
	}
	var u struct {
		InputTokens  *int64 `json:"input_tokens"`
		OutputTokens *int64 `json:"output_tokens"`
	}
	if json.Unmarshal(value, &u) != nil || u.InputTokens == nil || u.OutputTokens == nil ||
		*u.InputTokens < 0 || *u.OutputTokens < 0 {
		c.unread = append(c.unread, "usage")
		return
	}
	c.usage = &core.Usage{InputTokens: *u.InputTokens, OutputTokens: *u.OutputTokens}
}

// stringMember gives the string member of the name, empty where there is none.
func stringMember(object jsontext.Value, name string) string {
	value := member(object, name)
	if value.Kind() != '"' {
		return ""
	}
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return ""
	}
	return string(text)
}

// member gives the value of the first member of the name, nil where there is
// none. Names are compared exactly.
func member(object jsontext.Value, name string) jsontext.Value {
	dec := jsontext.NewDecoder(bytes.NewBuffer(object))
	if _, err := dec.ReadToken(); err != nil {
		return nil
	}
	for dec.PeekKind() == '"' {
		key, err := dec.ReadToken()
		if err != nil {
			return nil
		}
		found := key.String() == name
		value, err := dec.ReadValue()
		if err != nil {
			return nil
		}
		if found {
			return bytes.Clone(value)
		}
	}
	return nil
}
