//go:build linux

// Package footprint measures what a node takes of memory: a real one that nobody asks, one
// more room, one more visitor where they are anchored and elsewhere, and all of that
// together. Its tests hold the figures that depend on nothing but the code.
package footprint

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/node/ticket"
)

// plan says how much is measured.
type plan struct {
	binary   string
	rooms    int           // of the node with many
	visitors int           // of the mesh, and of the node with many rooms
	tunnels  int           // open at one time
	idle     time.Duration // how long nobody asks a node before it is looked at
}

// Units of rows.
const (
	inHeap    = "heap-B"
	inProcess = "resident-B"
)

// What has to hold. Sizes of the heap are counted and the same each time; what is resident is seen once in a run.
var (
	idleNode     = bound("idle node", "1 room", inProcess, 30<<20)
	fewIdle      = bound("idle room", "of few", inHeap, 4<<10)
	manyIdle     = bound("idle room", "of many", inHeap, 4<<10)
	fewIdleReal  = bound("idle room of a process", "of few", inProcess, 4<<10)
	manyIdleReal = bound("idle room of a process", "of many", inProcess, 4<<10)
	atAnchor     = bound("active visitor", "at the anchor", inHeap, 64)
	atMate       = bound("active visitor", "elsewhere in the site", inHeap, 8)
	atFar        = bound("active visitor", "at another site", inHeap, 8)
)

// bound is that of a row, by what it is of; 0: none.
func bound(what, which, unit string, most float64) measurement.Bound {
	return measurement.Bound{Row: measurement.Row("what", what, "case", which), Unit: unit, Most: most, Text: what + ", " + which}
}

// Entry is the measurement.
func Entry() measurement.Entry {
	return measurement.Entry{
		Name: "footprint", Page: "measurements.md",
		Question: "What do a node, a room and a visitor take of memory?",
		Method: "A real node that bootstraps a mesh, with the settings that it has by itself, looked at when nobody has asked it for a while, with one room, some and many; " +
			"the heap of whole nodes in this process, by one more room and one more visitor: at the anchor, at another node of the site (also when the visitor asks that one as well, until the session ends) and of another site; " +
			"of one who waits, at the owner, and who has waited and was let in, where anchor, owner and who let them in are one node; a real node with WebSockets that say nothing; and a real node with many rooms and visitors. Few rooms are a tenth of many.",
		Units: []measurement.Unit{
			{Name: inHeap, Meaning: "bytes of the heap, for one of what the row is of", Better: "lower", Exact: true},
			{Name: inProcess, Meaning: "resident bytes of a process, or of it for one of what the row is of", Better: "lower"},
		},
		Bounds: []measurement.Bound{idleNode, fewIdle, manyIdle, fewIdleReal, manyIdleReal, atAnchor, atMate, atFar},
		Needs:  []string{measurement.Ropeline},
		Quick:  []string{"rooms=200", "visitors=20000", "tunnels=200", "idle=2s", "only=rooms,visitors,tunnels"},
		New: func(o *pflag.FlagSet) func(context.Context, *measurement.Run) error {
			var p plan
			o.IntVar(&p.rooms, "rooms", 10_000, "how many rooms the node with many has")
			o.IntVar(&p.visitors, "visitors", 1_000_000, "how many visitors come")
			o.IntVar(&p.tunnels, "tunnels", 5000, "how many WebSockets are open; each takes two files, here and at the node")
			o.DurationVar(&p.idle, "idle", time.Minute, "how long nobody asks a node before it is looked at")
			only := o.StringSlice("only", []string{"rooms", "visitors", "tunnels", "full"}, "which parts")
			return func(ctx context.Context, r *measurement.Run) error {
				p.binary = r.Binary
				return measure(ctx, p, *only, r)
			}
		},
	}
}

// leastRooms is how few the node with many may have.
const leastRooms = 20

// row is what came of one thing.
type row struct {
	of    measurement.Bound // its name in results, with the unit and what it is to be below
	bytes float64
}

func measure(ctx context.Context, p plan, only []string, r *measurement.Run) error {
	if p.rooms < leastRooms {
		return fmt.Errorf("rooms is %d: want at least %d: a tenth of them are measured as well, and need to be more than one room", p.rooms, leastRooms)
	}
	for _, name := range only {
		part, ok := map[string]func(context.Context, plan, *measurement.Run) []row{"rooms": roomRows, "visitors": visitorRows, "tunnels": tunnelRows, "full": fullRows}[name]
		if !ok {
			return fmt.Errorf("there is no part %q; want rooms, visitors, tunnels or full", name)
		}
		err := rig.Try(func() {
			for _, x := range part(ctx, p, r) {
				r.Tell("%s: %.1f %s", x.of.Row, x.bytes, x.of.Unit)
				r.Add(x.of.Row, measurement.Values{x.of.Unit: x.bytes})
			}
		})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func parts(m rig.Memory) string {
	mib := func(n int64) float64 { return float64(n) / (1 << 20) }
	return fmt.Sprintf("%.1f MiB resident: %.1f of its own, %.1f of files", mib(m.Total), mib(m.Anon), mib(m.File))
}

// roomRows are those of what no visitor comes to. A node of one room is the idle node: rooms are counted from that same one.
func roomRows(ctx context.Context, p plan, run *measurement.Run) (rows []row) {
	counts := []int{1, p.rooms / 10, p.rooms}
	var at []float64
	for _, n := range counts {
		i := measureIdle(ctx, p.binary, n, p.idle)
		run.Note("A node with %d rooms has %s; it was ready %.1f s after its start.", n, parts(i.resident), i.ready.Seconds())
		at = append(at, float64(i.resident.Total))
	}
	rows = []row{{idleNode, at[0]}}
	for i, n := range counts[1:] {
		rows = append(rows, row{bound("idle node", fmt.Sprint(n, " rooms"), inProcess, 0), at[i+1]})
	}
	for i, n := range counts[1:] {
		rows = append(rows, row{[]measurement.Bound{fewIdle, manyIdle}[i], perIdleRoom(10, n)},
			row{[]measurement.Bound{fewIdleReal, manyIdleReal}[i], (at[i+1] - at[0]) / float64(n-1)})
	}
	return rows
}

func visitorRows(_ context.Context, p plan, _ *measurement.Run) []row {
	s := perActive(0, p.visitors)
	waiting, waited := perWaiting(0, p.visitors)
	return []row{
		{atAnchor, s.anchor},
		{atMate, s.mate},
		{atFar, s.far},
		{bound("active visitor", "elsewhere in the site, asked as well", inHeap, 0), perRoaming(min(p.visitors, ticket.MaxRenewals))},
		{bound("waiting visitor", "", inHeap, 0), waiting},
		{bound("active visitor", "who has waited", inHeap, 0), waited},
	}
}

func tunnelRows(ctx context.Context, p plan, _ *measurement.Run) []row {
	return []row{{bound("open WebSocket", "", inProcess, 0), measureTunnels(ctx, p.binary, p.tunnels, p.idle)}}
}

func fullRows(ctx context.Context, p plan, run *measurement.Run) []row {
	f := measureFull(ctx, p.binary, p.rooms, p.visitors/2, p.visitors/2, p.idle)
	run.Note("The full node has %d rooms. Before anybody comes it has %s; with %d visitors inside and %d who wait, %.0f s after the first came, %s; %v later %s.",
		p.rooms, parts(f.before), f.active, f.waiting, f.took.Seconds(), parts(f.peak), p.idle, parts(f.after))
	visitor := float64(f.after.Total-f.before.Total) / float64(f.active+f.waiting)
	return []row{
		{bound("full node", "before anybody comes", inProcess, 0), float64(f.before.Total)},
		{bound("full node", "when the last has come", inProcess, 0), float64(f.peak.Total)},
		{bound("full node", "later", inProcess, 0), float64(f.after.Total)},
		{bound("visitor of the full node", "", inProcess, 0), visitor},
	}
}
