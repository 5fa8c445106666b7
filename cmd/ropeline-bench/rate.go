package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/rate"
	"github.com/ropeline/ropeline/cmd/cli"
	"github.com/ropeline/ropeline/node/settings"
)

// rateOptions is what the flags of the command say beyond the run itself.
type rateOptions struct {
	cfg      rate.Config
	target   string
	requests string
	headers  []string
	loadCPU  int
	json     bool
}

const anyCPU = -1

func newRateCommand() *cobra.Command {
	var o rateOptions
	cmd := &cobra.Command{
		Use:   "rate --target URL",
		Short: "Send requests at a constant rate and measure how long answers take",
		Long: `Sends requests to one address and measures how long the answers take, at little
cost to the machine. With --rate they are due at times that nothing moves: if
the server stands still, those that were due meanwhile have waited, and are
counted so. Without, each connection sends when it has its answer, which finds
the highest rate, and no latency that a visitor would see.

The result says how much of a CPU the generator itself has used, and how late it
was, and warns where the figures are its own. What it sustains here at all is a
measurement: "ropeline-bench run generator". Linux only.`,
		Example: `  ropeline-bench rate --target http://127.0.0.1:8080/ --rate 20000 --for 30s
  ropeline-bench rate --target http://127.0.0.1:8080 --requests heads.txt --connections 1000 --json`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(cmd.Flags()); err != nil {
				return cli.UsageError{Err: err}
			}
			return runRate(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	rateFlags(cmd.Flags(), &o)
	cmd.Flags().SortFlags = false
	return cmd
}

func rateFlags(f *pflag.FlagSet, o *rateOptions) {
	const long = 24 * time.Hour
	duration := func(dst *time.Duration, name string, value, least time.Duration, usage string) {
		*dst = value
		f.Var(settings.Duration(least, long, 1).At(dst), name, usage)
	}
	c := &o.cfg
	f.StringVar(&o.target, "target", "", "`URL` to ask for, without TLS")
	f.StringArrayVar(&o.headers, "header", nil, "`line` to send with it, such as 'Cookie: a=1'; repeat it for several")
	f.StringVar(&o.requests, "requests", "", "`file` with requests to send instead, used in turn: lines of each, and an empty line between them")
	f.Var(settings.Float(0, 10e6).At(&c.Rate), "rate", "requests per second; 0: as many as the connections allow")
	c.Conns = 64
	f.Var(settings.Int(1, 1<<20).At(&c.Conns), "connections", "connections that are kept open")
	duration(&c.Warm, "warm", time.Second, 0, "time before the requests that count")
	duration(&c.Lasts, "for", 10*time.Second, time.Millisecond, "time in which requests count")
	duration(&c.Drain, "drain", time.Second, time.Millisecond, "how long after that answers are waited for")
	duration(&c.Timeout, "timeout", 10*time.Second, time.Millisecond, "how long one answer may take")
	o.loadCPU = anyCPU
	f.Var(settings.Int(anyCPU, 1023).At(&o.loadCPU), "load-cpu", "`number` of the CPU that the generator stays on (default: any)")
	f.Lookup("load-cpu").DefValue = ""
	f.BoolVar(&o.json, "json", false, "print one JSON object instead of a table")
}

// complete fills in what follows from the flags together, and refuses what does not go together.
func (o *rateOptions) complete(flags *pflag.FlagSet) error {
	if o.loadCPU != anyCPU {
		o.cfg.CPU = &o.loadCPU
	}
	if o.target == "" {
		return errors.New("--target is missing: what to ask for, such as --target http://127.0.0.1:8080/")
	}
	if o.requests != "" && flags.Changed("header") {
		return errors.New("--header does not go with --requests, where each request has lines of its own")
	}
	address, host, err := rate.Target(o.target)
	if err != nil {
		return err
	}
	o.cfg.Address = address
	if o.requests != "" {
		o.cfg.Requests, err = readHeads(o.requests, host)
		return err
	}
	head, err := rate.Head(o.target, o.headers)
	o.cfg.Requests = [][]byte{head}
	return err
}

func readHeads(path, host string) ([][]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--requests: %w", err)
	}
	defer f.Close()
	heads, err := rate.ReadHeads(f, host)
	if err != nil {
		return nil, fmt.Errorf("--requests %s: %w", path, err)
	}
	return heads, nil
}

// runRate runs what o says. Only the result goes to out; that of a run which was stopped as well.
func runRate(ctx context.Context, o rateOptions, out io.Writer) error {
	r, err := rate.Run(ctx, o.cfg)
	switch {
	case errors.Is(err, rate.ErrConfig):
		return cli.UsageError{Err: err}
	case err != nil && r.Due == 0:
		return err
	case o.json:
		return errors.Join(json.NewEncoder(out).Encode(r), err)
	}
	_, printed := fmt.Fprintln(out, rateTable(r))
	return errors.Join(printed, err)
}

// rateTable returns a result as a table for people.
func rateTable(r rate.Result) string {
	t := table.NewWriter()
	t.SetStyle(table.StyleRounded)
	t.SetTitle("ropeline-bench rate, %s model, %.3g s", r.Model, r.Seconds)
	row := func(name string, value any, note string) { t.AppendRow(table.Row{name, value, note}) }
	row("due", r.Due, "")
	row("sent", r.Sent, cli.Share(int(r.Sent), int(r.Due)))
	row("answered", r.Answered, counts(r.Status))
	row("without an answer", r.Failed(), counts(r.Errors))
	wanted := "as many as the connections allow"
	if r.RateWanted > 0 {
		wanted = fmt.Sprintf("%.1f wanted", r.RateWanted)
	}
	row("answers per second", fmt.Sprintf("%.1f", r.Rate), wanted)
	row("bytes", r.Bytes, "")
	row("connections opened again", r.Redials, "")
	t.AppendSeparator()
	from := "from when a request was due"
	if !r.Corrected {
		from = "from sending; stalls are left out"
	}
	for _, l := range []struct {
		name string
		us   float64
		note string
	}{
		{"latency, 50 in 100", r.Latency.P50, from}, {"latency, 90 in 100", r.Latency.P90, ""},
		{"latency, 99 in 100", r.Latency.P99, ""}, {"latency, 999 in 1000", r.Latency.P999, ""}, {"latency, longest", r.Latency.Max, ""},
	} {
		row(l.name, micros(l.us), l.note)
	}
	t.AppendSeparator()
	row("share of a CPU", fmt.Sprintf("%.1f %%", 100*r.CPUShare), "of the generator itself")
	row("waited for it", fmt.Sprintf("%.1f %%", 100*r.CPUWaited), "")
	if r.Corrected {
		row("late, 99 in 100", micros(r.Late.P99), "by the generator's own fault")
		row("late, longest", micros(r.Late.Max), "")
	}
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 2, Align: text.AlignRight}, {Number: 3, WidthMax: 36}})
	said := t.Render()
	if r.Warning != "" {
		said += "\nWarning: " + r.Warning
	}
	if r.LastError != "" {
		said += "\nThe last error: " + r.LastError
	}
	return said
}

func micros(us float64) string { return fmt.Sprintf("%.1f µs", us) }

// counts lists how many there are of each: "200:17 503:2".
func counts[K comparable](of map[K]int64) string {
	return strings.Trim(strings.TrimPrefix(fmt.Sprint(of), "map"), "[]")
}
