//go:build linux

// Package footprint measures what a node takes of memory: a real one that nobody asks, one
// more room, one more visitor where they are anchored and elsewhere, and all of that
// together. Its tests hold the figures that depend on nothing but the code.
package footprint

import (
	"context"
	"fmt"
	"strings"
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
	idle     time.Duration // how long nobody asks a node before it is looked at
}

// Units of rows.
const (
	inHeap    = "heap-B"
	inProcess = "resident-B"
)

// What has to hold. Sizes of the heap are counted and the same each time; what is resident is seen once in a run.
var (
	idleNode     = measurement.Bound{Row: "idle-node", Unit: inProcess, Most: 30 << 20}
	fewIdle      = measurement.Bound{Row: "idle-room/of=few", Unit: inHeap, Most: 4 << 10}
	manyIdle     = measurement.Bound{Row: "idle-room/of=many", Unit: inHeap, Most: 4 << 10}
	fewIdleReal  = measurement.Bound{Row: "idle-room-of-a-process/of=few", Unit: inProcess, Most: 4 << 10}
	manyIdleReal = measurement.Bound{Row: "idle-room-of-a-process/of=many", Unit: inProcess, Most: 4 << 10}
	atAnchor     = measurement.Bound{Row: "active/at=anchor", Unit: inHeap, Most: 64}
	atMate       = measurement.Bound{Row: "active/at=site", Unit: inHeap, Most: 8}
	atFar        = measurement.Bound{Row: "active/at=other-site", Unit: inHeap, Most: 8}
)

// Entry is the measurement.
func Entry() measurement.Entry {
	return measurement.Entry{
		Name: "footprint", Page: "measurements.md",
		Question: "What do a node, a room and a visitor take of memory?",
		Method: "A real node that bootstraps a mesh, with the settings that it has by itself, looked at when nobody has asked it for a while, with one room, some and many; " +
			"the heap of whole nodes in this process, by one more room and one more visitor; and a real node with many rooms and visitors.",
		Units: []measurement.Unit{
			{Name: inHeap, Meaning: "bytes of the heap, for one of what the row is of", Better: "lower", Exact: true},
			{Name: inProcess, Meaning: "resident bytes of a process, or of it for one of what the row is of", Better: "lower"},
		},
		Bounds: []measurement.Bound{idleNode, fewIdle, manyIdle, fewIdleReal, manyIdleReal, atAnchor, atMate, atFar},
		Needs:  []string{measurement.Ropeline},
		Quick:  []string{"rooms=1000", "visitors=100000", "idle=5s", "only=rooms,visitors"},
		New: func(o *pflag.FlagSet) func(context.Context, *measurement.Run) error {
			var p plan
			o.IntVar(&p.rooms, "rooms", 10_000, "how many rooms the node with many has")
			o.IntVar(&p.visitors, "visitors", 1_000_000, "how many visitors come")
			o.DurationVar(&p.idle, "idle", time.Minute, "how long nobody asks a node before it is looked at")
			only := o.StringSlice("only", []string{"rooms", "visitors", "full"}, "which parts")
			return func(ctx context.Context, r *measurement.Run) error {
				p.binary = r.Binary
				rows, err := measure(ctx, p, *only, r)
				if err != nil {
					return err
				}
				return r.TableWithFigures(ctx, table(rows), nil, rows)
			}
		},
	}
}

// leastRooms is how few the node with many may have.
const leastRooms = 20

// row is one line of the table.
type row struct {
	key   measurement.Bound // its name in results, with the unit and what it is to be below
	What  string            `json:"what"`
	Bytes float64           `json:"bytes"`
	Came  string            `json:"came,omitempty"` // what stands in the table; empty: Bytes, to a tenth
	Goal  string            `json:"goal,omitempty"`
}

// text is what stands in the table.
func (r row) text() string {
	if r.Came != "" {
		return r.Came
	}
	return fmt.Sprintf("%.1f", r.Bytes)
}

func measure(ctx context.Context, p plan, only []string, r *measurement.Run) (rows []row, err error) {
	if p.rooms < leastRooms {
		return nil, fmt.Errorf("rooms is %d: want at least %d: a tenth of them are measured as well, and need to be more than one room", p.rooms, leastRooms)
	}
	for _, name := range only {
		part, ok := map[string]func(context.Context, plan) ([]row, error){"rooms": roomRows, "visitors": visitorRows, "full": fullRows}[name]
		if !ok {
			return nil, fmt.Errorf("there is no part %q; want rooms, visitors or full", name)
		}
		some, err := part(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, x := range some {
			r.Tell("%s: %s", x.What, x.text())
			r.Add(x.key.Row, measurement.Values{x.key.Unit: x.Bytes})
		}
		rows = append(rows, some...)
	}
	return rows, nil
}

func table(rows []row) string {
	var b strings.Builder
	b.WriteString("| what | bytes | goal |\n|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.What, r.text(), r.Goal)
	}
	return b.String()
}

func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

func parts(m rig.Memory) string {
	return fmt.Sprintf("%s: %s of its own, %s of files", mib(m.Total), mib(m.Anon), mib(m.File))
}

// roomRows are those of what no visitor comes to. A node of one room is the idle node: rooms are counted from that same one.
func roomRows(ctx context.Context, p plan) (rows []row, err error) {
	counts := []int{1, p.rooms / 10, p.rooms}
	var at []rig.Memory
	for _, n := range counts {
		i, err := measureIdle(ctx, p.binary, n, p.idle)
		if err != nil {
			return nil, err
		}
		r := i.resident
		key, goal, what := measurement.Bound{Row: measurement.Row("rooms", fmt.Sprint(n)), Unit: inProcess}, "", fmt.Sprintf("a real node with %d rooms that nobody has asked for %v, resident", n, p.idle)
		if n == 1 {
			key, goal, what = idleNode, "under 30 MiB", fmt.Sprintf("a real node with one room that nobody has asked for %v, resident", p.idle)
		}
		rows = append(rows, row{key, what, float64(r.Total), fmt.Sprintf("%s; its heap %s; ready %.1f s after its start", parts(r), mib(i.heap), i.ready.Seconds()), goal})
		at = append(at, r)
	}
	for i, n := range counts[1:] {
		each, err := perIdleRoom(10, n)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{[]measurement.Bound{fewIdle, manyIdle}[i], fmt.Sprintf("an idle room of %d, in the heap of `node.Core`", n), each, fmt.Sprintf("%.0f", each), "under 4,096"})
	}
	for i, n := range counts[1:] {
		per := float64(at[i+1].Total-at[0].Total) / float64(n-1)
		rows = append(rows, row{[]measurement.Bound{fewIdleReal, manyIdleReal}[i], fmt.Sprintf("an idle room of %d, of what a real node has resident", n), per, fmt.Sprintf("%.0f", per), "under 4,096"})
	}
	return rows, nil
}

func visitorRows(_ context.Context, p plan) ([]row, error) {
	s, err := perActive(0, p.visitors)
	if err != nil {
		return nil, err
	}
	roaming, err := perRoaming(min(p.visitors, ticket.MaxRenewals))
	if err != nil {
		return nil, err
	}
	waiting, waited, err := perWaiting(0, p.visitors)
	if err != nil {
		return nil, err
	}
	return []row{
		{atAnchor, fmt.Sprintf("an active visitor of %d, at the anchor", p.visitors), s.anchor, "", "under 64"},
		{atMate, "the same, at another node of the site", s.mate, "", "under 8"},
		{atFar, "the same, at a node of another site", s.far, "", "under 8"},
		{measurement.Bound{Row: "active/at=site-asked", Unit: inHeap}, fmt.Sprintf("an active visitor of %d, at another node of the site that the visitor asks as well, until the session ends", min(p.visitors, ticket.MaxRenewals)), roaming, "", ""},
		{measurement.Bound{Row: "waiting", Unit: inHeap}, fmt.Sprintf("a visitor of %d who waits, at the owner", p.visitors), waiting, "", ""},
		{measurement.Bound{Row: "waited", Unit: inHeap}, "the same, let in: anchor, owner and who let them in are one node", waited, "", ""},
	}, nil
}

func fullRows(ctx context.Context, p plan) ([]row, error) {
	f, err := measureFull(ctx, p.binary, p.rooms, p.visitors/2, p.visitors/2, p.idle)
	if err != nil {
		return nil, err
	}
	visitors := float64(f.active + f.waiting)
	return []row{
		{measurement.Bound{Row: "full/when=before", Unit: inProcess}, fmt.Sprintf("a real node with %d rooms before anybody comes, resident", f.rooms), float64(f.before.Total), parts(f.before), ""},
		{measurement.Bound{Row: "full/when=peak", Unit: inProcess}, fmt.Sprintf("the same with %d visitors inside and %d who wait, when the last has come (%.0f s after the first)", f.active, f.waiting, f.took.Seconds()), float64(f.peak.Total), parts(f.peak), ""},
		{measurement.Bound{Row: "full/when=later", Unit: inProcess}, fmt.Sprintf("the same %v later", p.idle), float64(f.after.Total), parts(f.after), ""},
		{measurement.Bound{Row: "full-visitor", Unit: inProcess}, "a visitor of that node, of what it has resident then", float64(f.after.Total-f.before.Total) / visitors, "", ""},
	}, nil
}
