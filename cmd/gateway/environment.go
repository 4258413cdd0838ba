package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/compozy-gateway/gateway/cmd/gateway/internal/settings"
	"github.com/knadh/koanf/v2"
)

const (
	environPrefix = "GATEWAY_"
	// environLevel stands between the levels of a key in a variable's name.
	environLevel = "__"
)

// loadEnvironment adds the environment's layer and returns what is wrong with
// it. A variable that means no key is only warned of, for orchestrators invent
// variables of their own with such names.
func (p *process) loadEnvironment(layers *koanf.Koanf) []error {
	var problems []error
	for _, variable := range environment(p.environ) {
		name, text, _ := strings.Cut(variable, "=")
		words := strings.Split(strings.TrimPrefix(name, environPrefix), environLevel)
		path, shape, ok := resolveVariable(layers.Raw(), words)
		if !ok {
			p.logger().Warn("unknown environment variable is ignored", "variable", name)
			continue
		}
		key := strings.Join(path, ".")
		value, err := settings.Coerce(text, shape)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w (from %s)", key, err, name))
			continue
		}
		if found := settings.Check(key, value, shape); len(found) > 0 {
			for _, err := range found {
				problems = append(problems, fmt.Errorf("%w (from %s)", err, name))
			}
			continue
		}
		if err := layers.Set(strings.Join(path, keySeparator), value); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w (from %s)", key, err, name))
		}
	}
	return problems
}

// environment lists our variables by name, so that a section comes before what
// it holds; the types of carriers come first, for they say what else there is.
func environment(environ []string) []string {
	var types, rest []string
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		switch {
		case !strings.HasPrefix(name, environPrefix):
		case isCarrierType(strings.Split(strings.TrimPrefix(name, environPrefix), environLevel)):
			types = append(types, variable)
		default:
			rest = append(rest, variable)
		}
	}
	byName := func(a, b string) int {
		nameA, _, _ := strings.Cut(a, "=")
		nameB, _, _ := strings.Cut(b, "=")
		return strings.Compare(nameA, nameB)
	}
	slices.SortStableFunc(types, byName)
	slices.SortStableFunc(rest, byName)
	return append(types, rest...)
}

func isCarrierType(words []string) bool {
	return len(words) == 3 && strings.EqualFold(words[0], "carriers") && strings.EqualFold(words[2], "type")
}

// resolveVariable finds the key that a variable's words mean, and the shape of
// its value.
func resolveVariable(current map[string]any, words []string) (path []string, shape reflect.Type, ok bool) {
	if !strings.EqualFold(words[0], "carriers") {
		return settings.Resolve(reflect.TypeFor[keys](), current, words)
	}
	if len(words) < 3 {
		return nil, nil, false // The set as a whole belongs to the file.
	}
	carriers, _ := current["carriers"].(map[string]any)
	anything := reflect.TypeFor[map[string]any]()
	path, _, ok = settings.Resolve(anything, carriers, words[1:2])
	if !ok {
		return nil, nil, false
	}
	path = append([]string{"carriers"}, path...)
	if isCarrierType(words) {
		return append(path, "type"), reflect.TypeFor[string](), true
	}
	section, _ := carriers[path[1]].(map[string]any)
	typ, _ := section["type"].(string)
	if shape = carrierShape(typ); shape == nil {
		return nil, nil, false
	}
	below, shape, ok := settings.Resolve(shape, section, words[2:])
	return append(path, below...), shape, ok
}
