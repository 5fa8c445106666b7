package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/load"
	"github.com/ropeline/ropeline/cmd/cli"
	"github.com/ropeline/ropeline/node/settings"
)

// loadOptions is what the flags of the command say beyond the run itself.
type loadOptions struct {
	cfg      load.Config
	log      string
	accept   loadAccept
	insecure bool
	json     bool
	seed     uint64
}

// loadAccept is the kind of answer that visitors ask for.
type loadAccept string

const (
	acceptJSON loadAccept = "json"
	acceptHTML loadAccept = "html"
)

// defaultLoadTime bounds a run that was given no other end.
const defaultLoadTime = 30 * time.Second

func newLoadCommand() *cobra.Command {
	var o loadOptions
	cmd := &cobra.Command{
		Use:   "load --target URL",
		Short: "Send visitors to a room and measure what becomes of them",
		Long: `Sends visitors to one or more nodes and measures what becomes of them. They
arrive when it is their time, however slowly the site answers, keep cookies,
wait as long as they are told, look at a few pages and leave. When a node dies,
its visitors go on at the next one with the same cookies.

With --log they come out of a recorded access log in common or combined format,
plain or compressed with gzip: one visitor for each client address, at the times
of the log, which --speed makes pass faster.`,
		Example: `  ropeline load --target http://127.0.0.1:8080 --rate 50 --for 1m
  ropeline load --target http://10.0.0.1 --target http://10.0.0.2 --burst 2000 --stay 30s
  ropeline load --target http://127.0.0.1:8080 --log access.log.gz --speed 3000 --json`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(cmd.Flags()); err != nil {
				return cli.UsageError{Err: err}
			}
			return runLoad(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	loadFlags(cmd.Flags(), &o)
	cmd.Flags().SortFlags = false
	return cmd
}

func loadFlags(f *pflag.FlagSet, o *loadOptions) {
	const long = 24 * time.Hour
	duration := func(dst *time.Duration, name string, value time.Duration, usage string) {
		*dst = value
		if value > 0 {
			f.Var(settings.Duration(time.Millisecond, long, 1).At(dst), name, usage)
			return
		}
		f.Var(settings.Duration(0, long, 1).At(dst), name, usage)
		f.Lookup(name).DefValue = "" // the usage says what nothing means
	}
	count := func(dst *int, name string, usage string) {
		f.Var(settings.Int(0, math.MaxInt32).At(dst), name, usage)
	}
	c := &o.cfg
	f.StringArrayVar(&c.Targets, "target", nil, "`URL` of a node; repeat it for several nodes of one mesh")
	f.StringVar(&o.log, "log", "", "replay this access log `file` instead of made-up visitors")
	c.Speed = 1
	f.Var(settings.Float(0.001, 1e9).At(&c.Speed), "speed", "how many times faster than recorded the log is replayed")
	count(&c.Crowd.Visitors, "visitors", "how many visitors come in all; with --log the first clients of it (default: as many as come in time)")
	c.Crowd.Rate = 10
	f.Var(settings.Float(0, 1e6).At(&c.Crowd.Rate), "rate", "mean arrivals per second")
	count(&c.Crowd.Burst, "burst", "how many visitors come at the very start; alone, nobody else comes")
	duration(&c.Crowd.Spread, "spread", 0, "time over which the burst comes (default: all at once)")
	duration(&c.Crowd.Ramp, "ramp", 0, "time in which the rate climbs from nothing to --rate (default: at once)")
	duration(&c.Duration, "for", 0, "end after this time, whoever still waits (default: when the last visitor has left, or 30s if visitors never end)")
	c.Crowd.Stay = 10 * time.Second
	f.Var(settings.Duration(0, long, 1).At(&c.Crowd.Stay), "stay", "mean time that a visitor spends on the site; 0s: one page")
	duration(&c.Crowd.Think, "think", 2*time.Second, "mean pause between two pages")
	duration(&c.Crowd.Patience, "patience", 0, "mean time after which a waiting visitor leaves (default: never)")
	f.StringArrayVar(&c.Crowd.Paths, "path", nil, "`path` that visitors ask for; repeat it for several to choose from (default: the path of the first target)")
	f.StringVar(&c.Host, "host", "", "`name` of the site to ask for (default: that of the first target)")
	duration(&c.SessionDuration, "session-duration", 5*time.Minute, "how long the room lets a visitor be idle; only for counting")
	o.accept = acceptJSON
	f.Var(settings.Word(acceptJSON, acceptHTML).At(&o.accept), "accept",
		"ask for json, which tells a visitor's place, or html, as browsers do")
	f.Uint64Var(&o.seed, "seed", 0, "`number` that makes the same visitors again (default: a new one each time)")
	duration(&c.RequestTimeout, "timeout", 10*time.Second, "how long one request may take, and how long it may wait for a connection")
	duration(&c.GiveUp, "give-up", 30*time.Second, "how long a visitor goes on when nothing answers")
	count(&c.Conns, "connections", "most open connections to each target (default 1024)")
	f.BoolVar(&o.insecure, "insecure", false, "do not check the certificates of https targets")
	f.BoolVar(&o.json, "json", false, "print one JSON object instead of a table")
}

// complete fills in what follows from the flags together, and refuses what does
// not go together.
func (o *loadOptions) complete(flags *pflag.FlagSet) error {
	c := &o.cfg
	if len(c.Targets) == 0 {
		return errors.New("--target is missing: the address of a node, such as --target http://127.0.0.1:8080")
	}
	if o.log == "" && flags.Changed("speed") {
		return errors.New("--speed goes with --log; made-up visitors come at --rate")
	}
	if o.log != "" {
		for _, name := range []string{"rate", "burst", "spread", "ramp", "stay", "think", "patience", "path"} {
			if flags.Changed(name) {
				return fmt.Errorf("--%s does not go with --log, which says itself who comes when and for what", name)
			}
		}
	}
	if c.Crowd.Burst > 0 && !flags.Changed("rate") {
		c.Crowd.Rate = 0
	}
	if o.log == "" && c.Crowd.Visitors == 0 && c.Crowd.Rate > 0 && c.Duration == 0 {
		c.Duration = defaultLoadTime
	}
	c.Accept = load.AcceptJSON
	if o.accept == acceptHTML {
		c.Accept = load.AcceptHTML
	}
	c.Seed = o.seed
	if o.insecure {
		c.TLS = &tls.Config{InsecureSkipVerify: true}
	}
	return nil
}

// runLoad runs what o says. Only the result goes to out.
func runLoad(ctx context.Context, o loadOptions, out, errOut io.Writer) error {
	if o.log != "" {
		log, err := openLog(o.log)
		if err != nil {
			return err
		}
		if log.Malformed > 0 {
			fmt.Fprintf(errOut, "ropeline: %d lines of %s are no requests and are left out; %v\n", log.Malformed, o.log, log.FirstMalformed)
		}
		o.cfg.Log = log
	}
	progress, end := loadProgress(errOut, o.cfg)
	report, err := load.Run(ctx, o.cfg, progress)
	end()
	switch {
	case errors.Is(err, load.ErrConfig):
		return cli.UsageError{Err: err}
	case errors.Is(err, load.ErrNoAnswer):
		return fmt.Errorf("%w\nIs the node running, and is --target its address?", err)
	case err != nil:
		return err
	}
	if o.json {
		return json.NewEncoder(out).Encode(report)
	}
	if _, err := fmt.Fprintln(out, loadTable(report)); err != nil {
		return err
	}
	if err := report.LastError(); err != nil {
		fmt.Fprintf(errOut, "The last request without an answer: %v\n", err)
	}
	return nil
}

func openLog(path string) (*load.Log, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--log: %w", err)
	}
	defer f.Close()
	log, err := load.ReadLog(f)
	if err != nil {
		return nil, fmt.Errorf("--log %s: %w", path, err)
	}
	return log, nil
}

// loadProgress returns what shows the progress of a run on a terminal, and what
// ends it. Where errOut is no terminal it shows nothing.
func loadProgress(errOut io.Writer, cfg load.Config) (tell func(load.Snapshot), end func()) {
	line := cli.NewStatusLine(errOut)
	if !line.Visible() {
		return nil, func() {}
	}
	const steps = 1000
	tell = func(s load.Snapshot) {
		line.Show(int(done(s, cfg.Duration)*steps), steps, fmt.Sprintf("%s  %d came, %d waiting, %d requests, %d errors",
			s.Elapsed.Round(time.Second), s.Visitors, s.Waiting, s.Requests, s.Errors))
	}
	return tell, line.Clear
}

// done returns the part of a run that is over, from 0 to 1: of the visitors or
// of the time, whichever is further.
func done(s load.Snapshot, duration time.Duration) float64 {
	part := 0.0
	if s.Expected > 0 {
		part = float64(s.Gone) / float64(s.Expected)
	}
	if duration > 0 {
		part = max(part, s.Elapsed.Seconds()/duration.Seconds())
	}
	return min(part, 1)
}

// loadTable returns a report as a table for people.
func loadTable(r load.Report) string {
	t := table.NewWriter()
	t.SetStyle(table.StyleRounded)
	t.SetTitle("ropeline load, %s", time.Duration(r.ElapsedSeconds*float64(time.Second)).Round(100*time.Millisecond))
	count := func(name string, value any, note string) { t.AppendRow(table.Row{name, value, note}) }
	count("visitors", r.Visitors, "")
	count("let in", r.Admitted, cli.Share(r.Admitted, r.Visitors))
	count("had to wait", r.Waited, cli.Share(r.Waited, r.Visitors))
	count("still waiting", r.Waiting, "")
	count("left without being let in", r.GaveUp, "")
	t.AppendSeparator()
	count("most active at one time", r.PeakActive, "at least")
	count("most waiting at one time", r.PeakWaiting, "")
	count("order error", fmt.Sprintf("%.4f", r.OrderError), "0: as they came, 1: the reverse")
	count("places lost", r.PlacesLost, "")
	count("sessions lost", r.SessionsLost, "")
	t.AppendSeparator()
	count("requests", r.Requests, statusNote(r.Status))
	count("errors", r.Errors, cli.Share(r.Errors, r.Requests))
	count("decisions per second", fmt.Sprintf("%.1f", r.DecisionsPerSecond), "")
	count("latency, 50 in 100", millis(r.Latency.P50), "from when a request was due")
	count("latency, 99 in 100", millis(r.Latency.P99), "")
	count("latency, 999 in 1000", millis(r.Latency.P999), "")
	t.AppendSeparator()
	count("seed", r.Seed, "--seed makes the same again")
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 2, Align: text.AlignRight}})
	return t.Render()
}

func millis(ms float64) string { return fmt.Sprintf("%.2f ms", ms) }

// statusNote lists how many answers there were of each class.
func statusNote(status map[string]int) string {
	var words []string
	for class, n := range status {
		words = append(words, fmt.Sprintf("%s: %d", class, n))
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}
