package admin

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The kinds of fields. at returns where in a T the value stands.

// plain is a field that is kept as it is shown.
func plain[T, V any](name, meaning, allowed string, s Schema, at func(*T) *V, read func(f *field[T], r *reader, v value) (V, bool)) field[T] {
	f := field[T]{name: name, meaning: meaning, allowed: allowed, schema: always(s)}
	f.read = func(r *reader, v value, into, _ *T) {
		if got, ok := read(&f, r, v); ok {
			*at(into) = got
		}
	}
	f.show = func(t *T, _ time.Time) any { return *at(t) }
	f.copy = func(from, into *T) { *at(into) = *at(from) }
	return f
}

// truth is true or false.
func truth[T any](name, meaning string, at func(*T) *bool) field[T] {
	return plain(name, meaning, string(kindTruth), Schema{"type": "boolean"}, at, readTruth)
}

func readTruth[T any](f *field[T], r *reader, v value) (bool, bool) {
	if v.kind != kindTruth {
		f.mistype(r, v)
		return false, false
	}
	return v.yes, true
}

func readWhole[T any](lo, hi int) func(*field[T], *reader, value) (int, bool) {
	return func(f *field[T], r *reader, v value) (int, bool) {
		if v.kind != kindNumber {
			f.mistype(r, v)
			return 0, false
		}
		n, err := strconv.ParseFloat(v.text, 64) // exact, since no range goes so far
		if err != nil || n != math.Trunc(n) || n < float64(lo) || n > float64(hi) {
			f.refuse(r, v)
			return 0, false
		}
		return int(n), true
	}
}

// oneOf is one of a few words. The empty word, if it is not among them, is shown as unsaid.
func oneOf[T any, E ~string](name, meaning string, words []E, unsaid E, at func(*T) *E) field[T] {
	f := plain(name, meaning, "one of "+joinWords(words), Schema{"type": "string", "enum": anyOf(words)}, at, readWord[T](words))
	f.show = func(t *T, _ time.Time) any {
		if w := *at(t); w != "" {
			return w
		}
		return unsaid
	}
	return f
}

func readWord[T any, E ~string](words []E) func(*field[T], *reader, value) (E, bool) {
	return func(f *field[T], r *reader, v value) (E, bool) {
		switch {
		case v.kind != kindText:
			f.mistype(r, v)
		case !slices.Contains(words, E(v.text)):
			f.refuse(r, v)
		default:
			return E(v.text), true
		}
		return "", false
	}
}

func joinWords[E ~string](words []E) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(w))
	}
	return b.String()
}

func anyOf[E any](values []E) []any {
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v
	}
	return all
}

// text is a text of so many characters at most; 0: what it may be is looked at with the
// whole room, or by into.
func text[T any](name, meaning, allowed string, most int, at func(*T) *string) field[T] {
	s := Schema{"type": "string"}
	if most > 0 {
		s["maxLength"] = most
	}
	return plain(name, meaning, allowed, s, at, func(f *field[T], r *reader, v value) (string, bool) {
		if v.kind != kindText {
			f.mistype(r, v)
			return "", false
		}
		if n := utf8.RuneCountInString(v.text); most > 0 && n > most {
			f.refuse(r, value{kind: kindText, text: fmt.Sprintf("a text of %d characters", n)})
			return "", false
		}
		return v.text, true
	})
}

// stampOf is a time in an answer.
func stampOf(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// readOnly is a field that is only shown.
func readOnly[T any](name, meaning string, s Schema, show func(t *T, now time.Time) any) field[T] {
	return field[T]{name: name, meaning: meaning, schema: always(s), show: show}
}

// override is a field of an event: null inherits the room's setting.
func override[T, V any](of field[V], at func(*T) **V) field[T] {
	f := field[T]{name: of.name, meaning: of.meaning, allowed: of.allowed + "; null for the room's", schema: of.schema, nullable: true, ours: of.ours}
	f.read = func(r *reader, v value, into, was *T) {
		got := new(V)
		before := len(r.mistakes)
		var old *V
		if was != nil {
			old = *at(was)
		}
		of.read(r, v, got, old)
		if len(r.mistakes) == before {
			*at(into) = got
		}
	}
	f.show = func(t *T, now time.Time) any {
		if own := *at(t); own != nil {
			return of.show(own, now)
		}
		return nil
	}
	f.copy = func(from, into *T) { *at(into) = *at(from) }
	f.twin = of.twin
	return f
}
