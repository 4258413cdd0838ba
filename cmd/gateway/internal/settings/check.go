package settings

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Check compares a value, as a YAML parser gives it, with the shape of t. It
// returns every problem, each beginning with the full key.
func Check(key string, value any, t reflect.Type) []error { return check(key, value, t, nil) }

// place is a section with keys: what it is called, and its shape.
type place struct {
	key   string
	shape reflect.Type
}

// check is Check inside the places above, the outermost first.
func check(key string, value any, t reflect.Type, above []place) []error {
	t = indirect(t)
	if value == nil {
		return problem(key, "has no value; leave the key out to get its default")
	}
	switch {
	case t.Kind() == reflect.Interface:
		return nil
	case t == durationType:
		return checkDuration(key, value)
	}
	switch t.Kind() {
	case reflect.Struct:
		return checkStruct(key, value, t, above)
	case reflect.Map:
		return checkMap(key, value, t.Elem(), above)
	case reflect.Slice:
		return checkList(key, value, t.Elem(), above)
	default:
		return checkScalar(key, value, t)
	}
}

func problem(key, format string, args ...any) []error {
	return []error{fmt.Errorf("%s: %s", key, fmt.Sprintf(format, args...))}
}

func checkStruct(key string, value any, t reflect.Type, above []place) []error {
	section, ok := value.(map[string]any)
	if !ok {
		return problem(key, "must be a section with keys (%s), not %s", strings.Join(keys(t), ", "), describe(value))
	}
	var problems []error
	within := append(slices.Clip(above), place{key, t})
	for _, name := range Names(section) {
		below := child(t, name)
		if below == nil {
			problems = append(problems, unknown(name, within))
			continue
		}
		problems = append(problems, check(join(key, name), section[name], below, within)...)
	}
	return problems
}

// unknown reports a key that does not exist in the last of the places: with the
// one of the same name in a place above, where there is one, else with the
// nearest that does exist.
func unknown(name string, within []place) error {
	here := within[len(within)-1]
	full := join(here.key, name)
	for _, p := range slices.Backward(within) {
		if child(p.shape, name) != nil {
			return fmt.Errorf("%s: unknown key; it belongs further up: %s", full, join(p.key, name))
		}
	}
	if near := Nearest(name, keys(here.shape)); near != "" {
		return fmt.Errorf("%s: unknown key; the nearest valid one is %s", full, join(here.key, near))
	}
	return fmt.Errorf("%s: unknown key", full)
}

func checkMap(key string, value any, elem reflect.Type, above []place) []error {
	section, ok := value.(map[string]any)
	if !ok {
		return problem(key, "must be a section of names, not %s", describe(value))
	}
	var problems []error
	for _, name := range Names(section) {
		problems = append(problems, check(join(key, name), section[name], elem, above)...)
	}
	return problems
}

func checkList(key string, value any, elem reflect.Type, above []place) []error {
	list, ok := value.([]any)
	if !ok {
		return problem(key, "must be a list, not %s", describe(value))
	}
	var problems []error
	for i, entry := range list {
		problems = append(problems, check(fmt.Sprintf("%s[%d]", key, i), entry, elem, above)...)
	}
	return problems
}

func checkDuration(key string, value any) []error {
	text, ok := value.(string)
	if !ok {
		return problem(key, "must be a duration with its unit, such as 90s, 5m or 24h, not %s", describe(value))
	}
	if _, err := time.ParseDuration(text); err != nil {
		return problem(key, "%q is not a duration; write one with its unit, such as 90s, 5m or 24h", text)
	}
	return nil
}

func checkScalar(key string, value any, t reflect.Type) []error {
	v := reflect.ValueOf(value)
	fits, want := false, ""
	switch {
	case t.Kind() == reflect.String:
		fits, want = v.Kind() == reflect.String, "text (quote it if it looks like something else)"
	case t.Kind() == reflect.Bool:
		fits, want = v.Kind() == reflect.Bool, "true or false"
	case v.CanInt() && t.ConvertibleTo(v.Type()) && isInteger(t):
		fits, want = !overflows(v.Int(), t), "a whole number in range"
	case isInteger(t):
		want = "a whole number"
	default:
		fits, want = v.CanFloat() || v.CanInt(), "a number"
	}
	switch {
	case !fits:
		return problem(key, "must be %s, not %s", want, describe(value))
	case isChoice(t) && v.Len() == 0:
		return problem(key, "is empty; leave the key out to get its default")
	}
	return nil
}

func isInteger(t reflect.Type) bool {
	return t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64
}

func overflows(n int64, t reflect.Type) bool {
	if t.Kind() >= reflect.Uint {
		return n < 0 || t.OverflowUint(uint64(n))
	}
	return t.OverflowInt(n)
}

// describe names a value for a message: short, and only scalars are repeated.
func describe(value any) string {
	switch v := value.(type) {
	case nil:
		return "nothing"
	case map[string]any:
		return "a section"
	case []any:
		return "a list"
	case string:
		return "text"
	default:
		return fmt.Sprintf("%v", v)
	}
}

// Names lists the names of a section in order.
func Names[V any](section map[string]V) []string {
	return slices.Sorted(maps.Keys(section))
}
