package mcpserver

import (
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
)

// schemaOf derives a tool's arguments from their type and applies what a struct
// tag cannot say. It panics where that does not fit the type, which is a mistake
// of ours that every start would show.
func schemaOf[T any](rules ...rule) *jsonschema.Schema {
	schema, err := jsonschema.For[T](nil)
	if err != nil {
		panic(fmt.Sprintf("mcpserver: schema of %T: %v", *new(T), err))
	}
	for _, r := range rules {
		property := schema.Properties[r.property]
		if property == nil {
			panic(fmt.Sprintf("mcpserver: %T has no property %s", *new(T), r.property))
		}
		r.apply(property)
	}
	return schema
}

// rule is what is asked of one argument beyond its type.
type rule struct {
	property string
	apply    func(*jsonschema.Schema)
}

// oneOf closes an argument to the given words.
func oneOf[S ~string](property string, words []S) rule {
	return rule{property, func(s *jsonschema.Schema) {
		for _, w := range words {
			s.Enum = append(s.Enum, string(w))
		}
	}}
}

// between bounds a number.
func between(property string, least, most int) rule {
	return rule{property, func(s *jsonschema.Schema) {
		s.Minimum, s.Maximum = jsonschema.Ptr(float64(least)), jsonschema.Ptr(float64(most))
	}}
}

// atLeast bounds a number from below.
func atLeast(property string, least int) rule {
	return rule{property, func(s *jsonschema.Schema) { s.Minimum = jsonschema.Ptr(float64(least)) }}
}
