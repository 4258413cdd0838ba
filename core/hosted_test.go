package core

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func hosted(catalogue bool) *HostedPeer {
	h := &HostedPeer{
		Attachment:  Attachment{WorkspaceID: "ws", Channel: "ops", Peer: "bot"},
		DisplayName: "The Bot", ProfilesSupported: []string{Protocol}, ArtifactsSupported: []string{"capability"}, TrustModes: []string{"none"},
	}
	if catalogue {
		h.Catalogue = []Capability{
			{ID: "sort", Summary: "Sorts.", Outcome: "Sorted.", Requirements: []string{"b", "a"}},
			{ID: "add", Summary: "Adds.", Outcome: "A sum.", Version: "1.0.0"},
		}
	}
	return h
}

// valid parses and validates what was built, as any receiver would.
func valid(t *testing.T, raw []byte, err error) *Envelope {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	env, rej := Parse(raw)
	if rej == nil {
		rej = env.Validate(time.Unix(1_800_000_000, 0), FreshnessPolicy{MaxReplayAge: time.Minute, MaxLifetime: time.Hour}, nil)
	}
	if rej != nil {
		t.Fatalf("%v\n%s", rej, raw)
	}
	return env
}

func whois(t *testing.T, to, query, ext string) *Envelope {
	t.Helper()
	directed := ""
	if to != "" {
		directed = `"to":"` + to + `",`
	}
	raw := `{"protocol":"compozy-network/v0","id":"q1","workspace_id":"ws","kind":"whois","channel":"ops","from":"ann",` + directed +
		`"ts":1800000000,"body":{"type":"request","query":"` + query + `"},"ext":` + ext + `}`
	return valid(t, []byte(raw), nil)
}

func TestAGreetCarriesTheCard(t *testing.T) {
	for _, catalogue := range []bool{false, true} {
		raw, err := hosted(catalogue).Greet("g1", time.Unix(1_800_000_000, 0))
		env := valid(t, raw, err)
		if env.Kind != KindGreet || env.From != "bot" || env.To != "" || env.Card.PeerID != "bot" {
			t.Fatalf("greet %s", raw)
		}
		brief := strings.Contains(string(raw), `"compozy.capabilities_brief":[{"id":"sort","summary":"Sorts."},{"id":"add","summary":"Adds."}]`)
		if brief != catalogue {
			t.Fatalf("with a catalogue %v: %s", catalogue, raw)
		}
		if !catalogue && !strings.Contains(string(raw), `"capabilities":[]`) {
			t.Fatalf("without a catalogue capabilities is not []: %s", raw)
		}
	}
}

func TestWhoIsAsked(t *testing.T) {
	cases := []struct {
		name      string
		to, query string
		want      bool
	}{
		{"an empty query", "", "", true},
		{"the peer id", "", "bot", true},
		{"the display name", "", "The Bot", true},
		{"a capability", "", "add", true},
		{"a profile", "", Protocol, true},
		{"an artifact type", "", "capability", true},
		{"a trust mode", "", "none", true},
		{"something else", "", "Bot", false},
		{"directed, whatever the query says", "bot", "nothing of it", true},
		{"directed to another", "cat", "bot", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := hosted(true).Asked(whois(t, c.to, c.query, "null")); got != c.want {
				t.Fatalf("asked %v, want %v", got, c.want)
			}
		})
	}
	answer, err := hosted(true).Answer(whois(t, "bot", "", "null"), time.Unix(1_800_000_000, 0))
	if hosted(true).Asked(valid(t, answer, err)) {
		t.Fatal("a response was taken for a request")
	}
}

func TestTheCatalogueIsGivenWhenAskedFor(t *testing.T) {
	cases := []struct {
		name      string
		catalogue bool
		ext       string
		// want are the ids in order; nil means that there is no catalogue at all.
		want []string
	}{
		{"not asked", true, "null", nil},
		{"another include", true, `{"compozy.include":["weather"]}`, nil},
		{"ids without include", true, `{"compozy.capability_ids":["add"]}`, nil},
		{"asked", true, `{"compozy.include":["weather","capability_catalog"]}`, []string{"sort", "add"}},
		{"narrowed, in catalogue order", true, `{"compozy.include":["capability_catalog"],"compozy.capability_ids":["add","sort","x"]}`, []string{"sort", "add"}},
		{"narrowed to one", true, `{"compozy.include":["capability_catalog"],"compozy.capability_ids":["add"]}`, []string{"add"}},
		{"narrowed to nothing", true, `{"compozy.include":["capability_catalog"],"compozy.capability_ids":["x"]}`, []string{}},
		{"narrowed by what cannot be read", true, `{"compozy.include":["capability_catalog"],"compozy.capability_ids":"add"}`, []string{}},
		{"no catalogue", false, `{"compozy.include":["capability_catalog"]}`, []string{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			raw, err := hosted(c.catalogue).Answer(whois(t, "bot", "", c.ext), time.Unix(1_800_000_000, 0))
			env := valid(t, raw, err)
			if env.To != "ann" || env.ReplyTo != "q1" || env.Whois.Type != WhoisResponse {
				t.Fatalf("answer %s", raw)
			}
			var got struct {
				Ext map[string]struct {
					Capabilities []struct{ ID, Summary, Outcome, Digest string }
				}
			}
			if err := json.Unmarshal(raw, &got); err != nil {
				t.Fatal(err)
			}
			list, there := got.Ext["compozy.capability_catalog"]
			if there != (c.want != nil) || len(list.Capabilities) != len(c.want) {
				t.Fatalf("catalogue %+v, want %v", list, c.want)
			}
			for i, entry := range list.Capabilities {
				if entry.ID != c.want[i] {
					t.Fatalf("entry %d is %s, want %s", i, entry.ID, c.want[i])
				}
				document, _ := json.Marshal(map[string]any{"id": entry.ID, "summary": entry.Summary, "outcome": entry.Outcome})
				if entry.ID == "sort" {
					continue
				}
				if digest, _ := CapabilityDigest([]byte(strings.Replace(string(document), "}", `,"version":"1.0.0"}`, 1))); digest != entry.Digest {
					t.Fatalf("digest %s is not that of the transferred document, %s", entry.Digest, digest)
				}
			}
			if strings.Contains(string(env.Card.Raw), "compozy.capability_catalog") {
				t.Fatal("the catalogue stands in the card")
			}
		})
	}
}

func TestARepeatedAnswerIsTheSameMessage(t *testing.T) {
	request := whois(t, "", "", "null")
	a, _ := hosted(true).Answer(request, time.Unix(1_800_000_000, 0))
	b, _ := hosted(true).Answer(request, time.Unix(1_800_000_050, 0))
	first, second := valid(t, a, nil), valid(t, b, nil)
	if first.ID != second.ID || first.Content != second.Content {
		t.Fatalf("%s\n%s", a, b)
	}
}
