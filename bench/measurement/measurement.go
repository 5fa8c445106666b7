// Package measurement is what all measurements have in common: what each asks and promises, the options it
// takes, the results that it writes in Go's benchmark format, and the verdicts on its bounds.
//
// Values, medians and intervals are those of golang.org/x/perf, so that benchstat says the same of a file of
// results, and compares two of them.
package measurement

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/perf/benchfmt"
)

// Entry is one measurement.
type Entry struct {
	Name     string // for the command line
	Question string
	Method   string
	Page     string // of docs, which has its table; "": none
	Units    []Unit // of its rows
	Bounds   []Bound
	Needs    []string            // programs without which nothing can be measured; [Ropeline] is the one that is measured
	Cores    []int               // that it is kept on, with what it starts unless that is put elsewhere; none: any
	Quick    []string            // "option=value" of a run that is as short as can be
	Programs map[string][]string // whose versions are told with a table, each with the command that prints it
	// New binds options to what a run goes by, and returns the run.
	New func(options *pflag.FlagSet) func(context.Context, *Run) error
}

// Unit is what values are in, as Go's benchmark format has it: in base units, such as sec or B.
type Unit struct {
	Name    string
	Meaning string
	Better  string // "higher", "lower"; "": neither
	Exact   bool   // the same each time, as in virtual time: one value is enough
	Aside   bool   // only bounds are in it: tables leave it out
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

// slash stands in names of rows for the one that parts their keys.
const slash = "∕"

// Row returns the name of a row by what it is of: pairs of keys and values, of which empty ones are left out.
func Row(pairs ...string) string {
	var parts []string
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			parts = append(parts, strings.NewReplacer(" ", "_", "/", slash, "\t", "_").Replace(pairs[i]+"="+pairs[i+1]))
		}
	}
	return strings.Join(parts, "/")
}

// Run is what a run is given, and where its results go. Tell may be called by any goroutine, the rest by one.
type Run struct {
	Binary  string    // the program of ropeline
	Self    string    // that of the measurements, which is also some of the servers
	Caddy   string    // the program; "": the one in the path
	Docs    string    // the folder of the documentation; "": tables are printed
	Command string    // the command line of the run, for its table
	Quick   bool      // no bounds are judged: a short run keeps no promise of a long one
	Out     io.Writer // for tables
	Log     io.Writer // for how far it is

	mu      sync.Mutex // guards what Log writes to
	entry   *Entry
	results bytes.Buffer // what was added, in the benchmark format
	writer  *benchfmt.Writer
	notes   []string
	tabled  bool // the run has written a table of its own
	err     error
}

// Begin has r be a run of e, whose results go to w as well.
func (r *Run) Begin(e *Entry, w io.Writer) {
	r.entry, r.err, r.notes, r.tabled = e, nil, nil, false
	r.results.Reset()
	r.writer = benchfmt.NewWriter(io.MultiWriter(&r.results, w))
	for _, u := range e.Units {
		if u.Better != "" {
			r.write(unitIs(u.Name, "better", u.Better))
		}
		if u.Exact {
			r.write(unitIs(u.Name, "assume", "exact"))
		}
	}
}

// End writes the table of all rows, unless the run has written one of its own, and what comes of the bounds. It returns
// how many of these are missed.
func (r *Run) End(ctx context.Context) (missed int, err error) {
	if r.err != nil {
		return 0, r.err
	}
	read, err := Read(bytes.NewReader(r.results.Bytes()), r.entry.Name)
	if err != nil {
		return 0, err
	}
	var verdicts strings.Builder
	if !r.Quick {
		missed = read.Judge(r.entry, &verdicts)
	}
	if !r.tabled {
		err = r.tableOf(ctx, read, verdicts.String())
	}
	if err == nil {
		_, err = io.WriteString(r.Out, verdicts.String())
	}
	return missed, err
}

// tableOf writes the table of all rows into the page, between what was asked, what came of it and on what machine, with
// the results beside it, or prints it.
func (r *Run) tableOf(ctx context.Context, read *Results, verdicts string) error {
	var b strings.Builder
	if r.Docs != "" {
		fmt.Fprintf(&b, "**%s**\n\n%s\n\n", r.entry.Question, r.entry.Method)
	}
	b.WriteString(read.Table(r.entry))
	for _, n := range r.notes {
		fmt.Fprintf(&b, "\n%s\n", n)
	}
	if r.Docs == "" {
		return r.Table(b.String())
	}
	if verdicts != "" {
		b.WriteString("\n- " + strings.ReplaceAll(strings.TrimSuffix(verdicts, "\n"), "\n", "\n- ") + "\n")
	}
	machine := thisMachine(ctx, r.programs())
	fmt.Fprintf(&b, "\n%v. Made on %s by `%s`; all values are in [%s.txt](results/%[4]s.txt).\n", machine, time.Now().Format("2 January 2006"), r.Command, r.entry.Name)
	return errors.Join(r.Table(b.String()), r.keep(machine))
}

// keep writes the results beside the page: into results/NAME.txt, as benchstat reads them.
func (r *Run) keep(machine string) error {
	dir := filepath.Join(r.Docs, "results")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	head := fmt.Sprintf("command: %s\nmachine: %v\ndate: %s\n", r.Command, machine, time.Now().UTC().Format(time.DateTime))
	return os.WriteFile(filepath.Join(dir, r.entry.Name+".txt"), append([]byte(head), r.results.Bytes()...), 0o644)
}

func (r *Run) programs() map[string][]string {
	programs := maps.Clone(r.entry.Programs)
	if ask, ok := programs["Caddy"]; ok && r.Caddy != "" {
		programs["Caddy"] = append([]string{r.Caddy}, ask[1:]...)
	}
	return programs
}

func unitIs(unit, key, value string) *benchfmt.UnitMetadata {
	return &benchfmt.UnitMetadata{UnitMetadataKey: benchfmt.UnitMetadataKey{Unit: unit, Key: key}, OrigUnit: unit, Value: value}
}

func (r *Run) write(rec benchfmt.Record) { r.err = errors.Join(r.err, r.writer.Write(rec)) }

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

// Note has a text stand below the table of all rows, such as why one is missing.
func (r *Run) Note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// Tell says how far a run is.
func (r *Run) Tell(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.Log, format+"\n", args...)
}

// Table puts a table into the entry's page, or prints it.
func (r *Run) Table(text string) error {
	r.tabled = true
	if r.Docs == "" {
		_, err := io.WriteString(r.Out, Aligned(text))
		return err
	}
	return writePage(filepath.Join(r.Docs, r.entry.Page), r.entry.Maker(), text)
}

// Aligned fills the cells of the tables of a Markdown text with spaces, so that people can read them on a terminal.
func Aligned(text string) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 0, ' ', 0)
	for line := range strings.Lines(text) {
		if inner, ok := strings.CutPrefix(strings.TrimSpace(line), "|"); ok {
			line = "|\n"
			for cell := range strings.SplitSeq(strings.TrimSuffix(inner, "|"), "|") {
				fmt.Fprintf(w, "| %s \t", strings.TrimSpace(cell))
			}
		}
		io.WriteString(w, line)
	}
	w.Flush()
	return out.String()
}
