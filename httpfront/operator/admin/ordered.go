package admin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ordered is what is known of an ordered list: of the rules of a room, or of the rate limits.
type ordered[T any] struct {
	name   string // of the list, in the fields of mistakes
	of     string // what it has, in words
	by     string // by what one is called by which another has its place, such as "the id"
	fields []field[T]
	placed []field[placed[T]] // fields, and the place

	id      func(*T) string
	called  func(*T) string // the name by which one is found where no id says which; nil: by none
	alike   string          // the field by which one of a whole list is found where no id says which
	like    func(*T) string // what that field has
	fresh   func(c *Call) T
	again   func(was *T) T   // with defaults, but for what stays
	changed func(was, is *T) // counts the version up if it is another one
}

// create adds one that a request makes, and returns its place.
func (o *ordered[T]) create(c *Call, r *reader, all *[]T) int {
	made := decode(r, c.body, o.placed, &placed[T]{of: o.fresh(c)}, nil)
	return o.put(r, all, len(*all), &made)
}

// change has the one at i become what a request makes of it, and returns its new place.
func (o *ordered[T]) change(c *Call, r *reader, all *[]T, i int) int {
	was := placed[T]{of: (*all)[i]}
	made := decode(r, c.body, o.placed, &placed[T]{of: o.again(&was.of)}, &was)
	o.changed(&was.of, &made.of)
	*all = slices.Delete(*all, i, i+1)
	return o.put(r, all, i, &made)
}

// replace puts the list that a body has in place of all. What of it was there before keeps its
// id and age. From then on r has the body under the list's name, so that what is found out later
// can be told by its place there.
func (o *ordered[T]) replace(c *Call, r *reader, all *[]T) error {
	if c.body.kind != kindList {
		return bad(refused(CodeType, "the body", c.body, "a list of "+o.of))
	}
	taken := o.taken(r, c.body, *all)
	made := make([]T, 0, len(c.body.items))
	for i, item := range c.body.items {
		r.within(o.at(i), item, func() {
			was, blank := taken[i], o.fresh(c)
			if was != nil {
				blank = o.again(was)
			}
			next := decode(r, item, o.fields, &blank, was)
			if was != nil {
				o.changed(was, &next)
			}
			made = append(made, next)
		})
	}
	r.body = value{kind: kindObject, members: []member{{o.name, c.body}}}
	*all = made
	return nil
}

func (o *ordered[T]) at(i int) string { return fmt.Sprintf("%s[%d]", o.name, i) }

// taken returns which of those that were there each item is; nil: it is new. Ids go before
// what is alike, wherever they stand: a script that sends the same list without ids again and again
// shall change nothing.
func (o *ordered[T]) taken(r *reader, body value, was []T) []*T {
	all := make([]*T, len(body.items))
	find := func(i int, of func(*T) string, is string) (taken bool) {
		for j := range was {
			if t := &was[j]; all[i] == nil && of(t) == is {
				if taken = slices.Contains(all, t); !taken {
					all[i] = t
				}
			}
		}
		return taken
	}
	for i, item := range body.items { // an id of another list: it is a copy
		if id := givenText(item, "id"); id != "" && find(i, o.id, id) {
			v, _ := item.get("id")
			r.within(o.at(i), item, func() { r.fail(CodeTwice, "id", v, "each id once") })
		}
	}
	for i, item := range body.items {
		if like := givenText(item, o.alike); like != "" && givenText(item, "id") == "" {
			find(i, o.like, like)
		}
	}
	return all
}

// givenText returns a text of an item; "": there is none.
func givenText(item value, name string) string {
	v, there := item.get(name)
	if !there || item.kind != kindObject || v.kind != kindText {
		return ""
	}
	return v.text
}

// places returns the places of those that are called so: of the one with that id, or else of those
// with that name.
func (o *ordered[T]) places(all []T, so string) (at []int) {
	for i := range all {
		if o.id(&all[i]) == strings.ToLower(so) {
			return []int{i}
		}
		if o.called != nil && o.called(&all[i]) == so {
			at = append(at, i)
		}
	}
	return at
}

// placed is one of an ordered list with where it is to be among the others. The zero place is
// where it is.
type placed[T any] struct {
	of            T
	index         int    // from 1 on; 0: not by that
	before, after *value // what another one is called, or "" for the first and the last
}

// withPlace makes fields of a T those of one with a place.
func withPlace[T any](fields []field[T], by string) (all []field[placed[T]]) {
	allowed := fmt.Sprintf(`an object with one of index (from 1 on), before (%[1]s of another one; "" for the first), after (%[1]s of another one; "" for the last)`, by)
	for _, f := range fields {
		p := field[placed[T]]{name: f.name, meaning: f.meaning, allowed: f.allowed, schema: f.schema, required: f.required, nullable: f.nullable, zero: f.zero}
		p.show = func(t *placed[T], now time.Time) any { return f.show(&t.of, now) }
		if f.read != nil {
			p.read = func(r *reader, v value, into, was *placed[T]) {
				if was == nil {
					f.read(r, v, &into.of, nil)
				} else {
					f.read(r, v, &into.of, &was.of)
				}
			}
			p.copy = func(from, into *placed[T]) { f.copy(&from.of, &into.of) }
		}
		all = append(all, p)
	}
	return append(all, field[placed[T]]{
		name: "position", allowed: allowed,
		meaning: "Where it is to be among the others. Default: where it is; a new one comes last.",
		schema: always(Schema{"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": false, "properties": map[string]Schema{
			"index": {"type": "integer", "minimum": 1}, "before": {"type": "string"}, "after": {"type": "string"},
		}}),
		read: readPosition[T](allowed),
	})
}

func readPosition[T any](allowed string) func(r *reader, v value, into, _ *placed[T]) {
	return func(r *reader, v value, into, _ *placed[T]) {
		const name = "position"
		if v.kind != kindObject || len(v.members) != 1 {
			r.fail(CodeType, name, v, allowed)
			return
		}
		m := v.members[0]
		n, err := strconv.Atoi(m.value.text)
		switch {
		case m.name == "index" && m.value.kind == kindNumber && err == nil && n >= 1:
			into.index = n
		case m.name == "before" && m.value.kind == kindText:
			into.before = &m.value
		case m.name == "after" && m.value.kind == kindText:
			into.after = &m.value
		default:
			r.fail(CodeRefused, join(name, m.name), m.value, allowed)
		}
	}
}

// put puts one among others, at i if it says nothing else, and returns where it is.
func (o *ordered[T]) put(r *reader, all *[]T, i int, p *placed[T]) int {
	find := func(name string, given value, end, past int) int {
		if given.text == "" {
			return end
		}
		if at := o.places(*all, given.text); len(at) == 1 {
			return at[0] + past
		}
		r.fail(CodeRefused, "position."+name, given, o.by+" of another one in the list")
		return i
	}
	switch {
	case p.index > len(*all)+1:
		r.fail(CodeRefused, "position.index", value{kind: kindNumber, text: strconv.Itoa(p.index)}, fmt.Sprintf("a whole number from 1 to %d", len(*all)+1))
	case p.index > 0:
		i = p.index - 1
	case p.before != nil:
		i = find("before", *p.before, 0, 0)
	case p.after != nil:
		i = find("after", *p.after, len(*all), 1)
	}
	*all = slices.Insert(*all, i, p.of)
	return i
}
