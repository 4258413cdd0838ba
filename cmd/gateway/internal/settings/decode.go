package settings

import (
	"fmt"
	"reflect"

	"github.com/go-viper/mapstructure/v2"
)

// Decode checks a section against the struct that into points to and, when all
// of it fits, sets what the section says; what it leaves out keeps the value it
// has in into. On problems into is not changed.
func Decode(key string, section map[string]any, into any) []error {
	if problems := Check(key, section, reflect.TypeOf(into)); len(problems) > 0 {
		return problems
	}
	decoder, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
		Result:     into,
		TagName:    tagName,
		DecodeHook: mapstructure.StringToTimeDurationHookFunc(),
		MatchName:  func(mapKey, fieldName string) bool { return mapKey == fieldName },
	})
	if err != nil {
		return []error{fmt.Errorf("%s: %w", key, err)}
	}
	if err := decoder.Decode(section); err != nil {
		return []error{fmt.Errorf("%s: %w", key, err)}
	}
	return nil
}
