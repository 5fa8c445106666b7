package admin

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// placed is something in an ordered list with where it is to be among the others. The zero
// place is where it is.
type placed[T any] struct {
	of            T
	index         int    // from 1 on; 0: not by that
	before, after *value // what another one is called, or "" for the first and the last
}

// calling is how one of several is called by which another has its place.
type calling[T any] struct {
	by     string                         // such as "the id"
	places func(all []T, so string) []int // of those that are called so
}

// withPlace makes fields of a T those of one with a place.
func withPlace[T any](fields []field[T], called calling[T]) (all []field[placed[T]]) {
	allowed := fmt.Sprintf(`an object with one of index (from 1 on), before (%[1]s of another one; "" for the first), after (%[1]s of another one; "" for the last)`, called.by)
	for _, f := range fields {
		p := field[placed[T]]{name: f.name, meaning: f.meaning, allowed: f.allowed, schema: f.schema, required: f.required, nullable: f.nullable}
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

// put puts it among others that do not have it, at i if it says nothing else, and returns
// where it is.
func (p *placed[T]) put(r *reader, all *[]T, i int, called calling[T]) int {
	find := func(name string, given value, end, past int) int {
		if given.text == "" {
			return end
		}
		if at := called.places(*all, given.text); len(at) == 1 {
			return at[0] + past
		}
		r.fail(CodeRefused, "position."+name, given, called.by+" of another one in the list")
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
