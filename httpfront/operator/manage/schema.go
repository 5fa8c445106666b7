package manage

import (
	"cmp"
	"reflect"
	"strings"
	"time"

	"github.com/ropeline/ropeline/httpfront/operator/admin"
)

// schemaOf returns the schema of what encoding/json makes of a type.
func schemaOf(t reflect.Type) admin.Schema {
	switch t {
	case reflect.TypeFor[time.Time]():
		return admin.Schema{"type": "string", "format": "date-time"}
	case reflect.TypeFor[time.Duration]():
		return admin.Schema{"type": "integer", "description": "nanoseconds"}
	case reflect.TypeFor[any]():
		return admin.Schema{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.Slice:
		return admin.Schema{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Map:
		return admin.Schema{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Bool:
		return admin.Schema{"type": "boolean"}
	case reflect.String:
		return admin.Schema{"type": "string"}
	case reflect.Float64:
		return admin.Schema{"type": "number"}
	case reflect.Struct:
		return objectOf(t)
	}
	return admin.Schema{"type": "integer"}
}

func objectOf(t reflect.Type) admin.Schema {
	properties, required := map[string]admin.Schema{}, []string{}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		name = cmp.Or(name, f.Name)
		properties[name] = schemaOf(f.Type)
		if !strings.Contains(options, "omit") {
			required = append(required, name)
		}
	}
	return admin.Schema{"type": "object", "properties": properties, "required": required}
}
