package settings

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ropeline/ropeline/node/nearest"
)

// Of returns a kind of values that are written as one text. parse reports whether that is
// allowed; if valid is nil, so is every V.
func Of[V any](spec Spec, parse func(string) (V, bool), text func(V) string, valid func(V) bool) Kind[V] {
	k := Kind[V]{Spec: spec, Text: text, Valid: valid}
	if k.Schema == nil {
		k.Schema = map[string]any{"type": "string"}
	}
	k.Set = func(into *V, s string) error {
		v, ok := parse(s)
		if !ok || valid != nil && !valid(v) {
			return Refuse(s, spec.Allowed)
		}
		*into = v
		return nil
	}
	return k
}

// Parsed is Of for texts about which parse itself says what is wrong.
func Parsed[V any](spec Spec, parse func(string) (V, error), text func(V) string) Kind[V] {
	k := Of(spec, nil, text, nil)
	k.Set = func(into *V, s string) error {
		v, err := parse(s)
		if err == nil {
			*into = v
		}
		return err
	}
	return k
}

// String is a text that is kept as it is. ok reports whether it is allowed; nil: all are.
func String(typ, allowed string, ok func(string) bool) Kind[string] {
	return Of(Spec{Type: typ, Allowed: allowed}, asItIs, itself, ok)
}

func asItIs(s string) (string, bool) { return s, true }
func itself(s string) string         { return s }

// Int is a whole number.
func Int(lo, hi int) Kind[int] {
	return Of(
		Spec{Type: "number", Allowed: fmt.Sprintf("a whole number from %d to %d", lo, hi), Schema: map[string]any{"type": "integer", "minimum": lo, "maximum": hi}},
		parsed(strconv.Atoi), strconv.Itoa, func(n int) bool { return n >= lo && n <= hi })
}

// Float is a number.
func Float(lo, hi float64) Kind[float64] {
	return Of(
		Spec{Type: "number", Allowed: fmt.Sprintf("a number from %g to %g", lo, hi), Schema: map[string]any{"type": "number", "minimum": lo, "maximum": hi}},
		parsed(func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }),
		func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) },
		func(f float64) bool { return f >= lo && f <= hi }) // not NaN, then
}

func parsed[V any](parse func(string) (V, error)) func(string) (V, bool) {
	return func(s string) (V, bool) {
		v, err := parse(s)
		return v, err == nil
	}
}

// Code is one of a few numbers.
func Code(codes ...int) Kind[int] {
	words, enum := make([]string, len(codes)), make([]any, len(codes))
	for i, code := range codes {
		words[i], enum[i] = strconv.Itoa(code), code
	}
	last := len(words) - 1
	return Of(
		Spec{Type: "code", Allowed: strings.Join(words[:last], ", ") + " or " + words[last], Schema: map[string]any{"type": "integer", "enum": enum}},
		parsed(strconv.Atoi), strconv.Itoa, func(n int) bool { return slices.Contains(codes, n) })
}

// durations is how a duration may be written: what is left of it is for time.ParseDuration.
const durations = `^\+?([0-9]*\.?[0-9]*(h|m|s|ms|us|µs|ns))+$|^0$`

// Duration is a time span such as "20s" or "1m30s", in whole steps.
func Duration(lo, hi, step time.Duration) Kind[time.Duration] {
	allowed := fmt.Sprintf("a duration from %s to %s, such as %s", Span(lo), Span(hi), Span(between(lo, hi)))
	if step == time.Second {
		allowed += ", in whole seconds"
	}
	return Of(
		Spec{Type: "duration", Allowed: allowed, Schema: map[string]any{"type": "string", "pattern": durations}},
		parsed(time.ParseDuration), Span, func(d time.Duration) bool { return d >= lo && d <= hi && d%step == 0 })
}

// between returns a round duration in the middle, on a scale of magnitudes.
func between(lo, hi time.Duration) time.Duration {
	middle := time.Duration(math.Sqrt(float64(max(lo, time.Second)) * float64(hi)))
	best := hi
	for _, d := range []time.Duration{time.Hour, 10 * time.Minute, 5 * time.Minute, time.Minute, 20 * time.Second, 5 * time.Second, time.Second} {
		if d >= lo && d <= hi && best > middle+middle/10 {
			best = d
		}
	}
	return best
}

// Span writes a duration without the parts that are nought: 5m0s as 5m.
func Span(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// OrNever takes 0 for "not at all", which is kept as less than 0, because the zero value
// stands for the default.
func OrNever(k Kind[time.Duration]) Kind[time.Duration] {
	within := k.Valid
	return Of(
		Spec{Type: k.Type, Allowed: k.Allowed + "; 0s for not at all", Schema: k.Schema},
		func(s string) (time.Duration, bool) {
			d, err := time.ParseDuration(s)
			if d == 0 {
				return -1, err == nil
			}
			return d, err == nil && d > 0
		},
		func(d time.Duration) string { return Span(max(0, d)) },
		func(d time.Duration) bool { return d < 0 || within(d) })
}

// Word is one of a few words.
func Word[W ~string](words ...W) Kind[W] {
	all, enum := make([]string, len(words)), make([]any, len(words))
	for i, w := range words {
		all[i], enum[i] = string(w), string(w)
	}
	k := Of(
		Spec{Type: "word", Allowed: "one of " + strings.Join(all, ", "), Schema: map[string]any{"type": "string", "enum": enum}},
		func(s string) (W, bool) { return W(s), true }, func(w W) string { return string(w) },
		func(w W) bool { return slices.Contains(words, w) })
	set := k.Set
	k.Set = func(into *W, s string) error {
		err := set(into, s)
		if near, ok := nearest.Name(s, all); err != nil && ok {
			err = fmt.Errorf("%w; did you mean %s?", err, near)
		}
		return err
	}
	return k
}

// Truth is true or false.
func Truth() Kind[bool] {
	return Of(
		Spec{Type: "bool", Allowed: "true or false", Schema: map[string]any{"type": "boolean"}}, // by that type the flag library knows values that may stand alone
		func(s string) (bool, bool) { return s == "true", s == "true" || s == "false" }, strconv.FormatBool, nil)
}

// Not is true where what is kept is false.
func Not() Kind[bool] {
	k := Truth()
	return Of(k.Spec, func(s string) (bool, bool) { return s == "false", s == "true" || s == "false" }, func(b bool) string { return strconv.FormatBool(!b) }, nil)
}

// Text is a text of so many characters at most.
func Text(most int, allowed string) Kind[string] {
	return Of(Spec{Type: "text", Allowed: allowed, Schema: map[string]any{"type": "string", "maxLength": most}},
		asItIs, itself, func(s string) bool { return utf8.RuneCountInString(s) <= most })
}

// Expression is a text in the language of rules, which is not looked into here.
func Expression(example string) Kind[string] {
	return String("expression", "an expression of up to 4096 characters, such as "+example, func(s string) bool { return s != "" })
}

// Normal is a text that may be written in several ways, of which normal makes one, and says
// whether it is allowed; that one is kept. valid reports whether a text is such a one.
func Normal(typ, allowed string, normal func(string) (string, bool), valid func(string) bool) Kind[string] {
	return Of(Spec{Type: typ, Allowed: allowed}, normal, itself, valid)
}

// Letters is a text of least to most ASCII letters, digits and others.
func Letters(least, most int, others string) Kind[string] {
	allowed := fmt.Sprintf("%d to %d letters, digits or any of %q", least, most, others)
	if least == 0 {
		allowed = fmt.Sprintf(`up to %d letters, digits or any of %q; "" for none`, most, others)
	}
	return String("name", allowed, func(s string) bool {
		return len(s) >= least && len(s) <= most && !strings.ContainsFunc(s, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(others, r))
		})
	})
}

// ParseTime reads a time of RFC 3339, section 5.6, whose letters may be lower case. The time is in
// the offset that it is written in, wherever the program runs.
func ParseTime(s string) (time.Time, error) {
	s = strings.ToUpper(s)
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || strings.HasSuffix(s, "Z") {
		return t.UTC(), err
	}
	_, offset := t.Zone()
	return t.In(time.FixedZone("", offset)), nil
}

// FormatTime writes a time so that ParseTime reads the same, offset included: an offset of no hours
// is another one than Z, as clients compare texts.
func FormatTime(t time.Time) string {
	if t.Location() == time.UTC {
		return t.Format(time.RFC3339Nano)
	}
	return t.Format("2006-01-02T15:04:05.999999999-07:00")
}

// Moment is a time, written with its offset so that it is the same on every node, and comes back as
// it was given. The zero one is none.
func Moment() Kind[time.Time] {
	const allowed = "a time as of RFC 3339 with its zone, such as 2026-11-27T10:00:00+01:00 or 2026-11-27T09:00:00Z"
	return Of(
		Spec{Type: "time", Allowed: allowed, Schema: map[string]any{"type": "string", "format": "date-time"}, Null: true},
		func(s string) (time.Time, bool) {
			t, err := ParseTime(s)
			year := t.UTC().Year()
			return t, err == nil && year >= 1970 && year <= 9999 && t.Year() >= 1970 && t.Year() <= 9999 // beyond which it cannot be written again
		},
		func(t time.Time) string {
			if t.IsZero() {
				return ""
			}
			return FormatTime(t)
		}, nil)
}

// ZeroIs takes the zero V for another one.
func ZeroIs[V comparable](k Kind[V], other V) Kind[V] {
	var zero V
	valid, text := k.Valid, k.Text
	k.Valid = func(v V) bool { return v == zero || valid == nil || valid(v) }
	k.Text = func(v V) string {
		if v == zero {
			v = other
		}
		return text(v)
	}
	return k
}

// Several is a list of values, of which each is there once. most is how many; 0: as many as
// one likes.
func Several[V comparable](item Kind[V], most int) Kind[[]V] {
	k := Row(item)
	if most > 0 {
		k.Schema["maxItems"] = most
	}
	add := k.Set
	k.Set = func(into *[]V, s string) error {
		was := *into
		err := add(into, s)
		if err == nil && slices.Contains(was, (*into)[len(was)]) {
			*into = was
		}
		return err
	}
	return k
}

// Row is a list of values that may be there twice.
func Row[V any](item Kind[V]) Kind[[]V] {
	allowed := "a list, each " + item.Allowed
	if words, ok := strings.CutPrefix(item.Allowed, "one of "); ok {
		allowed = "a list of " + words
	}
	k := Kind[[]V]{Spec: Spec{Type: item.Type + ",...", Allowed: allowed, Schema: map[string]any{"type": "array", "items": item.Schema}}}
	k.Set = func(into *[]V, s string) error {
		var v V
		if err := item.Set(&v, s); err != nil {
			return err
		}
		*into = append(slices.Clip(*into), v) // it may share its array with what it was inherited from
		return nil
	}
	k.Items = func(all []V) []string {
		texts := make([]string, len(all))
		for i, v := range all {
			texts[i] = item.Text(v)
		}
		return texts
	}
	k.Valid = func(all []V) bool {
		return item.Valid == nil || !slices.ContainsFunc(all, func(v V) bool { return !item.Valid(v) })
	}
	return k
}

// Optional is a value that may be left out, which is not the same as its zero.
func Optional[V any](of Kind[V]) Kind[*V] {
	k := Kind[*V]{Spec: of.Spec}
	k.Null = true
	k.Set = func(into **V, s string) error {
		v := new(V)
		if err := of.Set(v, s); err != nil {
			return err
		}
		*into = v
		return nil
	}
	k.Text = func(v *V) string {
		if v == nil {
			return ""
		}
		return of.Text(*v)
	}
	k.Valid = func(v *V) bool { return v == nil || of.Valid == nil || of.Valid(*v) }
	return k
}

// number is a number as text, which JSON takes as it is.
func number(s string) json.Number { return json.Number(s) }
