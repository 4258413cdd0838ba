package settings

import (
	"fmt"
	"reflect"

	"github.com/go-viper/mapstructure/v2"
)

// Decode checks a section against the struct that into points to and sets what
// the section says and fits; what it leaves out, and what a problem is found
// with, keeps the value it has in into. So what fits can still be judged by its
// meaning, and all problems be told at once.
func Decode(key string, section map[string]any, into any) []error {
	shape := reflect.TypeOf(into)
	problems := Check(key, section, shape)
	fits, ok := fitting(section, shape)
	if !ok {
		return problems
	}
	decoder, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
		Result:     into,
		TagName:    tagName,
		DecodeHook: mapstructure.StringToTimeDurationHookFunc(),
		MatchName:  func(mapKey, fieldName string) bool { return mapKey == fieldName },
	})
	if err == nil {
		err = decoder.Decode(fits)
	}
	if err != nil {
		problems = append(problems, fmt.Errorf("%s: %w", key, err))
	}
	return problems
}

// fitting is what is left of a value without that which Check finds a problem
// with. It reports false when that is nothing. A list fits as a whole or not at
// all, for its entries are known by their places.
func fitting(value any, t reflect.Type) (any, bool) {
	t = indirect(t)
	section, ok := value.(map[string]any)
	if !ok || t.Kind() != reflect.Struct && t.Kind() != reflect.Map {
		return value, len(Check("", value, t)) == 0
	}
	kept := map[string]any{}
	for name, below := range section {
		shape := child(t, name)
		if shape == nil {
			continue
		}
		if fits, ok := fitting(below, shape); ok {
			kept[name] = fits
		}
	}
	return kept, true
}
