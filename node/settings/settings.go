// Package settings describes what operators can set: one table of fields for each thing
// that has settings, which the command line, configuration files, the admin API, its
// OpenAPI document and the documentation are all made of.
//
// A Kind is what values are like: how they are written, which are allowed. A Field is one
// setting of a T: its name, its meaning, its kind, its default, and where in a T it is. The
// values of this package are not changed once they are made, so any number of goroutines
// may use them; what they read and write belongs to the caller.
package settings

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Spec is what is known of a kind without its Go type.
type Spec struct {
	Type    string         // stands for a value in help, such as "number"
	Allowed string         // what may be given, after "want"
	Schema  map[string]any // of the value in JSON

	Whole bool // of a list: commas do not separate items, since they may stand in one
	Null  bool // it may be left out, which is not the same as its zero
}

// IsList reports whether values hold several things.
func (s *Spec) IsList() bool { return s.Schema["type"] == "array" }

// IsNumber reports whether values are written as plain numbers.
func (s *Spec) IsNumber() bool { return s.Schema["type"] == "integer" || s.Schema["type"] == "number" }

// IsTruth reports whether values are true and false.
func (s *Spec) IsTruth() bool { return s.Schema["type"] == "boolean" }

// Words lists, for the help of a flag, the words that a value is one of: ": one of a, b" without
// "one of", unless there are many or none.
func (s *Spec) Words() string {
	if words, ok := s.Schema["enum"].([]any); ok && len(words) < 10 {
		return ": " + strings.TrimPrefix(s.Allowed, "one of ")
	}
	return ""
}

// Kind is what the values of a setting are like.
type Kind[V any] struct {
	Spec
	Set   func(into *V, s string) error // as people write it; of a list, one more item
	Text  func(V) string                // the reverse; of a list nil
	Items func(V) []string              // of a list, the reverse
	Clear func(*V)                      // of a list: takes all items out; nil: V becomes its zero
	Valid func(V) bool                  // nil: all are
}

// Value is a setting of something, with its Go type forgotten. It implements pflag.Value.
type Value interface {
	String() string
	Set(string) error
	Type() string

	Spec() *Spec
	Add(item string) error // to a list
	Clear()                // of a list: takes all items out
	Valid() bool
	JSON() any // as it stands in JSON: nil, a bool, a number, a string or a []string
}

type value[V any] struct {
	at   *V
	kind *Kind[V]
}

// At returns the value that stands at a place.
func (k Kind[V]) At(at *V) Value { return value[V]{at, &k} }

func (v value[V]) Type() string { return v.kind.Type }
func (v value[V]) Spec() *Spec  { return &v.kind.Spec }

func (v value[V]) String() string {
	if v.kind.Items != nil {
		return strings.Join(v.kind.Items(*v.at), ",")
	}
	return v.kind.Text(*v.at)
}

func (v value[V]) Add(item string) error { return v.kind.Set(v.at, item) }

// Set implements pflag.Value. Each use of a list adds to it.
func (v value[V]) Set(s string) error {
	if v.kind.Items == nil || v.kind.Whole {
		return v.Add(s)
	}
	for item := range strings.SplitSeq(s, ",") {
		if err := v.Add(strings.TrimSpace(item)); err != nil {
			return err
		}
	}
	return nil
}

func (v value[V]) Clear() {
	if v.kind.Clear != nil {
		v.kind.Clear(v.at)
		return
	}
	var zero V
	*v.at = zero
}

func (v value[V]) Valid() bool { return v.kind.Valid == nil || v.kind.Valid(*v.at) }

func (v value[V]) JSON() any {
	switch {
	case v.kind.Null && v.kind.Text(*v.at) == "":
		return nil
	case v.kind.Items != nil:
		return append([]string{}, v.kind.Items(*v.at)...)
	case v.kind.IsNumber():
		return number(v.kind.Text(*v.at))
	case v.kind.IsTruth():
		return v.kind.Text(*v.at) == "true"
	}
	return v.kind.Text(*v.at)
}

// Field is one setting of a T.
type Field[T any] struct {
	Name    string // in words with dashes between, as in configuration files
	Meaning string // a sentence that begins in lower case and has no full stop
	Details string // more of it, for the documentation
	None    string // what the documentation says where nothing is its default

	Required bool // it has no default: whoever makes a T has to give it

	Of   func(*T) Value
	Copy func(from, into *T)

	fill  func(*T)      // gives it its default if it is zero; nil: zero is good
	unset func(*T) bool // reports whether fill would
	start func(*T)      // gives it its default; nil: that is its zero
}

// New returns the field with a default, which is the zero V where there is none. Where the
// zero V is not allowed it stands for the default.
func New[T any, V comparable](name, meaning string, k Kind[V], def V, at func(*T) *V) Field[T] {
	var zero V
	f := List(name, meaning, k, at)
	if def == zero {
		return f
	}
	f.start = func(t *T) { *at(t) = def }
	if k.Valid != nil && !k.Valid(zero) {
		f.unset = func(t *T) bool { return *at(t) == zero }
		f.fill = func(t *T) {
			if p := at(t); *p == zero {
				*p = def
			}
		}
	}
	return f
}

// List returns a field without a default.
func List[T, V any](name, meaning string, k Kind[V], at func(*T) *V) Field[T] {
	return Field[T]{
		Name: name, Meaning: meaning,
		Of:   func(t *T) Value { return value[V]{at(t), &k} },
		Copy: func(from, into *T) { *at(into) = *at(from) },
	}
}

// With returns the field with more words for the documentation.
func (f Field[T]) With(details string) Field[T] {
	f.Details = details
	return f
}

// Unless returns the field with what is there while it says nothing.
func (f Field[T]) Unless(none string) Field[T] {
	f.None = none
	return f
}

// Must returns the field as a required one.
func (f Field[T]) Must() Field[T] {
	f.Required = true
	return f
}

// Table is the settings of a T, in the order in which they are shown.
type Table[T any] []Field[T]

// Start gives a new T all its defaults.
func (fields Table[T]) Start(t *T) {
	for i := range fields {
		if f := fields[i].start; f != nil {
			f(t)
		}
	}
}

// Fill gives a T its defaults where a zero stands for them.
func (fields Table[T]) Fill(t *T) {
	for i := range fields {
		if f := fields[i].fill; f != nil {
			f(t)
		}
	}
}

// Filled reports whether Fill would change nothing.
func (fields Table[T]) Filled(t *T) bool {
	for i := range fields {
		if unset := fields[i].unset; unset != nil && unset(t) {
			return false
		}
	}
	return true
}

// Refusal is a setting that is not allowed.
type Refusal struct{ Name, Given, Allowed string }

// Refused returns the settings of a T that are not allowed.
func (fields Table[T]) Refused(t *T) (all []Refusal) {
	for i := range fields {
		if v := fields[i].Of(t); !v.Valid() {
			all = append(all, Refusal{fields[i].Name, Shorten(v.String()), v.Spec().Allowed})
		}
	}
	return all
}

// Pick returns the fields with these names, in their order.
func (fields Table[T]) Pick(names ...string) Table[T] {
	picked := make(Table[T], 0, len(names))
	for _, name := range names {
		i := slices.IndexFunc(fields, func(f Field[T]) bool { return f.Name == name })
		if i < 0 {
			panic("settings: there is no field " + name)
		}
		picked = append(picked, fields[i])
	}
	return picked
}

// maxShown is how many bytes of a value an error shows.
const maxShown = 80

// Shorten cuts a text that is too long for an error.
func Shorten(s string) string {
	if len(s) <= maxShown {
		return s
	}
	cut := maxShown
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d characters)", s[:cut], utf8.RuneCountInString(s))
}

// Refuse returns the error of a text that is not allowed.
func Refuse(s, allowed string) error {
	return fmt.Errorf("%q is not allowed: %s", Shorten(s), allowed)
}
