package settings

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Resolve finds the key that a path of words means in a configuration of type
// t. Words match keys whatever their case. Where a section has names of the
// user's own, a name that is in current is matched likewise, and a new one is
// taken in lower case. It returns the path and the type of its value; ok is
// false when there is no such key.
func Resolve(t reflect.Type, current map[string]any, words []string) (path []string, value reflect.Type, ok bool) {
	value = t
	for _, word := range words {
		if word == "" {
			return nil, nil, false
		}
		candidates := keys(value)
		if k := indirect(value).Kind(); k == reflect.Map || k == reflect.Interface {
			candidates = append(Names(current), strings.ToLower(word))
		}
		name, found := match(word, candidates)
		if !found {
			return nil, nil, false
		}
		path = append(path, name)
		value = child(value, name)
		current, _ = current[name].(map[string]any)
		if value == nil {
			return nil, nil, false
		}
	}
	return path, value, len(path) > 0
}

func match(word string, candidates []string) (string, bool) {
	for _, c := range candidates {
		if strings.EqualFold(word, c) {
			return c, true
		}
	}
	return "", false
}

// Coerce turns the text of an environment variable into a value as a YAML
// parser would give it for type t. Text and durations are taken as they are. A
// list is written with commas or as YAML, a section as YAML.
func Coerce(text string, t reflect.Type) (any, error) {
	t = indirect(t)
	if t == durationType {
		return text, nil
	}
	switch t.Kind() {
	case reflect.String:
		return text, nil
	case reflect.Bool:
		v, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("%q is neither true nor false", text)
		}
		return v, nil
	case reflect.Slice:
		if !strings.HasPrefix(strings.TrimSpace(text), "[") && t.Elem().Kind() == reflect.String {
			return splitList(text), nil
		}
	}
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		return nil, fmt.Errorf("cannot be read as YAML: %w", err)
	}
	return v, nil
}

func splitList(text string) []any {
	list := []any{}
	for entry := range strings.SplitSeq(text, ",") {
		if entry = strings.TrimSpace(entry); entry != "" {
			list = append(list, entry)
		}
	}
	return list
}
