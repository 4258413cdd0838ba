package settings

import (
	"encoding"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Hidden stands where a secret was.
const Hidden = "(hidden)"

// urlKey is the key of an address.
const urlKey = "url"

// Render gives a configuration as YAML in the order of its fields. Lists that
// are absent, and so mean something else than empty ones, are left out, and so
// are choices that nobody made. The
// values of keys for which secret says so are hidden, as are the user and the
// password inside a URL, and what stands behind the host of an address.
func Render(v any, secret func(key string) bool) *yaml.Node {
	return renderer{secret}.value(reflect.ValueOf(v))
}

// Section puts named nodes into one mapping, in the order given.
func Section(entries ...Entry) *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, e := range entries {
		node.Content = append(node.Content, scalar(e.Key), e.Value)
	}
	return node
}

// Entry is one key of a Section.
type Entry struct {
	Key   string
	Value *yaml.Node
}

type renderer struct{ secret func(key string) bool }

func (r renderer) value(v reflect.Value) *yaml.Node {
	if m, ok := v.Interface().(encoding.TextMarshaler); ok && v.Kind() == reflect.String {
		// A type that writes itself, such as a secret that hides itself.
		text, err := m.MarshalText()
		if err != nil {
			return scalar(Hidden)
		}
		return scalar(string(text))
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return r.value(v.Elem())
	case reflect.Struct:
		return r.structure(v)
	case reflect.Map:
		return r.mapping(v)
	case reflect.Slice:
		if v.IsNil() {
			return nil
		}
		node := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for i := range v.Len() {
			if entry := r.value(v.Index(i)); entry != nil {
				node.Content = append(node.Content, entry)
			}
		}
		return node
	case reflect.String:
		if v.Len() == 0 && isChoice(v.Type()) {
			return nil
		}
		return scalar(HideCredentials(v.String()))
	default:
		if d, ok := v.Interface().(time.Duration); ok {
			return scalar(shortDuration(d))
		}
		return scalar(v.Interface())
	}
}

func (r renderer) structure(v reflect.Value) *yaml.Node {
	node := Section()
	for _, f := range fields(v.Type()) {
		r.add(node, f.key, v.FieldByIndex(f.index))
	}
	return node
}

func (r renderer) mapping(v reflect.Value) *yaml.Node {
	node := Section()
	names := v.MapKeys()
	slices.SortFunc(names, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, name := range names {
		r.add(node, name.String(), v.MapIndex(name))
	}
	if len(node.Content) == 0 {
		node.Style = yaml.FlowStyle
	}
	return node
}

func (r renderer) add(node *yaml.Node, key string, v reflect.Value) {
	value := r.value(v)
	if value == nil {
		return
	}
	if r.secret(key) {
		value = hide(value)
	}
	if key == urlKey && value.Kind == yaml.ScalarNode {
		value = scalar(HideURL(v.String()))
	}
	node.Content = append(node.Content, scalar(key), value)
}

// hide replaces every value that is not empty; names below a hidden key stay.
func hide(node *yaml.Node) *yaml.Node {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 1; i < len(node.Content); i += 2 {
			node.Content[i] = hide(node.Content[i])
		}
	case yaml.SequenceNode:
		for i := range node.Content {
			node.Content[i] = hide(node.Content[i])
		}
	default:
		if node.Value != "" {
			return scalar(Hidden)
		}
	}
	return node
}

func scalar(v any) *yaml.Node {
	node := &yaml.Node{}
	if err := node.Encode(v); err != nil {
		return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(v)}
	}
	return node
}

// inURL finds the credentials of a URL inside any text, and bare those of an
// address that leaves its scheme out.
var (
	inURL = regexp.MustCompile(`://[^/?#]*@`)
	bare  = regexp.MustCompile(`(^|,)[^/?#,]*@`)
)

// HideCredentials takes the user and the password out of every URL in a text.
func HideCredentials(text string) string {
	return inURL.ReplaceAllLiteralString(text, "://"+Hidden+"@")
}

// HideURL is HideCredentials for what is known to be a URL or a list of them,
// where the scheme may be left out. What stands behind the first host that has
// anything behind it is hidden as a whole: a token may be in the query, under any
// name, and the path of a webhook may be all that a caller has to know.
func HideURL(text string) string {
	hosts, behind := splitHosts(text)
	hosts = bare.ReplaceAllString(HideCredentials(hosts), "${1}"+Hidden+"@")
	if len(behind) > 1 {
		return hosts + behind[:1] + Hidden
	}
	return hosts + behind
}

// splitHosts cuts a list of addresses where the first path, query or fragment
// begins.
func splitHosts(text string) (hosts, behind string) {
	const scheme = "://"
	for i := 0; i < len(text); i++ {
		if strings.HasPrefix(text[i:], scheme) {
			i += len(scheme) - 1
		} else if strings.IndexByte("/?#", text[i]) >= 0 {
			return text[:i], text[i:]
		}
	}
	return text, ""
}

// shortDuration writes 5m for 5m0s and 720h for 720h0m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
