package settings

import (
	"fmt"
	"reflect"
	"slices"
)

// Text is a value of the configuration that is a text, with its full key.
type Text struct{ Key, Value string }

// Texts finds the texts below a section that stand under one of the names, in the
// order of the fields and, in named sections, of the names.
func Texts(key string, section any, names []string) []Text {
	return texts(key, "", reflect.ValueOf(section), names)
}

func texts(key, name string, v reflect.Value, names []string) []Text {
	var found []Text
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return texts(key, name, v.Elem(), names)
		}
	case reflect.String:
		if slices.Contains(names, name) {
			found = append(found, Text{Key: key, Value: v.String()})
		}
	case reflect.Struct:
		for _, f := range fields(v.Type()) {
			found = append(found, texts(join(key, f.key), f.key, v.FieldByIndex(f.index), names)...)
		}
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String {
			return nil
		}
		byName := map[string]reflect.Value{}
		for _, k := range v.MapKeys() {
			byName[k.String()] = v.MapIndex(k)
		}
		for _, k := range Names(byName) {
			found = append(found, texts(join(key, k), k, byName[k], names)...)
		}
	case reflect.Slice:
		for i := range v.Len() {
			found = append(found, texts(fmt.Sprintf("%s[%d]", key, i), name, v.Index(i), names)...)
		}
	}
	return found
}
