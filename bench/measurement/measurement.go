// Package measurement is what all measurements have in common: what each asks and promises, the options it
// takes, the results that it writes in Go's benchmark format, and the verdicts on its bounds.
//
// Values, medians, intervals and comparisons are those of golang.org/x/perf, so that benchstat says the
// same of a file of results.
package measurement

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"
	"golang.org/x/perf/benchfmt"

	"github.com/ropeline/ropeline/bench/docpage"
	"github.com/ropeline/ropeline/bench/machine"
)

// Entry is one measurement.
type Entry struct {
	Name     string // for the command line
	Question string
	Method   string
	Page     string // of docs, which has its table; "": none
	Units    []Unit // of its rows
	Bounds   []Bound
	Needs    []string // programs without which nothing can be measured; [Ropeline] is the one that is measured
	Cores    []int    // that it is kept on, with what it starts unless that is put elsewhere; none: any
	Quick    []string // "option=value" of a run that is as short as can be
	// New binds options to what a run goes by, and returns the run.
	New func(options *pflag.FlagSet) func(context.Context, *Run) error
}

// Unit is what values are in, as Go's benchmark format has it: in base units, such as sec or B.
type Unit struct {
	Name    string
	Meaning string
	Better  string // "higher", "lower"; "": neither
	Exact   bool   // the same each time, as in virtual time: one value is enough
}

// Bound is what the median of a row has to keep.
type Bound struct {
	Row         string // as given to [Run.Add]
	Unit        string
	Least, Most float64 // 0: no such bound
	Text        string  // what it is about; "": Row says it
}

// Ropeline is the program that a run is told of.
const Ropeline = "ropeline"

// NoneAtAll is a Most below which only nothing is.
const NoneAtAll = 0.5

// Maker is the command that makes the table of an entry, as the marks in its page have it.
func (e *Entry) Maker() string { return "ropeline-bench run " + e.Name }

// Options are those of a run that is not Set yet, and the run.
func (e *Entry) Options() (*pflag.FlagSet, func(context.Context, *Run) error) {
	options := pflag.NewFlagSet(e.Name, pflag.ContinueOnError)
	options.SortFlags = false
	return options, e.New(options)
}

// Set sets options, each as name=value.
func (e *Entry) Set(options *pflag.FlagSet, all ...string) error {
	for _, one := range all {
		name, value, _ := strings.Cut(one, "=")
		if err := options.Set(name, value); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	return nil
}

// Benchmark returns the name of a row in files of results.
func (e *Entry) Benchmark(row string) string {
	words := strings.FieldsFunc(e.Name, func(r rune) bool { return r == '-' })
	for i, w := range words {
		words[i] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.TrimSuffix(strings.Join(words, "")+"/"+row, "/")
}

// Row returns the name of a row by what it is of: pairs of keys and values, of which empty ones are left out.
func Row(pairs ...string) string {
	var parts []string
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			parts = append(parts, pairs[i]+"="+strings.NewReplacer(" ", "_", "/", ":", "\t", "_").Replace(pairs[i+1]))
		}
	}
	return strings.Join(parts, "/")
}

// Run is what a run is given, and where its results go. Tell may be called by any goroutine, the rest by one.
type Run struct {
	Binary string    // the program of ropeline
	Self   string    // that of the measurements, which is also some of the servers
	Caddy  string    // the program; "": the one in the path
	Docs   string    // the folder of the documentation; "": tables are printed
	Out    io.Writer // for tables
	Log    io.Writer // for how far it is

	mu     sync.Mutex // guards what Log writes to
	entry  *Entry
	writer *benchfmt.Writer
	err    error
}

// Begin has r be a run of e, whose results go to w.
func (r *Run) Begin(e *Entry, w io.Writer) {
	r.entry, r.writer, r.err = e, benchfmt.NewWriter(w), nil
	for _, u := range e.Units {
		if u.Better != "" {
			r.write(unitIs(u.Name, "better", u.Better))
		}
		if u.Exact {
			r.write(unitIs(u.Name, "assume", "exact"))
		}
	}
}

func unitIs(unit, key, value string) *benchfmt.UnitMetadata {
	return &benchfmt.UnitMetadata{UnitMetadataKey: benchfmt.UnitMetadataKey{Unit: unit, Key: key}, OrigUnit: unit, Value: value}
}

func (r *Run) write(rec benchfmt.Record) { r.err = errors.Join(r.err, r.writer.Write(rec)) }

// Err says what could not be written.
func (r *Run) Err() error { return r.err }

// Values are those of one row, by their units, which are some of the entry's.
type Values map[string]float64

// Add takes one repetition of a row.
func (r *Run) Add(row string, values Values) {
	res := &benchfmt.Result{Name: benchfmt.Name(r.entry.Benchmark(row)), Iters: 1, Config: []benchfmt.Config{
		{Key: "goos", Value: []byte(runtime.GOOS), File: true},
		{Key: "goarch", Value: []byte(runtime.GOARCH), File: true},
		{Key: "pkg", Value: []byte("ropeline-bench"), File: true},
	}}
	for _, u := range r.entry.Units {
		if v, ok := values[u.Name]; ok {
			res.Values = append(res.Values, benchfmt.Value{Value: v, Unit: u.Name})
		}
	}
	if len(res.Values) != len(values) {
		r.err = errors.Join(r.err, fmt.Errorf("%s: of the values %v some are in units that %s does not have", row, values, r.entry.Name))
		return
	}
	r.write(res)
}

// Tell says how far a run is.
func (r *Run) Tell(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.Log, format+"\n", args...)
}

// PagePath is the path of the entry's page; "": tables are printed.
func (r *Run) PagePath() string {
	if r.Docs == "" {
		return ""
	}
	return filepath.Join(r.Docs, r.entry.Page)
}

// Table puts a table into the entry's page, or prints it.
func (r *Run) Table(text string) error {
	if r.Docs == "" {
		_, err := io.WriteString(r.Out, Aligned(text))
		return err
	}
	return docpage.Write(r.Out, r.PagePath(), r.entry.Maker(), text)
}

// TableWithFigures is Table for one that has all its figures beside it, and says on what machine they came about, with the
// versions of programs, each of which has the command that says its own.
func (r *Run) TableWithFigures(ctx context.Context, text string, programs map[string][]string, figures any) error {
	if r.Docs == "" {
		return r.Table(text)
	}
	return docpage.WriteResult(r.Out, r.PagePath(), r.entry.Name, text,
		docpage.Result{Maker: r.entry.Maker(), Made: time.Now(), Machine: machine.Of(ctx, programs), Figures: figures})
}

// Aligned fills the cells of the tables of a Markdown text with spaces, so that people can read them on a terminal.
func Aligned(text string) string {
	var out bytes.Buffer
	var rows [][]string
	flush := func() {
		var widths []int
		for _, cells := range rows {
			for i, c := range cells {
				if i == len(widths) {
					widths = append(widths, 0)
				}
				if !isRule(c) {
					widths[i] = max(widths[i], utf8.RuneCountInString(c))
				}
			}
		}
		for _, cells := range rows {
			for i, c := range cells {
				fill, n := " ", widths[i]-utf8.RuneCountInString(c)
				if isRule(c) {
					fill, n, c = "-", widths[i], ""
				}
				out.WriteString("| " + c + strings.Repeat(fill, n) + " ")
			}
			out.WriteString("|\n")
		}
		rows = nil
	}
	for line := range strings.Lines(text) {
		if inner, ok := strings.CutPrefix(strings.TrimSpace(line), "|"); ok {
			cells := strings.Split(strings.TrimSuffix(inner, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
			continue
		}
		flush()
		out.WriteString(line)
	}
	flush()
	return out.String()
}

// isRule reports whether a cell is of the line below the head of a table.
func isRule(cell string) bool { return len(cell) >= 3 && strings.Trim(cell, "-:") == "" }
