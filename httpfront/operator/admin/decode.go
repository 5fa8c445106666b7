package admin

import (
	"cmp"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
)

// Decode reads the body into a struct with fields as of encoding/json: truths, texts, maps
// of texts, and other structs. What does not fit is told as of a room's fields: where it is,
// what was given, and what is allowed. Null leaves a field as it is.
func (c *Call) Decode(into any) error {
	r := &reader{body: c.body}
	r.fits(c.body, reflect.TypeOf(into).Elem())
	if len(r.mistakes) > 0 {
		return bad(r.mistakes...)
	}
	if err := json.Unmarshal(c.Body, into); err != nil {
		return Refuse(http.StatusBadRequest, CodeNotJSON, "the body: %v", err)
	}
	return nil
}

// fits tells what keeps a value from being read into a t.
func (r *reader) fits(v value, t reflect.Type) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	is := kindText
	switch t.Kind() {
	case reflect.Bool:
		is = kindTruth
	case reflect.Struct, reflect.Map:
		is = kindObject
	}
	if v.kind != is {
		r.mistakes = append(r.mistakes, refused(CodeType, cmp.Or(r.at, "the body"), v, string(is)))
		return
	}
	switch t.Kind() {
	case reflect.Map:
		for _, m := range v.members {
			r.within(m.name, m.value, func() { r.fits(m.value, t.Elem()) })
		}
	case reflect.Struct:
		r.fitsStruct(v, t)
	}
}

func (r *reader) fitsStruct(v value, t reflect.Type) {
	var names []string
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
		if m, there := v.get(name); there && m.kind != kindNull {
			r.within(name, m, func() { r.fits(m, f.Type) })
		}
	}
	r.refuseUnknown(v, names)
}
