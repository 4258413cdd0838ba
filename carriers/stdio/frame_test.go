package stdio

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

func FuzzLinesAreWhatStandsBetweenLineFeeds(f *testing.F) {
	f.Add([]byte(""), uint8(10))
	f.Add([]byte("\n\na\nbb\nccc"), uint8(2))
	f.Add(bytes.Repeat([]byte("x"), 3*readBuffer), uint8(200))
	f.Add(append(bytes.Repeat([]byte("x"), readBuffer), "\nyz\n"...), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, most uint8) {
		limit := int(most) + 1
		r := newLineReader(iotest.HalfReader(bytes.NewReader(data)), limit)
		want := bytes.Split(data, []byte{'\n'})
		for i, text := range want {
			got, err := r.next()
			if last := i == len(want)-1; errors.Is(err, io.EOF) != last || err != nil && !last {
				t.Fatalf("line %d: error %v", i, err)
			}
			if got.size != int64(len(text)) || !bytes.Equal(got.data, text[:min(limit, len(text))]) {
				t.Fatalf("line %d is %d bytes %q, want %d bytes %q", i, got.size, got.data, len(text), text)
			}
			if got.cut() != (len(text) > limit) {
				t.Fatalf("line %d: cut is %v", i, got.cut())
			}
		}
	})
}

func FuzzOnlyCarrierObjectsAreControlLines(f *testing.F) {
	for _, seed := range []string{
		`{"carrier":{"ack":"a"}}`, ` {"carrier" : {} } `, `{"carrier":{"ack":"a","ack":"b"}}`, `{"carrier":{}}{}`,
		`{"carrier":{"nack":null}}`, `{"carrier":{"ack":7}}`, `{"Carrier":{"ack":"a"}}`, `{"carrier":[]}`, `{"id":"a"}`,
		`{"carrier":{"ack":"\ud83d\ude00"}}`, `{"carrier":{"x":{"ack":"no"},"ack":"yes"}}`, "\ufeff{}", "banner", "", `{`,
		`{"carri\u0065r":{"ack":"a"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		data = bytes.ReplaceAll(data, []byte{'\n'}, nil)
		text, kind, said := classify(bytes.Clone(data))
		var frame map[string]json.RawMessage
		object := json.Unmarshal(text, &frame) == nil && frame != nil
		switch kind {
		case lineControl:
			var body map[string]json.RawMessage
			if !object || len(frame) != 1 || json.Unmarshal(frame["carrier"], &body) != nil || body == nil {
				t.Fatalf("taken for a control line: %q", data)
			}
			var id string
			if said.ack != "" && (json.Unmarshal(body["ack"], &id) != nil || id != said.ack) {
				t.Fatalf("acknowledges %q: %q", said.ack, data)
			}
		case lineNoise, lineBlank:
			if object {
				t.Fatalf("an object was taken for noise: %q", data)
			}
		case lineEnvelope:
		}
	})
}
