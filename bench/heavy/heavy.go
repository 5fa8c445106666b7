//go:build linux

// Package heavy loads a real node with what wears proxies out: bodies of a GiB,
// thousands of WebSockets that say nothing, and clients that send a byte now and
// then.
//
// The node, the origin and the clients are processes of their own, so that each
// has the whole limit of open files and the node's memory is its own.
package heavy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/measurement"
)

// plan says how much is done.
type plan struct {
	binary   string        // the program of ropeline
	origin   []string      // the command that is the origin
	body     int64         // bytes of one body
	sockets  int           // WebSockets, if there are files for as many
	hold     time.Duration // how long they say nothing
	slow     int           // clients that send a byte now and then
	visitors int           // others, meanwhile
	alone    time.Duration // and before, for comparison
}

// row is one line of the table.
type row struct {
	name                string // of the results
	what, came, verdict string
	values              measurement.Values
}

// Entry is the measurement. The program of the measurements is the origin, when it is called with "serve heavy-origin".
func Entry() measurement.Entry {
	return measurement.Entry{
		Name: "heavy", Page: "measurements.md",
		Question: "Does a node hold what wears proxies out: large bodies, idle WebSockets, slow clients?",
		Method: "A real node with the settings that it has by itself, and a site behind it: bodies both ways, with a length and in chunks, WebSockets that say nothing, " +
			"and clients that send a byte now and then while others ask.",
		Units: []measurement.Unit{
			{Name: "broken", Meaning: "how much of what has to hold did not", Better: "lower", Exact: true},
			{Name: "B/s", Meaning: "bytes of a body a second", Better: "higher"},
			{Name: "grown-B", Meaning: "by how much the node's resident memory grew meanwhile", Better: "lower"},
			{Name: "B/socket", Meaning: "resident memory of the node for each WebSocket", Better: "lower"},
		},
		Bounds: []measurement.Bound{{Row: "all", Unit: "broken", Most: measurement.NoneAtAll, Text: "what did not hold"}},
		Needs:  []string{measurement.Ropeline},
		Quick:  []string{"body=67108864", "sockets=1000", "hold=2s", "slow=100", "alone=2s"},
		New: func(o *pflag.FlagSet) func(context.Context, *measurement.Run) error {
			var p plan
			o.Int64Var(&p.body, "body", 1<<30, "bytes of one body")
			o.IntVar(&p.sockets, "sockets", 10000, "how many WebSockets")
			o.DurationVar(&p.hold, "hold", time.Minute, "how long they say nothing")
			o.IntVar(&p.slow, "slow", 1000, "how many clients send a byte now and then")
			o.IntVar(&p.visitors, "visitors", 20, "how many others ask ten times a second meanwhile")
			o.DurationVar(&p.alone, "alone", 10*time.Second, "how long they do before the slow ones come")
			return func(ctx context.Context, r *measurement.Run) error {
				p.binary, p.origin = r.Binary, []string{r.Self, "serve", Origin}
				rows, err := measure(ctx, p, r.Tell)
				if err != nil {
					return err
				}
				sum := 0.0
				for _, x := range rows {
					bad := 0.0
					if strings.Contains(x.verdict, broken) {
						bad = 1
					}
					values := measurement.Values{"broken": bad}
					maps.Copy(values, x.values)
					r.Add(x.name, values)
					sum += bad
				}
				r.Add("all", measurement.Values{"broken": sum})
				return r.Table(table(rows))
			}
		},
	}
}

// measure runs everything, on one node after the other.
func measure(ctx context.Context, p plan, tell func(string, ...any)) ([]row, error) {
	var rows []row
	for _, part := range []func(context.Context, plan, *stack) ([]row, error){measureBodies, measureSockets, measureSlow} {
		r, err := newStack(ctx, p)
		if err != nil {
			return nil, errors.Join(err, r.stop())
		}
		some, err := part(ctx, p, r)
		if err := errors.Join(err, r.stop()); err != nil {
			return nil, fmt.Errorf("%w\nThe node said:\n%s", err, r.node.Log())
		}
		for _, r := range some {
			tell("%s: %s: %s", r.what, r.came, r.verdict)
		}
		rows = append(rows, some...)
	}
	return rows, nil
}

func table(rows []row) string {
	var b strings.Builder
	b.WriteString("| what | what came of it | verdict |\n|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.what, r.came, r.verdict)
	}
	return b.String()
}

const broken = "**broken**"

// verdict says whether something held.
func verdict(ok bool) string {
	if ok {
		return "held"
	}
	return broken
}
