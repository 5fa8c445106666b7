package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/cmd/cli"
)

// choose returns the entries with these names; of none, all.
func choose(names []string) ([]measurement.Entry, error) {
	all := registry()
	if len(names) == 0 {
		return all, nil
	}
	var chosen []measurement.Entry
	for _, name := range names {
		i := slices.IndexFunc(all, func(e measurement.Entry) bool { return e.Name == name })
		if i < 0 {
			return nil, cli.Usagef("there is no measurement %q; ropeline-bench list has them", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func newListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list [NAME...]",
		Short: "List the measurements, or describe some of them",
		RunE: func(cmd *cobra.Command, names []string) error {
			chosen, err := choose(names)
			if err != nil {
				return err
			}
			if len(names) > 0 {
				for i := range chosen {
					describe(cmd.OutOrStdout(), &chosen[i])
				}
				return nil
			}
			text := "| name | question |\n|---|---|\n"
			for _, e := range chosen {
				text += "| " + e.Name + " | " + e.Question + " |\n"
			}
			_, err = io.WriteString(cmd.OutOrStdout(), measurement.Aligned(text))
			return err
		},
	}
}

// describe prints all of an entry.
func describe(out io.Writer, e *measurement.Entry) {
	fmt.Fprintf(out, "%s\n\n%s\n\n%s\n\nRows:\n", e.Name, e.Question, e.Method)
	for _, u := range e.Units {
		fmt.Fprintf(out, "  %-12s %s\n", u.Name, u.Meaning)
	}
	if len(e.Bounds) > 0 {
		fmt.Fprintln(out, "\nBounds:")
		for _, b := range e.Bounds {
			fmt.Fprintf(out, "  %s\n", b)
		}
	}
	options, _ := e.Options()
	fmt.Fprintf(out, "\nOptions, for --set; those of --quick are %s:\n%s\n", strings.Join(e.Quick, ","), options.FlagUsages())
}

// runOptions is what the flags of run say.
type runOptions struct {
	run   measurement.Run
	all   bool
	quick bool
	set   []string
	out   string
}

func newRunCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run NAME...",
		Short: "Measure, and judge what is promised",
		Long: `Makes measurements, one after the other, and prints what came of them: a table, and
of each bound whether it is held, missed, or open, by the interval of the median (95 %).
Nothing is installed: what is not on the machine is reported as missing. Exit code 1
says that something could not be measured, or that a bound is missed.`,
		Example: `  ropeline-bench run proxy
  ropeline-bench run proxy --set rounds=1,for=2s,only=ropeline
  ropeline-bench run --all --quick --out new.txt`,
		RunE: func(cmd *cobra.Command, names []string) error {
			if o.all == (len(names) > 0) {
				return cli.Usagef("want the names of measurements, which ropeline-bench list has, or --all alone")
			}
			chosen, err := choose(names)
			if err != nil {
				return err
			}
			o.run.Out, o.run.Log = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return o.measure(cmd.Context(), chosen)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.all, "all", false, "all of them")
	f.BoolVar(&o.quick, "quick", false, "as short as can be: whether all works, without judging bounds")
	f.StringSliceVar(&o.set, "set", nil, "`option=value`, as \"list NAME\" has them")
	f.StringVar(&o.out, "out", "", "also write results into this `file`, in Go's benchmark format, for benchstat")
	f.StringVar(&o.run.Docs, "docs", "", "write tables into the pages in this `directory` instead of printing them")
	f.StringVar(&o.run.Binary, "binary", "./ropeline", "the `program` to measure")
	f.StringVar(&o.run.Caddy, "caddy", "", "the `program` that is Caddy (default: caddy in the path)")
	f.SortFlags = false
	return cmd
}

// planned is an entry, and its run with all options.
type planned struct {
	*measurement.Entry
	options *pflag.FlagSet
	run     func(context.Context, *measurement.Run) error
}

// plan refuses what cannot be run, before anything takes long.
func (o *runOptions) plan(chosen []measurement.Entry) (plans []planned, err error) {
	for i := range chosen {
		e := &chosen[i]
		if _, err := os.Stat(o.run.Binary); err != nil && slices.Contains(e.Needs, measurement.Ropeline) {
			return nil, fmt.Errorf("the program to measure: %w; make build makes ./ropeline, and --binary names another", err)
		}
		p := planned{Entry: e}
		p.options, p.run = e.Options()
		if o.quick {
			if err := e.Set(p.options, e.Quick...); err != nil {
				return nil, err
			}
		}
		if o.run.Docs != "" && e.Page != "" {
			if err := e.HasPlace(o.run.Docs); err != nil {
				return nil, err
			}
		}
		plans = append(plans, p)
	}
	return plans, o.setAll(plans)
}

// setAll sets each option of --set, of all that have it.
func (o *runOptions) setAll(plans []planned) error {
	for _, one := range o.set {
		name, _, _ := strings.Cut(one, "=")
		var err error
		known := false
		for _, p := range plans {
			if p.options.Lookup(name) != nil {
				known, err = true, errors.Join(err, p.Set(p.options, one))
			}
		}
		if !known {
			err = fmt.Errorf("there is no option %q; ropeline-bench list NAME says which there are", name)
		}
		if err != nil {
			return cli.UsageError{Err: err}
		}
	}
	return nil
}

// measure makes all measurements, also those after one that fails.
func (o *runOptions) measure(ctx context.Context, chosen []measurement.Entry) (err error) {
	plans, err := o.plan(chosen)
	if err != nil {
		return err
	}
	if o.run.Self, err = os.Executable(); err != nil {
		return err
	}
	to := io.Discard
	if o.out != "" {
		f, err := os.Create(o.out)
		if err != nil {
			return err
		}
		defer f.Close()
		to = f
	}
	var failed, missed []string
	for _, p := range plans {
		bad, err := o.one(ctx, p, to)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			if len(plans) == 1 {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
			o.run.Tell("%s: %v", p.Name, err)
			failed = append(failed, p.Name)
		}
		if bad > 0 {
			missed = append(missed, p.Name)
		}
	}
	switch {
	case len(failed) > 0:
		return fmt.Errorf("these could not be measured: %s", strings.Join(failed, ", "))
	case len(missed) > 0:
		return fmt.Errorf("bounds are missed of %s", strings.Join(missed, ", "))
	}
	return nil
}

// one makes a measurement, writes its results to a file, and prints what comes of its bounds.
func (o *runOptions) one(ctx context.Context, p planned, to io.Writer) (missed int, err error) {
	others := slices.DeleteFunc(slices.Clone(p.Needs), func(name string) bool { return name == measurement.Ropeline })
	if missing := rig.Missing(others...); len(missing) > 0 {
		return 0, fmt.Errorf("nothing can be measured without %s", strings.Join(missing, ", "))
	}
	unpin, err := rig.Pin(p.Cores...)
	if err != nil {
		return 0, err
	}
	defer unpin()
	begun := time.Now()
	defer func() { o.run.Tell("%s took %v", p.Name, time.Since(begun).Round(time.Second)) }()
	o.run.Command, o.run.Quick = p.command(), o.quick
	o.run.Begin(p.Entry, to)
	err = p.run(ctx, &o.run)
	if docs := o.run.Docs; err != nil { // what there is of it is printed
		o.run.Docs = ""
		defer func() { o.run.Docs = docs }()
	}
	missed, ended := o.run.End(ctx)
	return missed, errors.Join(err, ended)
}

// command is the command line of the run, with the options that are not as by default.
func (p *planned) command() string {
	var set []string
	p.options.Visit(func(f *pflag.Flag) {
		one := f.Name + "=" + f.Value.String()
		if strings.Contains(one, ",") { // which parts options
			one = `"` + one + `"`
		}
		set = append(set, one)
	})
	if len(set) == 0 {
		return p.Maker()
	}
	return p.Maker() + " --set " + shellQuoted(strings.Join(set, ","))
}
