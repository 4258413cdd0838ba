package settings

import (
	"encoding"
	"reflect"
	"strings"
	"time"
)

// tagName is the struct tag that names a key.
const tagName = "koanf"

var durationType = reflect.TypeFor[time.Duration]()

// field is one key of a struct.
type field struct {
	key   string
	typ   reflect.Type
	index []int
}

// fields lists the keys of a struct in the order of its fields; embedded
// structs tagged as squashed lend theirs.
func fields(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		sf := t.Field(i)
		name, options, _ := strings.Cut(sf.Tag.Get(tagName), ",")
		switch {
		case options == "squash":
			for _, inner := range fields(sf.Type) {
				inner.index = append([]int{i}, inner.index...)
				out = append(out, inner)
			}
		case name != "" && name != "-" && sf.IsExported():
			out = append(out, field{key: name, typ: sf.Type, index: []int{i}})
		}
	}
	return out
}

// child is the type of what lies below key in a value of type t. It is nil when
// t has no such key.
func child(t reflect.Type, key string) reflect.Type {
	switch t = indirect(t); t.Kind() {
	case reflect.Struct:
		for _, f := range fields(t) {
			if f.key == key {
				return f.typ
			}
		}
	case reflect.Map:
		return t.Elem()
	case reflect.Interface:
		return t
	}
	return nil
}

// keys lists the keys that a struct of type t has; none for other types.
func keys(t reflect.Type) []string {
	if t = indirect(t); t.Kind() != reflect.Struct {
		return nil
	}
	var out []string
	for _, f := range fields(t) {
		out = append(out, f.key)
	}
	return out
}

func indirect(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// isChoice reports whether a type is one of a few words: a string type of its own
// that does not write itself, as a secret does. Empty it stands for its default,
// and is not written.
func isChoice(t reflect.Type) bool {
	return t.Kind() == reflect.String && t != reflect.TypeFor[string]() && !t.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

// join puts a key below another.
func join(parent, key string) string {
	if parent == "" {
		return key
	}
	return parent + "." + key
}
