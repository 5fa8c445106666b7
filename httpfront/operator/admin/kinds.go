package admin

import "time"

// readOnly is a field that is only shown.
func readOnly[T any](name, meaning string, s Schema, show func(t *T, now time.Time) any) field[T] {
	return field[T]{name: name, meaning: meaning, schema: always(s), show: show}
}

// moment is a time that is only shown; null: there is none.
func moment[T any](name, meaning string, at func(t *T, now time.Time) time.Time) field[T] {
	f := readOnly(name, meaning, Schema{"type": "string", "format": "date-time"}, func(t *T, now time.Time) any {
		if at := at(t, now); !at.IsZero() {
			return at.UTC().Format(time.RFC3339Nano)
		}
		return nil
	})
	f.nullable = true
	return f
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
