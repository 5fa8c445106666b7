package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/ropeline/ropeline/bench/rate"
	"github.com/ropeline/ropeline/bench/rig/serve"
	"github.com/ropeline/ropeline/cmd/cli"
)

// runRateSelfTest shows what the generator sustains.
func runRateSelfTest(ctx context.Context, o rateOptions, out io.Writer) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	cpus := rate.CPUs()
	if len(cpus) > 1 && o.serverCPU == anyCPU && o.loadCPU == anyCPU {
		o.serverCPU, o.loadCPU = cpus[0], cpus[len(cpus)-1]
		o.cfg.CPU = &o.loadCPU
	}
	server := []string{exe, "serve", string(serve.Bare), "--listen", "127.0.0.1:0", "--body", strconv.Itoa(o.body)}
	if o.serverCPU != anyCPU {
		server = append(server, "--cpu", strconv.Itoa(o.serverCPU))
	}
	s, err := rate.Sustain(ctx, rate.SelfTest{Server: server, Run: o.cfg})
	switch {
	case errors.Is(err, rate.ErrConfig):
		return cli.UsageError{Err: err}
	case err != nil:
		return err
	case o.json:
		return json.NewEncoder(out).Encode(s)
	}
	_, err = fmt.Fprintln(out, selfTestTable(s, o))
	return err
}

// disturbed is the part of the time that others may have the generator's CPU before the table says so.
const disturbed = 0.1

// selfTestTable returns what the generator sustains as a table for people: a row for each rate, with the best
// of its tries.
func selfTestTable(s rate.Sustained, o rateOptions) string {
	t := table.NewWriter()
	t.SetStyle(table.StyleRounded)
	t.SetTitle("ropeline-bench rate --self-test, %d connections, %d bytes", o.cfg.Conns, o.body)
	t.AppendHeader(table.Row{"wanted", "answers/s", "p50 µs", "p99 µs", "late p99", "CPU", "held"})
	style := t.Style()
	style.Format.Header = text.FormatDefault
	row := func(wanted string, r rate.Result, held string) {
		t.AppendRow(table.Row{wanted, whole(r.Rate), whole(r.Latency.P50), whole(r.Latency.P99), whole(r.Late.P99), fmt.Sprintf("%.0f %%", 100*r.CPUShare), held})
	}
	row("all it can", s.Closed, "")
	warned := ""
	for _, tried := range byRate(s.Open) {
		row(fmt.Sprintf("%.0f/s", tried.best.RateWanted), tried.best, fmt.Sprintf("%d of %d", tried.held, tried.times))
		if tried.best.RateWanted == s.Sustains {
			warned = tried.best.Warning
		}
	}
	var right []table.ColumnConfig
	for column := 1; column <= 7; column++ {
		right = append(right, table.ColumnConfig{Number: column, Align: text.AlignRight})
	}
	t.SetColumnConfigs(right)
	said := t.Render()
	if s.Sustains == 0 {
		return said + "\nThe generator held no rate in time here: " + s.Why + ".\nIs the machine busy, or has it a single CPU?"
	}
	said += fmt.Sprintf("\nThe generator sustains %.0f requests per second; each costs it %.2f µs of a CPU.", s.Sustains, s.CPUMicros)
	if s.CPUWaited > disturbed || s.Sustains < s.Closed.Rate/2 {
		said += fmt.Sprintf("\nOther programs were at work, and had its CPU %.0f %% of the time: a quiet machine may have a higher figure.", 100*s.CPUWaited)
	}
	if warned != "" {
		said += "\nAt that rate a measurement warns: " + warned + "."
	}
	return said
}

// triedRate is what came of one rate.
type triedRate struct {
	best        rate.Result // a try that held, if one did, and of those the least late
	held, times int
}

// byRate sorts tries by their rates, the highest first.
func byRate(tries []rate.Result) (rates []triedRate) {
	for _, r := range tries {
		i := slices.IndexFunc(rates, func(t triedRate) bool { return t.best.RateWanted == r.RateWanted })
		if i < 0 {
			i, rates = len(rates), append(rates, triedRate{best: r})
		}
		t := &rates[i]
		t.times++
		holds, held := r.Behind() == "", t.held > 0
		if holds {
			t.held++
		}
		if holds && !held || holds == held && r.Late.P99 < t.best.Late.P99 {
			t.best = r
		}
	}
	slices.SortFunc(rates, func(a, b triedRate) int { return cmp.Compare(b.best.RateWanted, a.best.RateWanted) })
	return rates
}
