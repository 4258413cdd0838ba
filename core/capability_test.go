package core_test

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/core"
	"pgregory.net/rapid"
)

// The vectors of testdata/digest.json were computed by another implementation.
func TestDigestVectors(t *testing.T) {
	file, err := os.ReadFile("testdata/digest.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Name       string          `json:"name"`
		Capability json.RawMessage `json:"capability"`
		Digest     string          `json:"digest"`
	}
	if err := json.Unmarshal(file, &vectors); err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			got, err := core.CapabilityDigest(v.Capability)
			if err != nil || got != v.Digest {
				t.Errorf("digest %s, %v, want %s", got, err, v.Digest)
			}
			doc := strings.TrimSuffix(strings.TrimSpace(string(v.Capability)), "}") + `,"digest":"` + v.Digest + `"}`
			e := mustCheck(t, valid(core.KindCapability).set("body", `{"capability":`+doc+`}`).raw())
			if e.Capability.Digest != v.Digest || string(e.Capability.Raw) != doc {
				t.Errorf("capability %+v", e.Capability)
			}
		})
	}
}

func TestDigestIgnoresSpellingOrderAndUnknownMembers(t *testing.T) {
	want, err := core.CapabilityDigest([]byte(`{"id":"a","summary":"é","outcome":"o","requirements":["x","y"]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range []string{
		"\n{ \"outcome\":\"o\",\"summary\":\"\\u00e9\" , \"\\u0069d\":\" a \",\"requirements\":[\"y\",\"x\"]}\n",
		`{"id":"a","summary":"é","outcome":"o","requirements":["x","y"],"digest":"anything","more":{"id":1}}`,
		`{"id":"a","summary":"é","outcome":"o","version":" ","examples":[" "],"requirements":[" y","x "]}`,
	} {
		if got, err := core.CapabilityDigest([]byte(doc)); err != nil || got != want {
			t.Errorf("%s: %s, %v", doc, got, err)
		}
	}
}

func TestCapabilityBody(t *testing.T) {
	doc := func(members string) string { return `{"capability":{` + members + `}}` }
	const least = `"id":"a","summary":"s","outcome":"o"`
	digest, err := core.CapabilityDigest([]byte(`{` + least + `}`))
	if err != nil {
		t.Fatal(err)
	}
	signed := least + `,"digest":"` + digest + `"`
	failed := refusal{core.ReasonVerificationFailed, core.StepBody}
	cases := map[string]refusal{
		doc(signed):               ok,
		doc(signed + `,"more":1`): ok,
		doc(signed + `,"version":null,"examples":null`):            ok,
		doc(signed + `,"version":"1"`):                             failed,
		doc(signed + `,"requirements":["a"]`):                      failed,
		doc(least + `,"digest":"` + strings.ToUpper(digest) + `"`): failed,
		doc(least + `,"digest":" ` + digest + `"`):                 failed,
		doc(least + `,"digest":"x"`):                               failed,
		doc(least):                                                 badBody,
		doc(least + `,"digest":""`):                                badBody,
		doc(least + `,"digest":null`):                              badBody,
		doc(least + `,"digest":1`):                                 badBody,
		doc(`"summary":"s","outcome":"o","digest":"x"`):            badBody,
		doc(`"id":"a","outcome":"o","digest":"x"`):                 badBody,
		doc(`"id":"a","summary":"s","digest":"x"`):                 badBody,
		doc(`"id":" ","summary":"s","outcome":"o","digest":"x"`):   badBody,
		doc(`"id":"a","summary":"","outcome":"o","digest":"x"`):    badBody,
		doc(`"id":"a","summary":"s","outcome":1,"digest":"x"`):     badBody,
		doc(signed + `,"version":1`):                               badBody,
		doc(signed + `,"requirements":[""]`):                       badBody,
		doc(signed + `,"requirements":[" \t"]`):                    badBody,
		doc(signed + `,"requirements":["a"," a "]`):                badBody,
		`{}`:                  badBody,
		`{"capability":null}`: badBody,
		`{"capability":"x"}`:  badBody,
		`{"capability":[]}`:   badBody,
	}
	for _, list := range []string{
		"context_needed", "artifacts_expected", "execution_outline", "constraints", "examples", "requirements",
	} {
		cases[doc(signed+`,"`+list+`":"x"`)] = badBody
		cases[doc(signed+`,"`+list+`":[1]`)] = badBody
		cases[doc(signed+`,"`+list+`":[null]`)] = badBody
		cases[doc(signed+`,"`+list+`":{}`)] = badBody
		cases[doc(signed+`,"`+list+`":[]`)] = ok
	}
	for body, want := range cases {
		t.Run(body, func(t *testing.T) {
			_, rej := check(valid(core.KindCapability).set("body", body).raw())
			want.verify(t, rej)
		})
	}
}

func TestNoDigestOfWhatIsNoCapability(t *testing.T) {
	for _, doc := range []string{
		``, `[]`, `{}`, `{"id":"a","summary":"s"}`, `{"id":"a","id":"a","summary":"s","outcome":"o"}`,
		`{"id":"a","ID":"b","summary":"s","outcome":"o"}`, `{"id":"a","summary":"s","outcome":"o"}{}`,
		`{"id":"a","summary":"s","outcome":"o","requirements":["a","a"]}`,
	} {
		_, err := core.CapabilityDigest([]byte(doc))
		var rej *core.Rejection
		if !errors.As(err, &rej) || rej.Reason != core.ReasonMalformed {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

// Whatever the texts are, the digest is that of encoding/json's own spelling.
func TestDigestIsThatOfTheTrimmedDocument(t *testing.T) {
	text := rapid.StringMatching("[a-c<>&\"\\\\/\u2028\u00e9\b\f \t]*x")
	rapid.Check(t, func(t *rapid.T) {
		doc := map[string]any{
			"id": text.Draw(t, "id"), "summary": text.Draw(t, "summary"), "outcome": text.Draw(t, "outcome"),
			"constraints": rapid.SliceOf(text).Draw(t, "constraints"),
		}
		raw, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		want, err := core.CapabilityDigest(raw)
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range doc {
			if s, isText := v.(string); isText {
				doc[k] = " \u2003" + s + "\n"
			}
		}
		doc["constraints"] = slices.Insert(doc["constraints"].([]string), 0, "  ")
		padded, err := json.MarshalIndent(doc, " ", "\t")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := core.CapabilityDigest(padded); err != nil || got != want {
			t.Fatalf("%s: %s, %v, want %s", padded, got, err, want)
		}
	})
}
