package suite

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ropeline/ropeline/bench/measurement"
)

// column is one of a table: cells of rows that were measured.
type column struct {
	head string
	cell func(*Row) string
}

// columns returns those that tell something.
func (r *Result) columns() []column {
	all := []column{r.spreads("µs CPU per request", func(s *Sample) float64 { return s.CPU })}
	if r.base() != "" {
		all = append(all, column{"by " + r.base(), r.byBase})
	}
	if r.has(sender) {
		all = append(all, r.spreads("and of who asks", sender))
	}
	all = append(all, r.spreads("requests/s", func(s *Sample) float64 { return s.Rate }))
	if r.has(wanted) {
		all = append(all, marked(r.spreads("p99.9 ms", func(s *Sample) float64 { return s.P999 })))
	}
	all = append(all, marked(column{"p50, p99 ms", func(row *Row) string {
		return number(row.spread(func(s *Sample) float64 { return s.P50 }).Median) + ", " + number(row.spread(func(s *Sample) float64 { return s.P99 }).Median)
	}}))
	if r.has(wanted) {
		all = append(all, marked(column{"late p99 ms", func(row *Row) string {
			if row.spread(wanted).Max == 0 {
				return ""
			}
			return row.spread(func(s *Sample) float64 { return s.Late }).text()
		}}))
	}
	if gc := func(s *Sample) float64 { return s.GC }; r.has(gc) {
		all = append(all, column{"collecting", func(row *Row) string {
			if row.spread(gc).Max == 0 {
				return ""
			}
			return fmt.Sprintf("%.1f %%", row.spread(gc).Median*100)
		}})
	}
	return append(all, column{"not as wanted", (*Row).unwanted},
		column{"generator", func(row *Row) string {
			return percent(row.spread(func(s *Sample) float64 { return s.Generator }).Median)
		}})
}

func wanted(s *Sample) float64 { return s.Wanted }

// mark stands behind figures of which the generator warns in some round.
const mark = " †"

// marked is a column whose figures have the mark where they need it.
func marked(c column) column {
	return column{c.head, func(row *Row) string {
		cell := c.cell(row)
		if cell != "" && row.warned() > 0 {
			cell += mark
		}
		return cell
	}}
}

// warned is how many of the samples the generator warns of.
func (row *Row) warned() (n int) {
	for _, s := range row.Samples {
		if s.Warning != "" {
			n++
		}
	}
	return n
}

// has reports whether some row has a figure.
func (r *Result) has(of func(*Sample) float64) bool {
	return slices.ContainsFunc(r.Rows, func(row Row) bool { return row.spread(of).Max > 0 })
}

// spreads is a column with a figure of those rows that have it.
func (r *Result) spreads(head string, of func(*Sample) float64) column {
	return column{head, func(row *Row) string {
		if row.spread(of).Max == 0 {
			return ""
		}
		return row.spread(of).text()
	}}
}

func sender(s *Sample) float64 { return s.Sender }

// base is the row by which the others' processor time is told.
func (r *Result) base() string {
	if r.row(r.Base) == nil {
		return ""
	}
	return r.Base
}

// byBase is the processor time of a row by that of the base.
func (r *Result) byBase(row *Row) string {
	c := check{rows: []string{row.name(), r.Base}, of: cpuRatio}
	got := c.run(r)
	if got.Missing {
		return ""
	}
	return fmt.Sprintf("× %.2f", got.Value.Median)
}

// unwanted says how many answers were not as wanted, or did not come, over all rounds.
func (row *Row) unwanted() string {
	var bad, failed int64
	for _, s := range row.Samples {
		bad, failed = bad+s.Bad, failed+s.Failed
	}
	if bad+failed == 0 {
		return "0"
	}
	return fmt.Sprintf("%d, %d without an answer", bad, failed)
}

// text writes a spread as "12.1 (11.9 to 12.6)".
func (s Spread) text() string {
	if number(s.Min) == number(s.Max) {
		return number(s.Median)
	}
	return fmt.Sprintf("%s (%s to %s)", number(s.Median), number(s.Min), number(s.Max))
}

// number writes three digits, and all of those before the point.
func number(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1000:
		return grouped(math.Round(v))
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// grouped writes a whole number with commas between thousands.
func grouped(v float64) string {
	text := fmt.Sprintf("%.0f", v)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func percent(part float64) string { return fmt.Sprintf("%.0f %%", part*100) }

// Words says what came of a check: "held: TEXT: 1.02 (0.98 to 1.07) µs, want at most 1.3".
func (c *Checked) Words() string {
	if c.Missing {
		return fmt.Sprintf("not measured: %s", c.Text)
	}
	unit := ""
	if c.Unit != "" {
		unit = " " + c.Unit
	}
	want := fmt.Sprintf("at most %v", c.Most)
	switch {
	case c.Most == measurement.NoneAtAll:
		want = "none"
	case c.Least > 0:
		want = fmt.Sprintf("at least %v", c.Least)
	}
	words := fmt.Sprintf("%s: %s: %s%s, want %s", c.Verdict, c.Text, c.Value.text(), unit, want)
	if c.Warned > 0 {
		words += fmt.Sprintf(" (%s rounds in which the generator was late or had no time left: %d)", strings.TrimSpace(mark), c.Warned)
	}
	return words
}

// disturbed is how much of the time servers may wait for their core, by the median, before the figures are said to be of little use.
const disturbed = 0.1

// Line says on what machine a result came about, and how disturbed that was.
func (r *Result) Line() string {
	var waited []float64
	for i := range r.Rows {
		for _, s := range r.Rows[i].Samples {
			if s.Processes <= 1 { // else they wait for each other
				waited = append(waited, s.Waited)
			}
		}
	}
	line := r.Machine.String() + fmt.Sprintf(". Medians of %d rounds of %v s each, with the least and the most.", r.Rounds, r.Seconds)
	if w := spreadOf(waited); w.Max > 0 {
		line += fmt.Sprintf(" Servers of one process waited for their core %s of the time, %s at worst.", percent(w.Median), percent(w.Max))
		if w.Median > disturbed {
			line += " **Other programs were at work: these figures say little, and less of latencies than of ratios.**"
		}
	}
	return line + r.warnings() + r.SelfTest.words()
}

// warnings says which rows the generator warns of, in how many of their rounds.
func (r *Result) warnings() string {
	var rows []string
	for i := range r.Rows {
		if row := &r.Rows[i]; row.warned() > 0 {
			rows = append(rows, fmt.Sprintf("%s in %d of %d", row.name(), row.warned(), len(row.Samples)))
		}
	}
	if len(rows) == 0 {
		return ""
	}
	return fmt.Sprintf(" **%s The generator was late, or had no time of its core left: these latencies are its own as well** (%s).", strings.TrimSpace(mark), strings.Join(rows, "; "))
}

// words says what the generator sustained; empty: it was not asked.
func (s SelfTest) words() string {
	if s.Closed == 0 {
		return ""
	}
	took := fmt.Sprintf(" Before, the generator took %s/s from a server with nothing in it, at %s µs each, and held ", number(s.Closed), number(s.CPU))
	if s.Sustains == 0 {
		return took + "no constant rate in time: " + s.Why + "."
	}
	return took + number(s.Sustains) + "/s in time."
}

// Markdown writes the table, what has to come out, and the machine, as the page has them.
func (r *Result) Markdown() string {
	var b strings.Builder
	columns := r.columns()
	b.WriteString("| server |")
	for _, c := range columns {
		b.WriteString(" " + c.head + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")
	for i := range r.Rows {
		row := &r.Rows[i]
		cells := make([]string, len(columns))
		if len(row.Missing) > 0 {
			cells[0] = "missing: " + strings.Join(row.Missing, ", ")
		} else if len(row.Samples) > 0 {
			for j, c := range columns {
				cells[j] = c.cell(row)
			}
		}
		fmt.Fprintf(&b, "| %s | %s |\n", row.name(), strings.Join(cells, " | "))
	}
	if len(r.Checks) > 0 {
		b.WriteString("\n")
		for i := range r.Checks {
			fmt.Fprintf(&b, "- %s\n", r.Checks[i].Words())
		}
	}
	fmt.Fprintf(&b, "\n%s\n", r.Line())
	return b.String()
}
