package admin

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ropeline/ropeline/node/settings"
)

// fromTable makes fields of the settings of a U that stands in a T. blank has their defaults,
// for the document.
func fromTable[T, U any](table settings.Table[U], of func(*T) *U, blank U) []field[T] {
	var dashes []string
	for _, s := range table {
		if strings.Contains(s.Name, "-") {
			dashes = append(dashes, s.Name, underscored(s.Name))
		}
	}
	spelled := strings.NewReplacer(dashes...)
	all := make([]field[T], len(table))
	for i, s := range table {
		spec := s.Of(&blank).Spec()
		f := &field[T]{name: underscored(s.Name), meaning: spelled.Replace(meaningOf(s, &blank)), allowed: spec.Allowed, required: s.Required, nullable: spec.Null}
		if spec.Null && s.None != "" {
			f.allowed += "; null for " + s.None
		}
		f.schema = always(Schema(spec.Schema))
		f.read = func(r *reader, v value, into, _ *T) { f.readInto(r, v, s.Of(of(into))) }
		f.show = func(t *T, _ time.Time) any { return s.Of(of(t)).JSON() }
		f.copy = func(from, into *T) { s.Copy(of(from), of(into)) }
		all[i] = *f
	}
	return all
}

// single is fromTable for one setting.
func single[T any](s settings.Field[T]) field[T] {
	return fromTable(settings.Table[T]{s}, itself, *new(T))[0]
}

func itself[T any](v *T) *T { return v }

func underscored(name string) string { return strings.ReplaceAll(name, "-", "_") }

// meaningOf returns sentences about a setting, with its default.
func meaningOf[U any](s settings.Field[U], blank *U) string {
	text := strings.ToUpper(s.Meaning[:1]) + s.Meaning[1:] + "."
	def := s.Of(blank).String()
	if def == "" {
		def = s.None
	}
	switch {
	case s.Required || def == s.None && s.Of(blank).Spec().Null:
		return text
	case def == "":
		def = "none"
	}
	return text + " Default " + def + "."
}

// readInto sets a setting from JSON, and reports whether it could.
func (f *field[T]) readInto(r *reader, v value, s settings.Value) bool {
	before := len(r.mistakes)
	spec := s.Spec()
	want, text := kindText, v.text
	switch {
	case spec.IsList():
		f.readList(r, v, s)
		return len(r.mistakes) == before
	case spec.IsTruth():
		want, text = kindTruth, strconv.FormatBool(v.yes)
	case spec.IsNumber():
		want = kindNumber
		if n, err := strconv.ParseFloat(text, 64); err == nil && n == math.Trunc(n) {
			text = strconv.FormatFloat(n, 'f', -1, 64) // JSON may write 5 as 5.0 and as 50e-1
		}
	}
	switch {
	case v.kind != want:
		f.mistype(r, v)
	case s.Set(text) != nil:
		f.refuse(r, v)
	}
	return len(r.mistakes) == before
}

func (f *field[T]) readList(r *reader, v value, s settings.Value) {
	if v.kind != kindList {
		f.mistype(r, v)
		return
	}
	if most, ok := s.Spec().Schema["maxItems"].(int); ok && len(v.items) > most {
		f.refuse(r, v)
		return
	}
	s.Clear()
	there := map[string]bool{}
	for i, item := range v.items {
		if item.kind != kindText || there[item.text] || s.Add(item.text) != nil {
			r.fail(CodeRefused, f.name+"["+strconv.Itoa(i)+"]", item, f.allowed)
		}
		there[item.text] = true
	}
}

// owned makes all fields of a table own ones but those with these names, which the dialect
// has as well.
func owned[T any](fields []field[T], dialect string) []field[T] {
	shared := map[string]bool{}
	for name := range strings.FieldsSeq(dialect) {
		shared[name] = true
	}
	for i := range fields {
		if !shared[fields[i].name] {
			fields[i] = fields[i].own()
		}
	}
	return fields
}
