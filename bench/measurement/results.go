package measurement

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

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

func (r *Results) sample(c cell) (*benchmath.Sample, benchmath.Assumption) {
	values := slices.Clone(r.values[c]) // which a sample sorts
	return benchmath.NewSample(values, &benchmath.DefaultThresholds), r.units.GetAssumption(c.unit)
}

func (r *Results) summary(c cell) benchmath.Summary {
	s, assume := r.sample(c)
	return assume.Summary(s, Confidence)
}

// Median returns that of values as [golang.org/x/perf/benchmath] has it; 0 of none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return summaryOf(values).Center
}

func summaryOf(values []float64) benchmath.Summary {
	return benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds), Confidence)
}

// Verdict is what can be said of a bound.
type Verdict string

// The verdicts.
const (
	Held   Verdict = "held"   // the interval is within the bound
	Missed Verdict = "missed" // it is beyond
	Open   Verdict = "open"   // it has the bound in it, or there are too few values for one
)

// Judge says what comes of a bound by the interval of the median; without values it is open. Each value is
// one repetition.
func (b Bound) Judge(values []float64) Verdict {
	if len(values) == 0 {
		return Open
	}
	return b.judge(summaryOf(values))
}

func (b Bound) judge(s benchmath.Summary) Verdict {
	most, least := b.Most, b.Least
	if most == 0 {
		most = math.Inf(1)
	}
	if least == 0 {
		least = math.Inf(-1)
	}
	switch {
	case least <= s.Lo && s.Hi <= most && !math.IsInf(s.Hi-s.Lo, 0):
		return Held
	case s.Lo > most || s.Hi < least:
		return Missed
	}
	return Open
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
		return fmt.Sprintf("%v to %v", b.Least, b.Most)
	case b.Least > 0:
		return fmt.Sprintf("at least %v", b.Least)
	}
	return fmt.Sprintf("at most %v", b.Most)
}

// Judge prints what comes of the bounds of an entry, and returns how many are missed. Those of rows that are not there,
// because a server is missing or was not asked for, are left out.
func (r *Results) Judge(e *Entry, out io.Writer) (missed int) {
	for _, b := range e.Bounds {
		c := cell{e.Benchmark(b.Row), b.Unit}
		if len(r.values[c]) == 0 {
			continue
		}
		s := r.summary(c)
		verdict := b.judge(s)
		if verdict == Missed {
			missed++
		}
		fmt.Fprintf(out, "%s: %s: %s, want %s\n", verdict, b.what(), shown(s, b.Unit), b.want())
	}
	return missed
}

// shown writes a summary as "1.02µ sec (0.98µ to 1.07µ)".
func shown(s benchmath.Summary, unit string) string {
	class := benchunit.ClassOf(unit)
	of := func(v float64) string { return benchunit.Scale(v, class) }
	switch {
	case s.Lo == s.Hi:
		return of(s.Center) + " " + unit
	case math.IsInf(s.Hi-s.Lo, 0):
		return of(s.Center) + " " + unit + " (too few repetitions for an interval)"
	}
	return fmt.Sprintf("%s %s (%s to %s)", of(s.Center), unit, of(s.Lo), of(s.Hi))
}

// Compare prints each value of both results, and how it has changed, where the difference is no chance.
func Compare(out io.Writer, old, now *Results) error {
	text := "| row | unit | old | new | change |\n|---|---|---|---|---|\n"
	for _, c := range now.cells {
		after := now.summary(c)
		class := benchunit.ClassOf(c.unit)
		of := func(s benchmath.Summary) string {
			return benchunit.Scale(s.Center, class) + " ± " + s.PctRangeString()
		}
		if len(old.values[c]) == 0 {
			text += fmt.Sprintf("| %s | %s | | %s | new |\n", c.name, c.unit, of(after))
			continue
		}
		before := old.summary(c)
		a, assume := old.sample(c)
		b, _ := now.sample(c)
		test := assume.Compare(a, b)
		text += fmt.Sprintf("| %s | %s | %s | %s | %s (%s)%s |\n", c.name, c.unit, of(before), of(after),
			test.FormatDelta(before.Center, after.Center), test, now.sign(c, test, after.Center-before.Center))
	}
	for _, c := range old.cells {
		if len(now.values[c]) == 0 {
			text += fmt.Sprintf("| %s | %s | %s | | gone |\n", c.name, c.unit, benchunit.Scale(old.summary(c).Center, benchunit.ClassOf(c.unit)))
		}
	}
	_, err := io.WriteString(out, Aligned(text))
	return err
}

// sign says whether a change that is no chance is for the better.
func (r *Results) sign(c cell, test benchmath.Comparison, change float64) string {
	better := float64(r.units.GetBetter(c.unit))
	switch {
	case test.P > 0 && test.P >= test.Alpha || change*better == 0: // of exact values P is 0
		return ""
	case change*better > 0:
		return " better"
	}
	return " worse"
}
