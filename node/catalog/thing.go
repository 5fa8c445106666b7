package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// A thing is a room, an event, a rule or a rate limit. It stands under one key as it was
// made, and under one more for each of its units that was changed since:
//
//	<thing>           as it was made: units by their names, without those that have their default
//	<thing>/<unit>    a unit that was changed since
//	<thing>/deleted   it is deleted for good
//
// A unit is what merges by itself: a setting, or several that are only sound together. It is
// sound whatever the others are, so any mixture of what was written at several nodes is a
// sound thing.
//
// A thing is there while the first key is, which only who makes it writes. So whoever changes
// one that was deleted meanwhile brings nothing of it back. An id that is made of what a
// configuration file says can be made again by a node that has not heard of the deletion: such
// a thing leaves a mark behind, under a key that nobody ever overwrites.

// unit is a part of a T that merges by itself.
type unit[T any] struct {
	name  string
	at    func(*T) any // where it is in a T: a pointer to what is written, or to a struct of pointers
	parts bool         // it is the latter
	born  bool         // it is never changed
}

// units are all of a T, in no order that matters.
type units[T any] []unit[T]

// thing is what is known of how something stands in the map. It is read only.
type thing struct {
	file    bool     // its id is made of what a file says, and may be made again
	rank    int64    // where it is in an ordered list; see ranked
	changed []string // the units that stand under keys of their own
}

func (u *unit[T]) value(t *T) []byte { return encode(u.at(t)) }

// set has the unit of t be as a value says. Where that does not decode, t stays as it is.
func (u *unit[T]) set(t *T, value []byte) bool {
	was := u.value(t)
	u.clear(t) // since nothing is done about a pointer that is null
	if json.Unmarshal(value, u.at(t)) == nil {
		return true
	}
	u.clear(t)
	if err := json.Unmarshal(was, u.at(t)); err != nil {
		panic(fmt.Sprintf("catalog: %s is not read as it is written: %v", u.name, err))
	}
	return false
}

func (u *unit[T]) clear(t *T) {
	v := reflect.ValueOf(u.at(t)).Elem()
	if !u.parts {
		v.SetZero()
		return
	}
	for _, field := range v.Fields() {
		field.Elem().SetZero()
	}
}

// written returns a T as it is made. fresh has all defaults.
func (us units[T]) written(t, fresh *T) []byte {
	all := map[string]json.RawMessage{}
	for i := range us {
		if v := us[i].value(t); !bytes.Equal(v, us[i].value(fresh)) {
			all[us[i].name] = v
		}
	}
	return encode(all)
}

// read has t, which has all defaults, be as it was made. It fails where the value is none.
func (us units[T]) read(value []byte, t *T) bool {
	var all map[string]json.RawMessage
	if json.Unmarshal(value, &all) != nil {
		return false
	}
	for i := range us {
		if v, ok := all[us[i].name]; ok && !us[i].set(t, v) {
			return false
		}
	}
	return true
}

// find returns the unit of a name that can be changed; nil: there is none.
func (us units[T]) find(name string) *unit[T] {
	i := slices.IndexFunc(us, func(u unit[T]) bool { return u.name == name && !u.born })
	if i < 0 {
		return nil
	}
	return &us[i]
}

// found is a thing as it was found in the map.
type found[T any] struct {
	is       T
	there    bool
	gone     bool      // it was there, and is deleted
	marked   bool      // as deleted
	modified time.Time // when the newest of its keys was written
}

// look reads a thing. names are those of its keys behind the first one, and fresh has all
// defaults.
func look[T any](m Map, key string, names []string, us units[T], fresh T, at func(*T) *thing) (f found[T]) {
	value, stamp, ok := m.Get(key)
	_, _, f.marked = m.Get(key + "/" + deletedMark)
	f.gone = f.marked || !ok && !stamp.IsZero() // else it has not arrived yet
	f.is = fresh
	if f.gone || !ok || !us.read(value, &f.is) {
		return f
	}
	f.there, f.modified = true, timeOf(stamp)
	for _, name := range names {
		u := us.find(name)
		value, stamp, ok := m.Get(key + "/" + name)
		if u == nil || !ok || !u.set(&f.is, value) {
			continue // what does not decode is nobody's
		}
		t := at(&f.is)
		t.changed = append(t.changed, name)
		if at := timeOf(stamp); at.After(f.modified) {
			f.modified = at
		}
	}
	return f
}

func timeOf(at crdt.Stamp) time.Time { return time.UnixMilli(at.Wall).UTC() }

// things yields the keys of things, and for each the names that stand behind it, of keys that
// are in order. length is how long the key of a thing is; a key that is not in the form in which
// it is written is nobody's: else two things had one id.
func things(keys []string, length int) iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for len(keys) > 0 {
			key, n := keys[0], 0
			good := len(key) >= length && isHex(key[length-2*len(ID{}):length])
			if good {
				key = key[:length]
			}
			var names []string
			for _, k := range keys {
				rest, ok := strings.CutPrefix(k, key)
				if !ok || rest != "" && rest[0] != '/' {
					break
				}
				if n++; rest != "" {
					names = append(names, rest[1:])
				}
			}
			if good && !yield(key, names) {
				return
			}
			keys = keys[max(1, n):]
		}
	}
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// writer gathers what is to be written.
type writer struct {
	by  string // makes versions of texts those of one act
	all []Write
}

func (w *writer) set(key string, value []byte) { w.all = append(w.all, Write{key, value}) }

// change writes the units of a thing that differ.
func change[T any](w *writer, key string, us units[T], was, is *T) {
	for i := range us {
		if u := &us[i]; !u.born {
			if v := u.value(is); !bytes.Equal(u.value(was), v) {
				w.set(key+"/"+u.name, v)
			}
		}
	}
}

// drop deletes a thing: first that it is there, and then what else there is of it.
func (w *writer) drop(key string, t *thing) {
	if t.file {
		w.set(key+"/"+deletedMark, []byte("{}"))
	}
	w.set(key, nil)
	for _, name := range t.changed {
		w.set(key+"/"+name, nil)
	}
}

// listed is what there is to know of things that a list has.
type listed[T any] struct {
	us    units[T]
	fresh func() T
	key   func(*T) string
	at    func(*T) *thing
	text  func(w *writer, was, is *T) // has is refer to its text; was is fresh where there is none
}

// write has those of one list become those of another. What is new comes before what goes.
func (l *listed[T]) write(w *writer, was, is []T) {
	before := map[string]*T{}
	for i := range was {
		before[l.key(&was[i])] = &was[i]
	}
	for i := range is {
		now, key := is[i], l.key(&is[i])
		old, there := before[key]
		fresh := l.fresh()
		if there {
			delete(before, key)
			l.text(w, old, &now)
			change(w, key, l.us, old, &now)
			continue
		}
		l.text(w, &fresh, &now)
		w.set(key, l.us.written(&now, &fresh))
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		w.drop(key, l.at(before[key]))
	}
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("catalog: %T: %v", v, err)) // only of values that cannot be written at all
	}
	return b
}

// some is a list of which nil and none are the same.
type some[T any] []T

// MarshalJSON implements json.Marshaler.
func (s some[T]) MarshalJSON() ([]byte, error) {
	if len(s) == 0 {
		return []byte("[]"), nil
	}
	return json.Marshal([]T(s))
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *some[T]) UnmarshalJSON(b []byte) error {
	var all []T
	err := json.Unmarshal(b, &all)
	if *s = all; len(all) == 0 {
		*s = nil
	}
	return err
}
