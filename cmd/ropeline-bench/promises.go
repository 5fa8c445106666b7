package main

import (
	"context"
	"io"
	"maps"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/schedules"
	"github.com/ropeline/ropeline/node/settings"
	"github.com/ropeline/ropeline/node/ticket"
)

// What is counted of schedules.
var (
	letIn  = measurement.Unit{Name: "let-in", Meaning: "visitors who were let in", Exact: true}
	full   = measurement.Unit{Name: "all-places-taken", Meaning: "schedules in which all places were taken at some moment", Exact: true}
	rated  = measurement.Unit{Name: "rate-used-up", Meaning: "schedules in which the rate was used up", Exact: true}
	failed = measurement.Unit{Name: "failed", Meaning: "schedules in which a promise was broken", Better: "lower", Exact: true}
)

// promises are the measurements of random schedules.
func promises() []measurement.Entry {
	return []measurement.Entry{
		{
			Name: "schedules", Page: "simulator.md",
			Question: "Does the limit hold in random schedules of trouble?",
			Method:   "Whole meshes in virtual time, each with the crowd, the faults, the limits and the network that follow from one number.",
			Units: []measurement.Unit{
				{Name: "schedules", Meaning: "how many ran", Exact: true},
				{Name: "virtual-sec", Meaning: "virtual time of each", Exact: true},
				{Name: "faults", Meaning: "faults in all of them", Exact: true},
				letIn,
				{Name: "elsewhere", Meaning: "sessions that went on by a right of another node", Exact: true},
				{Name: "borrowed", Meaning: "sessions that went on without a right, and said so", Exact: true},
				full, rated, failed, measurement.InAll,
			},
			Bounds: []measurement.Bound{measurement.NothingBroken},
			Quick:  []string{"n=50"},
			New:    ofSchedules(100_000, judgeAll),
		},
		{
			Name: "stories", Page: "limit.md",
			Question: "Does the limit hold whenever another node begins to mint?",
			Method:   "Each story, in a mesh that is calm but for that and full, at moments that are drawn at random.",
			Units:    []measurement.Unit{letIn, full, rated, failed, measurement.InAll},
			Bounds:   []measurement.Bound{measurement.NothingBroken},
			Quick:    []string{"n=5"},
			New:      ofSchedules(1000, judgeStories),
		},
		knockOut(),
	}
}

// ofSchedules is the New of a measurement of n schedules, or of n of each kind.
func ofSchedules(n int, judge func(context.Context, schedules.Set, *measurement.Run) error) func(*pflag.FlagSet) func(context.Context, *measurement.Run) error {
	return func(o *pflag.FlagSet) func(context.Context, *measurement.Run) error {
		s := schedules.Set{N: n, Workers: runtime.GOMAXPROCS(0)}
		o.Var(settings.Int(1, 1<<40).At(&s.N), "n", "how many schedules run, of each row")
		o.Uint64Var(&s.Seed, "seed", 1, "seed of the first one; the next one has the next number")
		o.Var(settings.Int(1, 1<<16).At(&s.Workers), "workers", "how many run at once")
		return func(ctx context.Context, r *measurement.Run) error {
			defer debug.SetGCPercent(debug.SetGCPercent(schedulesGC))
			return judge(ctx, s, r)
		}
	}
}

// schedulesGC is the percentage for debug.SetGCPercent: a schedule makes much garbage, keeps little and ends soon.
const schedulesGC = 1600

// countsOf are the figures that all measurements of schedules have.
func countsOf(t *schedules.Tally) measurement.Values {
	return measurement.Values{letIn.Name: float64(t.Admitted), full.Name: float64(t.Full), rated.Name: float64(t.Rated), failed.Name: float64(t.Failed)}
}

func judgeAll(ctx context.Context, s schedules.Set, r *measurement.Run) error {
	t, err := s.Run(ctx, r.Log, schedules.Progress(r.Log, s.N))
	if err != nil {
		return err
	}
	values := countsOf(t)
	maps.Copy(values, measurement.Values{
		"schedules": float64(t.Schedules), "virtual-sec": t.Virtual / float64(t.Schedules), "faults": float64(t.Faults),
		"elsewhere": float64(t.Reanchored), "borrowed": float64(t.Borrowed),
	})
	r.Add("row=all", values)
	return r.Broken(t.Failed)
}

func judgeStories(ctx context.Context, s schedules.Set, r *measurement.Run) error {
	broken := 0
	for _, name := range schedules.Stories() {
		s.Story = name
		t, err := s.Run(ctx, r.Log, func(*schedules.Tally) {})
		if err != nil {
			return err
		}
		r.Tell("%s: %d of %d failed", name, t.Failed, t.Schedules)
		r.Add(measurement.Row("story", name), countsOf(t))
		broken += t.Failed
	}
	return r.Broken(broken)
}

// noticed is the part of the schedules in which something is wrong.
const noticed = "noticed-%"

// seldom are the rules that a schedule comes to seldom or never; tests of node/ticket have to show what they are for.
const seldom = ticket.BoundBeforeUse | ticket.OpenBlockOnly | ticket.CountUntilBlockEnds | ticket.LoanKept | ticket.ReceiveBeforeUse | ticket.Fence |
	ticket.PauseCheck | ticket.FreshMint | ticket.MintedWithGifts

// knockOut is the measurement that leaves out each rule in turn. Schedules that fail are what is wanted.
func knockOut() measurement.Entry {
	e := measurement.Entry{
		Name: "knock-out", Page: "limit.md",
		Question: "Do random schedules notice that a rule about rights is left out?",
		Method:   "Each rule about rights is left out in turn, by all nodes of whole meshes in random schedules. Where whole nodes go without `fresh-mint`, they go without `minted-with-gifts` as well, which makes most of it good.",
		Units:    []measurement.Unit{{Name: noticed, Meaning: "part of the schedules in which a promise is broken, in percent", Exact: true}},
		Quick:    []string{"n=5"},
		New: ofSchedules(1000, func(ctx context.Context, s schedules.Set, r *measurement.Run) error {
			for _, name := range ticket.RuleNames() {
				rules, err := ticket.ParseRules(name)
				if err != nil {
					return err
				}
				s.LeaveOut = rules
				t, err := s.Run(ctx, io.Discard, func(*schedules.Tally) {})
				if err != nil {
					return err
				}
				r.Tell("%s: noticed in %d of %d: %s", name, t.Failed, t.Schedules, t.Broken())
				r.Add(measurement.Row("rule", name), measurement.Values{noticed: 100 * float64(t.Failed) / float64(t.Schedules)})
				if t.Failed > 0 {
					r.Note("Without `%s`: %s.", name, strings.ReplaceAll(t.Broken(), "_", " "))
				}
			}
			return nil
		}),
	}
	for _, name := range ticket.RuleNames() {
		if rules, err := ticket.ParseRules(name); err == nil && rules&seldom == 0 {
			e.Bounds = append(e.Bounds, measurement.Bound{Row: measurement.Row("rule", name), Unit: noticed, Least: 0.1, Text: "schedules notice that " + name + " is left out"})
		}
	}
	return e
}
