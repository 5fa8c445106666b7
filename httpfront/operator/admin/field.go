package admin

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ropeline/ropeline/node/nearest"
)

// field is one setting of a T, and all that is known of it here.
type field[T any] struct {
	name    string
	meaning string // for the document; with what it is where it is left out
	allowed string // what may be given, for messages
	schema  func(use) Schema

	// read sets it in into from a value that is not null, or tells r what is wrong. was is
	// the T before the request; nil: there was none. A nil read is a field that is only
	// shown: SDKs send back what they were given, so it is passed over.
	read func(r *reader, v value, into, was *T)

	show func(t *T, now time.Time) any // as it goes into JSON; nil: it does not
	copy func(from, into *T)

	required bool // where a T is made or replaced; it has no default
	ours     bool // the dialect does not have it: who leaves it out does not know it, and it stays
	nullable bool // it is shown as null where it says nothing

	// keep is what becomes of it where a T is replaced and it is left out, if that is not
	// the default.
	keep func(was, into *T)

	// zero is a value that is as if the field were left out; see zeroed.
	zero value

	// twin is another field that is the same setting in another unit.
	twin string
}

// own returns the field as one that the dialect does not have.
func (f field[T]) own() field[T] {
	f.ours, f.keep = true, f.copy
	return f
}

// mode is what a request does to an object.
type mode int

const (
	create  mode = iota
	replace      // PUT: what is left out has its default
	change       // PATCH: what is left out stays
)

// reader reads one request and gathers what is wrong with it.
type reader struct {
	mode     mode
	at       string // of the object that is read, within the body
	body     value  // that object
	mistakes []Mistake
	messages []Mistake
}

func (r *reader) fail(code int, name string, v value, allowed string) {
	r.mistakes = append(r.mistakes, refused(code, join(r.at, name), v, allowed))
}

// refuse is fail for a value that is not allowed.
func (f *field[T]) refuse(r *reader, v value) { r.fail(CodeRefused, f.name, v, f.allowed) }

// mistype is fail for a value of another type.
func (f *field[T]) mistype(r *reader, v value) { r.fail(CodeType, f.name, v, f.allowed) }

// within has f read a value at a place of its own.
func (r *reader) within(at string, body value, f func()) {
	oldAt, oldBody := r.at, r.body
	r.at, r.body = join(r.at, at), body
	f()
	r.at, r.body = oldAt, oldBody
}

// decode reads a T from an object. blank is a T with all its defaults; was is the T before,
// nil where there was none.
func decode[T any](r *reader, v value, fields []field[T], blank, was *T) T {
	into := *blank
	if r.mode == change && was != nil {
		into = *was
	}
	if v.kind != kindObject {
		r.mistakes = append(r.mistakes, refused(CodeType, cmp.Or(r.at, "the body"), v, "an object"))
		return into
	}
	r.within("", v, func() {
		r.refuseUnknown(v, namesOf(fields))
		for i := range fields {
			fields[i].take(r, v, &into, blank, was)
		}
	})
	return into
}

func namesOf[T any](fields []field[T]) (names []string) {
	for i := range fields {
		names = append(names, fields[i].name)
	}
	return names
}

func (r *reader) refuseUnknown(v value, names []string) {
	for _, m := range v.members {
		if slices.Contains(names, m.name) {
			continue
		}
		if len(r.mistakes) >= maxMistakes {
			return
		}
		name, allowed, hint := join(r.at, shorten(m.name)), "a field that is documented", ""
		if near, ok := nearest.Name(shorten(m.name), names); ok {
			allowed, hint = near, fmt.Sprintf("; did you mean %s?", near)
		}
		r.mistakes = append(r.mistakes, Mistake{
			Code: CodeUnknown, Message: name + ": there is no such field" + hint, Field: name, Value: m.value.String(), Allowed: allowed,
		})
	}
}

// take reads one field of an object.
func (f *field[T]) take(r *reader, body value, into, blank, was *T) {
	v, there := body.get(f.name)
	there = there && (f.zero.kind == "" || v.kind != f.zero.kind || v.text != f.zero.text)
	switch {
	case f.read == nil:
	case !there && f.required && (r.mode != change || was == nil):
		name := join(r.at, f.name)
		r.mistakes = append(r.mistakes, Mistake{Code: CodeMissing, Message: fmt.Sprintf("%s: it is missing: want %s", name, f.allowed), Field: name, Allowed: f.allowed})
	case !there && r.mode == replace && was != nil && f.keep != nil:
		f.keep(was, into)
	case !there:
	case v.kind == kindNull && f.required:
		f.mistype(r, v)
	case v.kind == kindNull:
		if other, there := body.get(f.twin); there && other.kind != kindNull {
			f.refuse(r, v)
		} else if f.copy != nil {
			f.copy(blank, into)
		}
	default:
		f.read(r, v, into, was)
	}
}

// show returns a T as it goes into JSON.
func show[T any](t *T, fields []field[T], now time.Time) members {
	all := make(members, 0, len(fields))
	for i := range fields {
		if f := &fields[i]; f.show != nil {
			all = append(all, pair{f.name, f.show(t, now)})
		}
	}
	return all
}

// showAll shows each of a list.
func showAll[T any](list []T, fields []field[T], now time.Time) []members {
	all := []members{}
	for i := range list {
		all = append(all, show(&list[i], fields, now))
	}
	return all
}
