package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/explore"
	"github.com/ropeline/ropeline/bench/explore/boot"
	"github.com/ropeline/ropeline/bench/explore/breadth"
	"github.com/ropeline/ropeline/bench/explore/replay"
	"github.com/ropeline/ropeline/bench/explore/small"
	"github.com/ropeline/ropeline/bench/measurement"
)

// maxStates is how many states of each world are looked at by default, which is more than any has.
const maxStates = 1_000_000

// cutOffInAll is a unit, of all worlds together.
const cutOffInAll = "cut-off-in-all"

// searches are the measurements that look for a history that breaks the limit. They end with the first one.
func searches() []measurement.Entry {
	ofWorlds := func(e measurement.Entry, run func(ctx context.Context, states int, r *measurement.Run) (found bool)) measurement.Entry {
		e.Page = "limit.md"
		e.Units = []measurement.Unit{
			{Name: "states", Meaning: "different states of each"},
			{Name: "cut-off", Meaning: "1: not all states were looked at", Better: "lower"},
			{Name: cutOffInAll, Meaning: "worlds of which not all states were looked at", Better: "lower", Exact: true, Aside: true},
			measurement.InAll,
		}
		e.Bounds = []measurement.Bound{measurement.NothingBroken, {Row: "all", Unit: cutOffInAll, Most: measurement.NoneAtAll, Text: "worlds of which not all states were looked at"}}
		e.Quick = []string{"states=300"}
		e.New = func(o *pflag.FlagSet) func(context.Context, *measurement.Run) error {
			states := o.Int("states", maxStates, "how many states of each world are looked at, at most")
			return func(ctx context.Context, r *measurement.Run) error {
				found := run(ctx, *states, r)
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				return endSearch(r, found)
			}
		}
		return e
	}
	return []measurement.Entry{
		ofWorlds(measurement.Entry{
			Name:     "explore-ledgers",
			Question: "Can anything that happens to the ledgers of two or three nodes break the limit?",
			Method:   "Every order of what may happen, within a budget for each world, with the minter's id at every place in the order of ids.",
		}, func(ctx context.Context, states int, r *measurement.Run) bool {
			return exhaust(ctx, small.Worlds(0), states, r, ledgersRow)
		}),
		ofWorlds(measurement.Entry{
			Name:     "explore-bootstrap",
			Question: "Can anything that happens while nodes make a mesh make two?",
			Method:   "Every order of what may happen, within a budget for each world (how often processes stop and start, and how many disks are lost), under several orders of ids.",
		}, func(ctx context.Context, states int, r *measurement.Run) bool {
			return exhaust(ctx, boot.Worlds(), states, r, bootstrapRow)
		}),
		exploreNodes(),
	}
}

// endSearch is the end of a search: it has found a broken promise, or not.
func endSearch(r *measurement.Run, found bool) error {
	if found {
		return r.Broken(1)
	}
	return r.Broken(0)
}

// exhaust goes through worlds, and adds what became of them in their order, those alike to one row.
func exhaust[W interface {
	comparable
	explore.World
}](ctx context.Context, worlds []W, states int, r *measurement.Run, row func(W) string) (broken bool) {
	ended, cutOff := map[W]breadth.Result{}, 0
	broken = explore.Exhaust(ctx, worlds, states, func(w W, found breadth.Result) {
		ended[w] = found
		r.Tell("%d of %d: %+v: %d states in %v", len(ended), len(worlds), w, found.States, found.Took.Round(time.Second/10))
	})
	for _, w := range worlds {
		found, ok := ended[w]
		if !ok {
			continue
		}
		values := measurement.Values{"states": float64(found.States), "cut-off": 0}
		switch {
		case found.Broken != "":
			r.Note("%+v: %s", w, broke(found))
		case !found.Whole:
			values["cut-off"] = 1
			cutOff++
		}
		r.Add(row(w), values)
	}
	r.Add("all", measurement.Values{cutOffInAll: float64(cutOff)})
	return broken
}

// broke says which promise was broken, and by what.
func broke(r breadth.Result) string { return r.Broken + "\n    " + strings.Join(r.Trace, "\n    ") }

func ledgersRow(c small.Config) string {
	nodes := fmt.Sprint(c.Nodes)
	if c.Halfway {
		nodes += ", half way"
	}
	ticks := "at any time"
	if c.Coarse {
		ticks = "after each event"
	}
	return measurement.Row("nodes", nodes, "ticks", ticks, "budget", c.Budget.String())
}

func bootstrapRow(c boot.Config) string {
	joins := "–"
	if c.Joins {
		joins = "1"
	}
	return measurement.Row("named", fmt.Sprint(c.Named), "joins", joins, "restarts", fmt.Sprint(c.Restarts), "lost", fmt.Sprint(c.Losses))
}

func exploreNodes() measurement.Entry {
	return measurement.Entry{
		Name: "explore-nodes", Page: "limit.md",
		Question: "Can operators' acts at exact moments break the limit, with whole nodes?",
		Method:   "Histories of a few acts, and deviations of network, disk and machine, each part for its share of the time, in an order drawn from the seed.",
		Units: []measurement.Unit{
			{Name: "histories", Meaning: "how many ran"},
			{Name: "of", Meaning: "how many there are; empty: they are drawn, without end", Exact: true},
			{Name: "useless", Meaning: "those in which a node refused an act, or a moment never came"},
			{Name: "sec", Meaning: "how long all cores ran them"},
			measurement.InAll,
		},
		Bounds: []measurement.Bound{measurement.NothingBroken},
		Quick:  []string{"for=2s"},
		New: func(o *pflag.FlagSet) func(context.Context, *measurement.Run) error {
			length := o.Duration("for", 10*time.Minute, "how long all parts take")
			seed := o.Uint64("seed", 1, "seed of the order, and of those that are drawn")
			return func(ctx context.Context, r *measurement.Run) error {
				broken, err := explore.Nodes(ctx, replay.Search{Seed: *seed}, *length, func(p explore.Part) {
					v := measurement.Values{"histories": float64(p.Runs), "useless": float64(p.Useless), "sec": p.Took.Seconds()}
					if p.Of > 0 {
						v["of"] = float64(p.Of)
					}
					r.Tell("%s: %d histories in %v", p.Name, p.Runs, p.Took.Round(time.Second))
					r.Add(measurement.Row("searched", p.Name), v)
				})
				if err != nil {
					return err
				}
				if broken != nil {
					r.Note("%s", replayed(*broken, 0))
				}
				return endSearch(r, broken != nil)
			}
		},
	}
}
