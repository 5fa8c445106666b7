package suite

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/ropeline/ropeline/bench/machine"
	"github.com/ropeline/ropeline/bench/measurement"
)

// Result is what came of a benchmark. Its JSON form is what docs keep of it.
type Result struct {
	Name     string          `json:"name"`
	Title    string          `json:"title"`
	Question string          `json:"question"`
	Method   string          `json:"method"`
	Machine  machine.Machine `json:"machine"`
	Made     time.Time       `json:"made"`
	Rounds   int             `json:"rounds"`
	SelfTest SelfTest        `json:"self_test"`
	Seconds  float64         `json:"seconds"`        // that each server was measured for in each round
	Base     string          `json:"base,omitempty"` // the row by which the processor time of the others is told; empty: none
	Rows     []Row           `json:"rows"`
	Checks   []Checked       `json:"checks,omitempty"`

	figure figure
}

// Row is one server in one situation.
type Row struct {
	Server string `json:"server"`
	Case   string `json:"case,omitempty"` // the situation; empty: there is one only
	Conns  int    `json:"connections"`    // that were open
	// Missing has what is not on the machine, and who brings it. Then there are no figures.
	Missing []string `json:"missing,omitempty"`
	Samples []Sample `json:"samples,omitempty"` // one of each round, in their order
}

// Sample is one measurement.
type Sample struct {
	// Wanted is how many requests were due per second. 0: each connection sent as soon as it had an answer, so that latency is that of the
	// closed model, and hides what a server that stalls does to others.
	Wanted   float64 `json:"wanted,omitempty"`
	Rate     float64 `json:"rate"`   // whole answers per second
	CPU      float64 `json:"cpu_us"` // processor time of the server for each answer, in microseconds
	P50      float64 `json:"p50_ms"`
	P99      float64 `json:"p99_ms"`
	P999     float64 `json:"p999_ms"`
	Answered int64   `json:"answered"`
	// Bad counts answers with another status than was wanted, Failed requests without an answer.
	Bad    int64 `json:"bad"`
	Failed int64 `json:"failed"`
	// Waited is the part of the time in which the server could have run and something else had its core: how much the
	// machine was disturbed, unless the server is of several Processes, which have the core in turn. 0 where the kernel does not say.
	Waited    float64 `json:"waited"`
	Processes int     `json:"processes,omitempty"` // 0 is not known
	// GC is the part of CPU that the node spent on collecting garbage. 0: it is no node, or there was no collection.
	GC float64 `json:"gc,omitempty"`
	// Generator is the part of its core that the generator used.
	Generator float64 `json:"generator"`
	// Sender is processor time for each answer of who asks, in microseconds, where that is a part of what a site would have to
	// run. 0: it is not.
	Sender float64 `json:"sender_us,omitempty"`
	// Late is how late requests were sent by the generator's own fault, p99 in milliseconds. 0: not even half a microsecond, or
	// none was due at a time.
	Late float64 `json:"late_ms,omitempty"`
	// Warning says why the figures are the generator's rather than the server's. Empty: they are not.
	Warning string `json:"warning,omitempty"`
}

// Spread is a median with the least and the largest of the rounds.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// spreadOf returns the spread of values; zero if there are none.
func spreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	return Spread{measurement.Median(values), slices.Min(values), slices.Max(values)}
}

// spread returns the spread of one figure over the rounds.
func (r *Row) spread(of func(*Sample) float64) Spread {
	values := make([]float64, len(r.Samples))
	for i := range r.Samples {
		values[i] = of(&r.Samples[i])
	}
	return spreadOf(values)
}

// name is how the row is called in tables and checks.
func (r *Row) name() string {
	if r.Case == "" {
		return r.Server
	}
	return r.Server + ", " + r.Case
}

// row returns the row with that name; nil: there is none.
func (r *Result) row(name string) *Row {
	for i := range r.Rows {
		if r.Rows[i].name() == name {
			return &r.Rows[i]
		}
	}
	return nil
}

// AppendJSON appends the result as JSON that people can read.
func (r *Result) AppendJSON(dst []byte) ([]byte, error) {
	b, err := json.MarshalIndent(r, "", "  ")
	return append(append(dst, b...), '\n'), err
}

// Checked is something that has to come out, and what came out.
type Checked struct {
	Text  string  `json:"text"`
	Unit  string  `json:"unit,omitempty"`
	Value Spread  `json:"value"`
	Least float64 `json:"least,omitempty"` // 0: no bound
	Most  float64 `json:"most,omitempty"`  // 0: no bound
	// Verdict is by the interval of the median, which takes six rounds.
	Verdict measurement.Verdict `json:"verdict,omitempty"`
	// Warned is how many of the rounds have a sample in them of which the generator warns.
	Warned int `json:"warned,omitempty"`
	// Missing says that a server of it was not measured. Then there is no value.
	Missing bool `json:"missing,omitempty"`
}

// check is something that has to come out: a figure of each round, whose median has a bound.
type check struct {
	text, unit  string
	least, most float64
	rows        []string                 // what it needs
	of          func(s []Sample) float64 // one sample of each row
}

// run forms a check from what was measured.
func (c *check) run(r *Result) Checked {
	values, warned := c.values(r)
	out := Checked{Text: c.text, Unit: c.unit, Least: c.least, Most: c.most, Warned: warned}
	if len(values) == 0 {
		out.Missing = true
		return out
	}
	out.Value, out.Verdict = spreadOf(values), c.bound().Judge(values)
	return out
}

// values are one of each round in which all that it needs was measured. In warned of these the generator warns.
func (c *check) values(r *Result) (values []float64, warned int) {
	for round := range r.Rounds {
		var samples []Sample
		for _, name := range c.rows {
			if row := r.row(name); row != nil && round < len(row.Samples) {
				samples = append(samples, row.Samples[round])
			}
		}
		if len(samples) == len(c.rows) {
			values = append(values, c.of(samples))
			if slices.ContainsFunc(samples, func(s Sample) bool { return s.Warning != "" }) {
				warned++
			}
		}
	}
	return values, warned
}
