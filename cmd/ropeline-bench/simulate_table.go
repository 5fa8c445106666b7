package main

import (
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/ropeline/ropeline/bench/sim"
	"github.com/ropeline/ropeline/cmd/cli"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/settings"
)

// simulateTable returns a result as a table for people: each figure, its unit,
// and what it is.
func simulateTable(r *sim.Result, cfg sim.Config) string {
	t := table.NewWriter()
	t.SetStyle(table.StyleRounded)
	t.SetTitle("ropeline-bench simulate, seed %d\n%d × %d nodes, %s, %s, %d active, %d new a minute", r.Seed,
		r.Sites, r.Nodes, r.Policy, r.Method, cfg.Room.TotalActiveUsers, cfg.Room.NewUsersPerMinute)
	for _, part := range [][]table.Row{limitRows(r), waitRows(r), trafficRows(&r.Figures), crowdRows(&r.Figures)} {
		t.AppendRows(part)
		t.AppendSeparator()
	}
	t.AppendRow(table.Row{"broken promises", len(r.Violations), "must be none"})
	if s := r.Speed; s != nil {
		t.AppendRows([]table.Row{
			{"time simulated", clockTime(s.Virtual), "in " + time.Duration(s.Wall*float64(time.Second)).Round(10*time.Millisecond).String()},
			{"speed", whole(s.Visitors) + " visitors/s", whole(s.EventsPS) + " events/s"},
		})
	}
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 2, Align: text.AlignRight}})
	return t.Render()
}

func limitRows(r *sim.Result) []table.Row {
	f := &r.Figures
	rows := []table.Row{
		{"overshoot", percent(f.OvershootPct), fmt.Sprintf("of the limit; peak %d active", f.PeakActive)},
		{"overshoot of the rate", percent(f.OvershootRatePct), fmt.Sprintf("of the limit; peak %d in 60 s", f.PeakMinute)},
		{"early queued", percent(f.EarlyQueuedPct), "though a place was free"},
		{"idle", percent(f.IdlePct), "of the limit, while people wait"},
	}
	if r.Policy == string(room.Escrow) {
		rows = append(rows,
			table.Row{"over what is minted", percent(f.OverMintedPct), "of the rights; rate: " + percent(f.OverMintedRatePct)},
			table.Row{"over limit, exempt", f.Exempt.Borrowed + f.Exempt.Switched + f.Exempt.Clocks + f.Exempt.Unheard + f.Exempt.Remade, "exceptions of docs/limit.md"},
			table.Row{"borrowed", f.Borrowed, fmt.Sprintf("without a right; worst node: %d", f.PeakBorrowed)},
			table.Row{"places moved", fmt.Sprintf("%.1f /min", f.MovedPerMin), "between nodes"})
	}
	return rows
}

func waitRows(r *sim.Result) []table.Row {
	f := &r.Figures
	return []table.Row{
		{"wait, 50 in 100", clockTime(f.WaitP50), "of all who were let in"},
		{"wait, 90 in 100", clockTime(f.WaitP90), ""},
		{"wait, 99 in 100", clockTime(f.WaitP99), "longest: " + clockTime(f.WaitMax)},
		{"wait over arrival, R²", fmt.Sprintf("%.4f", r.Waits.R2), fmt.Sprintf("correlation %.4f", r.Waits.Correlation)},
		{"wait inside a minute", fmt.Sprintf("%.1f s", r.Waits.Within), "mean standard deviation"},
		{"order error", fmt.Sprintf("%.4f", f.OrderError), "0: as they came, 0.5: chance"},
		{"estimate off, 50 in 100", fmt.Sprintf("%.1f min", f.EstimateP50), "|said − real|, as first told"},
		{"estimate off, 90 in 100", fmt.Sprintf("%.1f min", f.EstimateP90), ""},
	}
}

func trafficRows(f *sim.Figures) []table.Row {
	sent := func(name string, mean, worst sim.Traffic) []table.Row {
		return []table.Row{{name, whole(mean.Bytes) + " B/s", "worst node: " + whole(worst.Bytes)}, {"", fmt.Sprintf("%.1f msg/s", mean.Messages), "per node"}}
	}
	return append(sent("sent inside a site", f.Near, f.NearWorst), sent("sent to other sites", f.Far, f.FarWorst)...)
}

func crowdRows(f *sim.Figures) []table.Row {
	return []table.Row{
		{"visitors", f.Visitors, ""},
		{"let in", f.LetIn, cli.Share(f.LetIn, f.Visitors)},
		{"had to wait", f.Queued, cli.Share(f.Queued, f.Visitors)},
		{"gave up", f.GaveUp, cli.Share(f.GaveUp, f.Visitors)},
		{"still waiting", f.WaitingAtEnd, ""},
		{"most waiting", f.PeakWaiting, "at one time"},
		{"requests", f.Requests, cli.Share(f.Refused, f.Requests) + " queued"},
		{"places lost", f.PlacesLost, ""},
		{"sessions lost", f.SessionsLost, ""},
	}
}

func percent(v float64) string { return fmt.Sprintf("%.2f %%", v) }
func whole(v float64) string   { return fmt.Sprintf("%.0f", v) }

// clockTime writes seconds as people read them.
func clockTime(s float64) string {
	d := time.Duration(s * float64(time.Second))
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return settings.Span(d.Round(time.Second))
}
