package measurement

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
	"golang.org/x/perf/benchunit"
)

// Confidence is that of all intervals.
const Confidence = 0.95

// cell is one unit of one row.
type cell struct{ name, unit string }

// Results are those of a file in Go's benchmark format, in the order in which they first came.
type Results struct {
	cells  []cell
	values map[cell][]float64
	units  benchfmt.UnitMetadataMap
}

// Read reads results. file is where they are from, for errors.
func Read(in io.Reader, file string) (*Results, error) {
	r := &Results{values: map[cell][]float64{}}
	reader := benchfmt.NewReader(in, file)
	for reader.Scan() {
		switch rec := reader.Result().(type) {
		case *benchfmt.SyntaxError:
			return nil, rec
		case *benchfmt.Result:
			for _, v := range rec.Values {
				c := cell{rec.Name.String(), v.Unit}
				if r.values[c] == nil {
					r.cells = append(r.cells, c)
				}
				r.values[c] = append(r.values[c], v.Value)
			}
		}
	}
	r.units = reader.Units()
	return r, reader.Err()
}

func (r *Results) summary(c cell) benchmath.Summary {
	values := slices.Clone(r.values[c]) // which a sample sorts
	return r.units.GetAssumption(c.unit).Summary(benchmath.NewSample(values, &benchmath.DefaultThresholds), Confidence)
}

// Median returns that of values as [golang.org/x/perf/benchmath] has it; 0 of none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds), Confidence).Center
}

// verdict is what can be said of a bound, by the interval of the median.
type verdict string

const (
	held   verdict = "held"   // the interval is within the bound
	missed verdict = "missed" // it is beyond
	open   verdict = "open"   // it has the bound in it, or there are too few values for one
)

func (b Bound) judge(s benchmath.Summary) verdict {
	most, least := cmp.Or(b.Most, math.Inf(1)), cmp.Or(b.Least, math.Inf(-1))
	switch {
	case math.IsInf(s.Hi-s.Lo, 0): // with too few values it may have one end
		return open
	case least <= s.Lo && s.Hi <= most:
		return held
	case s.Lo > most || s.Hi < least:
		return missed
	}
	return open
}

// String says what is promised.
func (b Bound) String() string { return b.what() + ": " + b.want() + " (" + b.Unit + ")" }

func (b Bound) what() string { return cmp.Or(b.Text, b.Row) }

// want says what a bound allows.
func (b Bound) want() string {
	switch {
	case b.Most == NoneAtAll:
		return "none"
	case b.Most > 0 && b.Least > 0:
		return number(b.Least, b.Unit) + " to " + number(b.Most, b.Unit)
	case b.Least > 0:
		return "at least " + number(b.Least, b.Unit)
	}
	return "at most " + number(b.Most, b.Unit)
}

// Judge prints what comes of the bounds of an entry, and returns how many are missed. Those of rows that are not there,
// because a server is missing or was not asked for, are left out.
func (r *Results) Judge(e *Entry, out io.Writer) (misses int) {
	for _, b := range e.Bounds {
		c := cell{e.Benchmark(b.Row), b.Unit}
		if len(r.values[c]) == 0 {
			continue
		}
		s := r.summary(c)
		v := b.judge(s)
		if v == missed {
			misses++
		}
		unit := b.Unit
		if slices.ContainsFunc(e.Units, func(u Unit) bool { return u.Name == unit && u.Aside }) {
			unit = "" // the text has it
		}
		fmt.Fprintf(out, "%s: %s: %s, want %s\n", v, b.what(), shown(s, unit), b.want())
	}
	return misses
}

// Table is a table of all rows in Markdown, with what the units mean: a column for each key of their names, and one for each
// unit that has values: the median, with the least and the most where there are several.
func (r *Results) Table(e *Entry) string {
	var keys, rows []string
	var units []Unit
	for _, c := range r.cells {
		i := slices.IndexFunc(e.Units, func(u Unit) bool { return u.Name == c.unit })
		if i < 0 || e.Units[i].Aside {
			continue
		}
		if !slices.Contains(rows, c.name) {
			rows = append(rows, c.name)
			for key := range keysOf(e, c.name) {
				if !slices.Contains(keys, key) {
					keys = append(keys, key)
				}
			}
		}
	}
	if len(rows) == 0 {
		return ""
	}
	head, rule := "|", "|"
	for _, key := range keys {
		head, rule = head+" "+key+" |", rule+"---|"
	}
	var legend []string
	for _, u := range e.Units {
		if !u.Aside && slices.ContainsFunc(r.cells, func(c cell) bool { return c.unit == u.Name }) {
			units = append(units, u)
			head, rule = head+" "+u.Name+" |", rule+"--:|"
			legend = append(legend, fmt.Sprintf("`%s`: %s", u.Name, u.Meaning))
		}
	}
	text := head + "\n" + rule + "\n"
	for _, name := range rows {
		values := maps.Collect(keysOf(e, name))
		text += "|"
		for _, key := range keys {
			text += " " + values[key] + " |"
		}
		for _, u := range units {
			text += " " + spread(r.values[cell{name, u.Name}], u.Name) + " |"
		}
		text += "\n"
	}
	return text + "\n" + strings.Join(legend, "; ") + ".\n"
}

// keysOf are the keys in the name of a row, with their values; a part without a key is called row.
func keysOf(e *Entry, name string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		rest := strings.TrimPrefix(strings.TrimPrefix(name, e.Benchmark("")), "/")
		for part := range strings.SplitSeq(rest, "/") {
			key, value, ok := strings.Cut(strings.NewReplacer("_", " ", slash, "/").Replace(part), "=")
			if !ok {
				key, value = "row", key
			}
			if !yield(key, value) {
				return
			}
		}
	}
}

// spread writes values as "1.02µ (0.98µ to 1.07µ)": the median, the least and the most.
func spread(values []float64, unit string) string {
	if len(values) == 0 {
		return ""
	}
	least, most := number(slices.Min(values), unit), number(slices.Max(values), unit)
	if least == most {
		return least
	}
	return fmt.Sprintf("%s (%s to %s)", number(Median(values), unit), least, most)
}

// number writes times and sizes with a prefix of their unit, whole numbers as they are, and of others three digits.
func number(v float64, unit string) string {
	switch {
	case v == 0:
		return "0"
	case strings.Contains(unit, "sec"), strings.HasSuffix(unit, "B"), strings.HasSuffix(unit, "B/s"):
		return benchunit.Scale(v, benchunit.ClassOf(unit))
	case v == math.Trunc(v), math.Abs(v) >= 100:
		return fmt.Sprintf("%.0f", v)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// shown writes a summary as "1.02µ sec (0.98µ to 1.07µ)".
func shown(s benchmath.Summary, unit string) string {
	of := func(v float64) string { return number(v, unit) }
	text := strings.TrimSpace(of(s.Center) + " " + unit)
	switch {
	case s.Lo == s.Hi:
		return text
	case math.IsInf(s.Hi-s.Lo, 0):
		return text + " (too few repetitions for an interval)"
	}
	return fmt.Sprintf("%s (%s to %s)", text, of(s.Lo), of(s.Hi))
}
