package admin

import (
	"fmt"
	"slices"
)

// listing is an ordered list that a request replaces as a whole. What of it was there
// before keeps its id and age.
type listing[T any] struct {
	name   string // of the list, in the fields of mistakes
	of     string // what it has, in words
	fields []field[T]
	was    []T

	id      func(*T) string
	called  func(*T) string // the name by which one is found that is sent without an id; nil: by none
	fresh   func() (T, error)
	again   func(was *T) T   // with defaults, but for what stays
	changed func(was, is *T) // counts the version up if it is another one
}

// read returns the list that a body has. From then on r has the body under the list's name,
// so that what is found out later can be told by its place there.
func (l *listing[T]) read(r *reader, body value) (all []T, err error) {
	if body.kind != kindList {
		return nil, bad(refused(CodeType, "the body", body, "a list of "+l.of))
	}
	taken := l.taken(r, body)
	for i, item := range body.items {
		r.within(l.at(i), item, func() {
			was, blank := taken[i], *new(T)
			if was != nil {
				blank = l.again(was)
			} else if blank, err = l.fresh(); err != nil {
				return
			}
			made := decode(r, item, l.fields, &blank, was)
			if was != nil {
				l.changed(was, &made)
			}
			all = append(all, made)
		})
		if err != nil {
			return nil, err
		}
	}
	r.body = value{kind: kindObject, members: []member{{l.name, body}}}
	return all, nil
}

func (l *listing[T]) at(i int) string { return fmt.Sprintf("%s[%d]", l.name, i) }

// taken returns which of those that were there each item is; nil: it is new. Ids go before
// names, wherever they stand.
func (l *listing[T]) taken(r *reader, body value) []*T {
	all := make([]*T, len(body.items))
	find := func(i int, is func(*T) bool) {
		at := slices.IndexFunc(l.was, func(t T) bool { return is(&t) })
		switch {
		case at < 0: // an id of another list: it is a copy
		case !slices.Contains(all, &l.was[at]):
			all[i] = &l.was[at]
		case l.given(body.items[i], "id") != "":
			v, _ := body.items[i].get("id")
			r.within(l.at(i), body.items[i], func() { r.fail(CodeTwice, "id", v, "each id once") })
		}
	}
	for i, item := range body.items {
		if id := l.given(item, "id"); id != "" {
			find(i, func(t *T) bool { return l.id(t) == id })
		}
	}
	for i, item := range body.items {
		if name := l.given(item, "name"); l.called != nil && name != "" && l.given(item, "id") == "" {
			find(i, func(t *T) bool { return l.called(t) == name })
		}
	}
	return all
}

// given returns a text of an item; "": there is none.
func (l *listing[T]) given(item value, name string) string {
	v, there := item.get(name)
	if !there || item.kind != kindObject || v.kind != kindText {
		return ""
	}
	return v.text
}
