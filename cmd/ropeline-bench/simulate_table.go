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
	f := &r.Figures
	row := func(name string, value any, unit, note string) {
		if unit != "" {
			value = fmt.Sprint(value, " ", unit)
		}
		t.AppendRow(table.Row{name, value, note})
	}
	limitRows(row, f)
	if r.Policy == string(room.Escrow) {
		row("over what is minted", percent(f.OverMintedPct), "%", fmt.Sprintf("of the rights; rate: %s %%", percent(f.OverMintedRatePct)))
		row("over limit, exempt", f.Exempt.Borrowed+f.Exempt.Switched+f.Exempt.Clocks+f.Exempt.Unheard+f.Exempt.Remade, "", "exceptions of docs/limit.md")
		row("borrowed", f.Borrowed, "", fmt.Sprintf("without a right; worst node: %d", f.PeakBorrowed))
		row("places moved", fmt.Sprintf("%.1f", f.MovedPerMin), "/min", "between nodes")
	}
	t.AppendSeparator()
	waitRows(row, r)
	t.AppendSeparator()
	trafficRows(row, f)
	t.AppendSeparator()
	crowdRows(row, f)
	t.AppendSeparator()
	row("broken promises", len(r.Violations), "", "must be none")
	if s := r.Speed; s != nil {
		row("time simulated", clockTime(s.Virtual), "", "in "+time.Duration(s.Wall*float64(time.Second)).Round(10*time.Millisecond).String())
		row("speed", whole(s.Visitors), "visitors/s", whole(s.EventsPS)+" events/s")
	}
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 2, Align: text.AlignRight}})
	return t.Render()
}

type rowFunc func(name string, value any, unit, note string)

func limitRows(row rowFunc, f *sim.Figures) {
	row("overshoot", percent(f.OvershootPct), "%", fmt.Sprintf("of the limit; peak %d active", f.PeakActive))
	row("overshoot of the rate", percent(f.OvershootRatePct), "%", fmt.Sprintf("of the limit; peak %d in 60 s", f.PeakMinute))
	row("early queued", percent(f.EarlyQueuedPct), "%", "though a place was free")
	row("idle", percent(f.IdlePct), "%", "of the limit, while people wait")
}

func waitRows(row rowFunc, r *sim.Result) {
	f := &r.Figures
	row("wait, 50 in 100", clockTime(f.WaitP50), "", "of all who were let in")
	row("wait, 90 in 100", clockTime(f.WaitP90), "", "")
	row("wait, 99 in 100", clockTime(f.WaitP99), "", "longest: "+clockTime(f.WaitMax))
	row("wait over arrival, R²", fmt.Sprintf("%.4f", r.Waits.R2), "", fmt.Sprintf("correlation %.4f", r.Waits.Correlation))
	row("wait inside a minute", seconds(r.Waits.Within), "s", "mean standard deviation")
	row("order error", fmt.Sprintf("%.4f", f.OrderError), "", "0: as they came, 0.5: chance")
	row("estimate off, 50 in 100", fmt.Sprintf("%.1f", f.EstimateP50), "min", "|said − real|, as first told")
	row("estimate off, 90 in 100", fmt.Sprintf("%.1f", f.EstimateP90), "min", "")
}

func trafficRows(row rowFunc, f *sim.Figures) {
	worst := func(t sim.Traffic) string { return "worst node: " + whole(t.Bytes) }
	row("sent inside a site", whole(f.Near.Bytes), "B/s", worst(f.NearWorst))
	row("", fmt.Sprintf("%.1f", f.Near.Messages), "msg/s", "per node")
	row("sent to other sites", whole(f.Far.Bytes), "B/s", worst(f.FarWorst))
	row("", fmt.Sprintf("%.1f", f.Far.Messages), "msg/s", "per node")
}

func crowdRows(row rowFunc, f *sim.Figures) {
	row("visitors", f.Visitors, "", "")
	row("let in", f.LetIn, "", cli.Share(f.LetIn, f.Visitors))
	row("had to wait", f.Queued, "", cli.Share(f.Queued, f.Visitors))
	row("gave up", f.GaveUp, "", cli.Share(f.GaveUp, f.Visitors))
	row("still waiting", f.WaitingAtEnd, "", "")
	row("most waiting", f.PeakWaiting, "", "at one time")
	row("requests", f.Requests, "", cli.Share(f.Refused, f.Requests)+" queued")
	row("places lost", f.PlacesLost, "", "")
	row("sessions lost", f.SessionsLost, "", "")
}

func percent(v float64) string { return fmt.Sprintf("%.2f", v) }
func seconds(v float64) string { return fmt.Sprintf("%.1f", v) }
func whole(v float64) string   { return fmt.Sprintf("%.0f", v) }

// clockTime writes seconds as people read them.
func clockTime(s float64) string {
	d := time.Duration(s * float64(time.Second))
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return settings.Span(d.Round(time.Second))
}
