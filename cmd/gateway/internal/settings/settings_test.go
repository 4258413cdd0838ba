package settings

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
)

type inner struct {
	Names []string `koanf:"names"`
	Wait  time.Duration
}

type mode string

type sample struct {
	inner   `koanf:",squash"`
	Title   string           `koanf:"title"`
	Mode    mode             `koanf:"mode"`
	Wait    time.Duration    `koanf:"wait"`
	Count   int              `koanf:"count"`
	Small   int8             `koanf:"small"`
	Ratio   float64          `koanf:"ratio"`
	On      bool             `koanf:"on"`
	Below   below            `koanf:"below"`
	Things  map[string]below `koanf:"things"`
	Free    map[string]any   `koanf:"free"`
	Bound   *int             `koanf:"bound"`
	private int              `koanf:"private"` //nolint:unused // It is there to be refused as a key.
}

type below struct {
	URL   string   `koanf:"url"`
	Lists [][]int  `koanf:"lists"`
	Peers []string `koanf:"peers"`
}

func section(t *testing.T, text string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("the test's own YAML: %v", err)
	}
	return v
}

func TestDecodeSetsWhatIsSaidAndKeepsTheRest(t *testing.T) {
	s := sample{Title: "kept", Wait: time.Minute, Below: below{URL: "kept", Peers: []string{"kept"}}}
	problems := Decode("", section(t, `
names: [a, b]
mode: fast
count: 7
small: -3
ratio: 2
on: true
below: {lists: [[1], [2, 3]]}
things: {one: {url: x, peers: []}}
free: {any: [1, {b: c}]}
bound: 5
`), &s)
	if len(problems) > 0 {
		t.Fatalf("problems: %v", problems)
	}
	if s.Title != "kept" || s.Wait != time.Minute || s.Below.URL != "kept" || !slices.Equal(s.Below.Peers, []string{"kept"}) {
		t.Errorf("what was left out changed: %+v", s)
	}
	if !slices.Equal(s.Names, []string{"a", "b"}) || s.Mode != "fast" || s.Count != 7 || s.Small != -3 || s.Ratio != 2 || !s.On {
		t.Errorf("what was said is not there: %+v", s)
	}
	if !reflect.DeepEqual(s.Below.Lists, [][]int{{1}, {2, 3}}) || s.Bound == nil || *s.Bound != 5 {
		t.Errorf("nested values: %+v", s)
	}
	if peers := s.Things["one"].Peers; peers == nil || len(peers) != 0 {
		t.Errorf("an empty list must stay apart from an absent one, got %#v", peers)
	}
}

func TestDecodeNamesEveryProblemWithItsKey(t *testing.T) {
	cases := []struct {
		name, yaml, key, says string
	}{
		{"unknown key", "tittle: x", "tittle", "nearest valid one is title"},
		{"unknown nested key", "below: {ulr: x}", "below.ulr", "nearest valid one is below.url"},
		{"unknown key in a named section", "things: {one: {pears: []}}", "things.one.pears", "nearest valid one is things.one.peers"},
		{"key of a section above", "below: {count: 1}", "below.count", "it belongs further up: count"},
		{"key of a section above a named one", "things: {one: {on: true}}", "things.one.on", "it belongs further up: on"},
		{"choice of nothing", `mode: ""`, "mode", "is empty; leave the key out"},
		{"number for text", "title: 5", "title", "must be text"},
		{"text for a number", `count: "5"`, "count", "must be a whole number"},
		{"fraction for a whole number", "count: 1.5", "count", "must be a whole number"},
		{"exponent for a whole number", "count: 1e3", "count", "must be a whole number"},
		{"out of range", "small: 300", "small", "in range"},
		{"text for a switch", `on: "yes"`, "on", "must be true or false"},
		{"number for a duration", "wait: 5", "wait", "must be a duration"},
		{"duration without unit", `wait: "5"`, "wait", "is not a duration"},
		{"text for a list", "names: a", "names", "must be a list"},
		{"number in a list of text", "names: [a, 2]", "names[1]", "must be text"},
		{"list for a section", "below: [a]", "below", "must be a section"},
		{"text for named sections", "things: a", "things", "must be a section"},
		{"nothing", "below:", "below", "has no value"},
		{"nothing in a section of lists", "below: {peers: }", "below.peers", "has no value"},
		{"text for a number below a pointer", "bound: many", "bound", "must be a whole number"},
		{"unexported field", "private: 1", "private", "unknown key"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, before := sample{Title: "kept"}, sample{Title: "kept"}
			problems := Decode("", section(t, c.yaml), &s)
			if len(problems) != 1 {
				t.Fatalf("want one problem, got %v", problems)
			}
			text := problems[0].Error()
			if !strings.HasPrefix(text, c.key+": ") || !strings.Contains(text, c.says) {
				t.Errorf("got %q, want the key %q and %q", text, c.key, c.says)
			}
			s.Things = nil // A section of names keeps its names.
			if !reflect.DeepEqual(s, before) {
				t.Errorf("a refused value changed the configuration: %+v", s)
			}
		})
	}
}

func TestDecodeReportsAllProblemsAtOnce(t *testing.T) {
	problems := Decode("root", section(t, "title: 1\nwait: x\nbelow: {url: 2, nope: 3}\n"), &sample{})
	if len(problems) != 4 {
		t.Fatalf("want 4 problems, got %v", problems)
	}
	for _, p := range problems {
		if !strings.HasPrefix(p.Error(), "root.") {
			t.Errorf("%q does not begin with the key it was read under", p)
		}
	}
}

func TestDecodeSetsWhatFitsBesideWhatDoesNot(t *testing.T) {
	s := sample{Title: "kept", Below: below{Peers: []string{"kept"}}}
	problems := Decode("", section(t, `
title: 5
count: 7
below: {url: x, peers: [a, 2], nope: 1}
things: {good: {url: y}, bad: 3}
`), &s)
	if len(problems) != 4 {
		t.Errorf("want 4 problems, got %v", problems)
	}
	if s.Title != "kept" || s.Count != 7 || s.Below.URL != "x" || !slices.Equal(s.Below.Peers, []string{"kept"}) ||
		len(s.Things) != 1 || s.Things["good"].URL != "y" {
		t.Errorf("got %+v", s)
	}
}

func TestNearestTakesTheFewestEdits(t *testing.T) {
	cases := []struct {
		word, want string
		candidates []string
	}{
		{"listn", "listen", []string{"enabled", "listen", "jetstream"}},
		{"data-dir", "data_dir", []string{"name", "data_dir"}},
		{"", "a", []string{"abc", "a"}},
		{"x", "", nil},
	}
	for _, c := range cases {
		if got := Nearest(c.word, c.candidates); got != c.want {
			t.Errorf("Nearest(%q) = %q, want %q", c.word, got, c.want)
		}
	}
}

func TestResolveFindsKeysWhateverTheirCase(t *testing.T) {
	current := map[string]any{"things": map[string]any{"myThing": map[string]any{}}}
	cases := []struct {
		words string
		path  string
		ok    bool
	}{
		{"TITLE", "title", true},
		{"BELOW/URL", "below/url", true},
		{"THINGS/MYTHING/URL", "things/myThing/url", true},
		{"THINGS/OTHER/URL", "things/other/url", true},
		{"FREE/X/Y", "free/x/y", true},
		{"NOPE", "", false},
		{"TITLE/MORE", "", false},
		{"BELOW//URL", "", false},
		{"", "", false},
	}
	for _, c := range cases {
		path, _, ok := Resolve(reflect.TypeFor[sample](), current, strings.Split(c.words, "/"))
		if ok != c.ok || ok && strings.Join(path, "/") != c.path {
			t.Errorf("Resolve(%s) = %v, %v; want %s, %v", c.words, path, ok, c.path, c.ok)
		}
	}
}

func TestCoerceReadsTextByTheShapeOfTheKey(t *testing.T) {
	cases := []struct {
		text  string
		shape reflect.Type
		want  any
	}{
		{"5", reflect.TypeFor[string](), "5"},
		{"true", reflect.TypeFor[mode](), "true"},
		{"5m", reflect.TypeFor[time.Duration](), "5m"},
		{"5", reflect.TypeFor[int](), 5},
		{"1", reflect.TypeFor[bool](), true},
		{"a, b,", reflect.TypeFor[[]string](), []any{"a", "b"}},
		{"", reflect.TypeFor[[]string](), []any{}},
		{"[a, 'b,c']", reflect.TypeFor[[]string](), []any{"a", "b,c"}},
		{"{url: x}", reflect.TypeFor[below](), map[string]any{"url": "x"}},
		{"7", reflect.TypeFor[*int](), 7},
	}
	for _, c := range cases {
		got, err := Coerce(c.text, c.shape)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("Coerce(%q, %s) = %#v, %v; want %#v", c.text, c.shape, got, err, c.want)
		}
	}
	for _, c := range []struct {
		text  string
		shape reflect.Type
	}{{"maybe", reflect.TypeFor[bool]()}, {"{", reflect.TypeFor[below]()}} {
		if got, err := Coerce(c.text, c.shape); err == nil {
			t.Errorf("Coerce(%q, %s) = %#v, want an error", c.text, c.shape, got)
		}
	}
}

type shy string

func (shy) MarshalText() ([]byte, error) { return []byte("shy"), nil }

func TestRenderKeepsOrderAndHidesSecrets(t *testing.T) {
	type leaf struct {
		URL      string         `koanf:"url"`
		Password string         `koanf:"password"`
		Empty    string         `koanf:"empty"`
		Absent   []string       `koanf:"absent"`
		Choice   mode           `koanf:"choice"`
		None     []string       `koanf:"none"`
		Wait     time.Duration  `koanf:"wait"`
		Env      map[string]shy `koanf:"env"`
		Servers  []string       `koanf:"servers"`
	}
	node := Render(leaf{
		URL: "u:pass@one,nats://u:pass@two", Password: "pass", None: []string{}, Wait: 90 * time.Minute,
		Env: map[string]shy{"B": "pass", "A": "pass"}, Servers: []string{"tcp://u:pass@three/x@y"},
	}, func(key string) bool { return key == "password" })
	text, err := yaml.Marshal(node)
	if err != nil {
		t.Fatal(err)
	}
	want := `url: (hidden)@one,nats://(hidden)@two
password: (hidden)
empty: ""
none: []
wait: 1h30m
env:
    A: shy
    B: shy
servers: ['tcp://(hidden)@three/x@y']
`
	if string(text) != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

func TestAddressesAreShownWithoutWhatMayBeASecret(t *testing.T) {
	for _, tt := range []struct{ url, shown string }{
		{"tcp://127.0.0.1:1883", "tcp://127.0.0.1:1883"},
		{"tcp://user:secret@host:1883", "tcp://(hidden)@host:1883"},
		{"user:secret@host:4222,nats://token@other:4222", "(hidden)@host:4222,nats://(hidden)@other:4222"},
		{"wss://host/mqtt?token=secret", "wss://host/(hidden)"},
		{"https://host:8443/hooks/secret", "https://host:8443/(hidden)"},
		{"https://host/secret@x/secret,secret://secret", "https://host/(hidden)"},
		{"https://u:secret@host/hooks/secret", "https://(hidden)@host/(hidden)"},
		{"http://127.0.0.1:9000/", "http://127.0.0.1:9000/"},
		{"host/secret,nats://other/secret", "host/(hidden)"},
		{"nats://a,nats://b/secret", "nats://a,nats://b/(hidden)"},
		{"wss://u:secret@host?secret", "wss://(hidden)@host?(hidden)"},
		{"ws://a?x=se,cret&y=secret#secret,ws://b?z=secret", "ws://a?(hidden)"},
	} {
		if got := HideURL(tt.url); got != tt.shown {
			t.Errorf("%s is shown as %s, want %s", tt.url, got, tt.shown)
		}
	}
}

func TestShortDurationsAreReadBackAsTheyWere(t *testing.T) {
	for _, d := range []time.Duration{0, time.Millisecond, 90 * time.Second, 5 * time.Minute, 100 * time.Minute, 720 * time.Hour, 61 * time.Second} {
		got, err := time.ParseDuration(shortDuration(d))
		if err != nil || got != d {
			t.Errorf("%s was written as %s: %v, %v", d, shortDuration(d), got, err)
		}
	}
}
