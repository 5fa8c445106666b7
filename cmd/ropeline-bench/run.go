package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/ropeline/ropeline/bench/suite"
	"github.com/ropeline/ropeline/cmd/cli"
	"github.com/ropeline/ropeline/node/settings"
)

// benchOptions is what the flags of the command say.
type benchOptions struct {
	cfg  suite.Config
	json bool
	all  bool
	docs string
}

func newListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "Say which measurements there are, and what each asks",
		Args:  cli.NoArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return listBenches(cmd.OutOrStdout()) },
	}
}

func newRunCommand() *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "run NAME...",
		Short: "Measure ropeline beside what else a site could use",
		Long: `Measures ropeline beside other servers that are on this machine, on Linux with two cores at least: one
server at a time on the first core, load and site on the second one. A server that is
not there is reported as missing; nothing is installed.`,
		Example: `  ropeline-bench run proxy
  ropeline-bench run proxy --rounds 1 --for 2s --only ropeline`,
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen, err := chooseBenches(args, o.all)
			if err != nil {
				return err
			}
			if o.docs != "" && o.cfg.Only != "" {
				return cli.Usagef("--docs does not go with --only: the page would have a part of the servers")
			}
			return runBenches(cmd.Context(), o, chosen, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.all, "all", false, "all of them, one after the other")
	o.cfg.Rounds = 5
	f.Var(settings.Int(1, 1000).At(&o.cfg.Rounds), "rounds", "how often each server is measured")
	o.cfg.Lasts = 4 * time.Second
	f.Var(settings.Duration(time.Second, time.Hour, 1).At(&o.cfg.Lasts), "for", "how long each time")
	f.StringVar(&o.cfg.Only, "only", "", "measure servers with this `text` in their names only")
	f.StringVar(&o.cfg.Binary, "binary", "./ropeline", "the `program` to measure")
	f.StringVar(&o.cfg.Caddy, "caddy", "", "the `program` that is Caddy (default: caddy in the path)")
	f.StringVar(&o.docs, "docs", "", "also write JSON, pictures and tables into the documentation in this `directory`")
	f.BoolVar(&o.json, "json", false, "print one JSON object for each instead of tables")
	f.SortFlags = false
	return cmd
}

func listBenches(out io.Writer) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleRounded)
	for _, b := range suite.All() {
		t.AppendRow(table.Row{b.Name, b.Question})
	}
	_, err := fmt.Fprintln(out, t.Render())
	return err
}

func chooseBenches(names []string, all bool) ([]suite.Benchmark, error) {
	switch {
	case all && len(names) > 0:
		return nil, cli.Usagef("--all goes without names")
	case all:
		return suite.All(), nil
	case len(names) == 0:
		return nil, cli.Usagef("the name of a measurement is missing; ropeline-bench list has them")
	}
	var chosen []suite.Benchmark
	for _, name := range names {
		b, err := suite.Find(name)
		if err != nil {
			return nil, cli.Usagef("%w; ropeline-bench list has them", err)
		}
		chosen = append(chosen, b)
	}
	return chosen, nil
}

// runBenches measures one after the other. Only results go to out.
func runBenches(ctx context.Context, o benchOptions, chosen []suite.Benchmark, out, errOut io.Writer) error {
	if _, err := os.Stat(o.cfg.Binary); err != nil {
		return fmt.Errorf("the program to measure: %w; make build makes ./ropeline, and --binary names another", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	o.cfg.Self = self
	o.cfg.Tell = func(format string, args ...any) { fmt.Fprintf(errOut, format+"\n", args...) }
	for _, b := range chosen {
		if o.docs == "" {
			continue
		}
		if err := b.HasPlace(o.docs); err != nil {
			return err
		}
	}
	for _, b := range chosen {
		r, err := suite.Run(ctx, b, o.cfg)
		if err != nil {
			return fmt.Errorf("%s: %w", b.Name, err)
		}
		if err := printBench(out, r, o.json); err != nil {
			return err
		}
		if o.docs == "" {
			continue
		}
		if err := r.WriteDocs(o.docs); err != nil {
			return err
		}
	}
	return nil
}

func printBench(out io.Writer, r *suite.Result, asJSON bool) error {
	if asJSON {
		b, err := r.AppendJSON(nil)
		if err != nil {
			return err
		}
		_, err = out.Write(b)
		return err
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleRounded)
	t.Style().Format.Header = text.FormatDefault
	t.SetTitle("%s", r.Title)
	made := r.Table()
	row := func(cells []string) (all table.Row) {
		for _, c := range cells {
			all = append(all, c)
		}
		return all
	}
	t.AppendHeader(row(made.Head))
	for _, cells := range made.Rows {
		t.AppendRow(row(cells))
	}
	var words strings.Builder
	for i := range r.Checks {
		fmt.Fprintln(&words, r.Checks[i].Words())
	}
	_, err := fmt.Fprintf(out, "%s\n%s%s\n", t.Render(), words.String(), r.Line())
	return err
}
