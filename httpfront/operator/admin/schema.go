package admin

import (
	"maps"
	"slices"
)

// Schema is a JSON schema as OpenAPI 3.1 has it, with the keywords of the standard.
type Schema map[string]any

// with returns a copy with one more keyword.
func (s Schema) with(keyword string, v any) Schema {
	s = maps.Clone(s)
	s[keyword] = v
	return s
}

// orNull returns a copy that allows null as well.
func (s Schema) orNull() Schema {
	kind, ok := s["type"].(string)
	if !ok {
		return s
	}
	s = s.with("type", []string{kind, "null"})
	if values, ok := s["enum"].([]any); ok {
		s["enum"] = append(values[:len(values):len(values)], nil)
	}
	return s
}

// Ref is one of the schemas of the document that have names.
func Ref(name string) Schema { return Schema{"$ref": "#/components/schemas/" + name} }

func listOf(items Schema) Schema { return Schema{"type": "array", "items": items} }

// object is an object in an answer, all of whose members are there.
func object(properties map[string]Schema) Schema {
	return Schema{"type": "object", "properties": properties, "required": slices.Sorted(maps.Keys(properties))}
}

// use is what an object is there for.
type use int

const (
	shown   use = iota // in an answer
	created            // in the body of POST and PUT
	changed            // in the body of PATCH
)

// always is the schema of a value that is the same in requests and answers.
func always(s Schema) func(use) Schema { return func(use) Schema { return s } }

// objectOf returns the schema of objects that have these fields.
func objectOf[T any](fields []field[T], u use) Schema {
	properties, required := map[string]Schema{}, []string{}
	for i := range fields {
		f := &fields[i]
		s, there := f.schemaFor(u)
		if !there {
			continue
		}
		properties[f.name] = s
		if u == shown || u == created && f.required {
			required = append(required, f.name)
		}
	}
	s := Schema{"type": "object", "properties": properties}
	if len(required) > 0 {
		slices.Sort(required)
		s["required"] = required
	}
	if u != shown {
		s["additionalProperties"] = false
	}
	return s
}

// schemaFor returns the schema of a field, and whether an object has such a field there.
func (f *field[T]) schemaFor(u use) (Schema, bool) {
	switch {
	case u == shown && f.show == nil:
		return nil, false
	case u == shown:
		s := f.schema(u)
		if f.nullable {
			s = s.orNull()
		}
		return s.with("description", f.meaning), true
	case f.read == nil:
		return Schema{"readOnly": true, "description": "Read only, and passed over. " + f.meaning}, true
	}
	s := f.schema(u)
	if !f.required {
		s = s.orNull()
	}
	if f.zero.kind != "" {
		s = Schema{"anyOf": []Schema{s, {"const": f.zero.JSON()}}}
	}
	return s.with("description", f.meaning), true
}
