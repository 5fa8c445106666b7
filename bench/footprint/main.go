//go:build linux

// Command footprint measures what a node takes of memory: a real one that nobody asks, one
// more room, one more visitor where they are anchored and elsewhere, and all of that
// together. It writes what came of it as a table into a page of the documentation, between
// two marks.
//
//	go run ./bench/footprint -binary ./ropeline -page docs/measurements.md
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/docpage"
	"github.com/ropeline/ropeline/bench/machine"
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

// leastRooms is how few the node with many may have.
const leastRooms = 20

// row is one line of the table.
type row struct {
	What  string  `json:"what"`
	Bytes float64 `json:"bytes"`
	Came  string  `json:"came,omitempty"` // what stands in the table; empty: Bytes, to a tenth
	Goal  string  `json:"goal,omitempty"` // with what became of it
}

// text is what stands in the table.
func (r row) text() string {
	if r.Came != "" {
		return r.Came
	}
	return fmt.Sprintf("%.1f", r.Bytes)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "footprint: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("footprint", flag.ContinueOnError)
	var p plan
	fs.StringVar(&p.binary, "binary", "./ropeline", "the `program` to run")
	page := fs.String("page", "", "the `file` to write the table into, and all figures beside it; empty: print it")
	fs.IntVar(&p.rooms, "rooms", 10_000, "how many rooms the node with many has")
	fs.IntVar(&p.visitors, "visitors", 1_000_000, "how many visitors come")
	fs.DurationVar(&p.idle, "idle", time.Minute, "how long nobody asks a node before it is looked at")
	only := fs.String("only", "", "comma-separated `parts`: rooms, visitors, full; empty: all")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if p.rooms < leastRooms {
		return fmt.Errorf("-rooms is %d: want at least %d: a tenth of them are measured as well, and need to be more than one room", p.rooms, leastRooms)
	}
	var rows []row
	for _, part := range []struct {
		name    string
		measure func(context.Context, plan) ([]row, error)
	}{{"rooms", roomRows}, {"visitors", visitorRows}, {"full", fullRows}} {
		if *only != "" && !strings.Contains(","+*only+",", ","+part.name+",") {
			continue
		}
		some, err := part.measure(ctx, p)
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		for _, r := range some {
			fmt.Fprintf(os.Stderr, "%s: %s\n", r.What, r.text())
		}
		rows = append(rows, some...)
	}
	return docpage.WriteResult(os.Stdout, *page, "footprint", table(rows),
		docpage.Result{Maker: "make footprint", Made: time.Now(), Machine: machine.Of(ctx, nil), Figures: rows})
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

// verdict says whether a goal was reached.
func verdict(ok bool, goal string) string {
	if ok {
		return goal + ": held"
	}
	return goal + ": **missed**"
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
		what, goal := fmt.Sprintf("a real node with %d rooms that nobody has asked for %v, resident", n, p.idle), ""
		if n == 1 {
			what, goal = fmt.Sprintf("a real node with one room that nobody has asked for %v, resident", p.idle), verdict(r.Total < 30<<20, "under 30 MiB")
		}
		rows = append(rows, row{what, float64(r.Total), fmt.Sprintf("%s; its heap %s; ready %.1f s after its start", parts(r), mib(i.heap), i.ready.Seconds()), goal})
		at = append(at, r)
	}
	for _, n := range counts[1:] {
		each, err := perIdleRoom(10, n)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{fmt.Sprintf("an idle room of %d, in the heap of `node.Core`", n), each, fmt.Sprintf("%.0f", each), verdict(each < 4<<10, "under 4,096")})
	}
	for i, n := range counts[1:] {
		per := float64(at[i+1].Total-at[0].Total) / float64(n-1)
		rows = append(rows, row{fmt.Sprintf("an idle room of %d, of what a real node has resident", n), per, fmt.Sprintf("%.0f", per), verdict(per < 4<<10, "under 4,096")})
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
		{fmt.Sprintf("an active visitor of %d, at the anchor", p.visitors), s.anchor, "", verdict(s.anchor < 64, "under 64")},
		{"the same, at another node of the site", s.mate, "", verdict(s.mate < 8, "under 8")},
		{"the same, at a node of another site", s.far, "", verdict(s.far < 8, "under 8")},
		{fmt.Sprintf("an active visitor of %d, at another node of the site that the visitor asks as well, until the session ends", min(p.visitors, ticket.MaxRenewals)), roaming, "", ""},
		{fmt.Sprintf("a visitor of %d who waits, at the owner", p.visitors), waiting, "", ""},
		{"the same, let in: anchor, owner and who let them in are one node", waited, "", ""},
	}, nil
}

func fullRows(ctx context.Context, p plan) ([]row, error) {
	f, err := measureFull(ctx, p.binary, p.rooms, p.visitors/2, p.visitors/2, p.idle)
	if err != nil {
		return nil, err
	}
	visitors := float64(f.active + f.waiting)
	return []row{
		{fmt.Sprintf("a real node with %d rooms before anybody comes, resident", f.rooms), float64(f.before.Total), parts(f.before), ""},
		{fmt.Sprintf("the same with %d visitors inside and %d who wait, when the last has come (%.0f s after the first)", f.active, f.waiting, f.took.Seconds()), float64(f.peak.Total), parts(f.peak), ""},
		{fmt.Sprintf("the same %v later", p.idle), float64(f.after.Total), parts(f.after), ""},
		{"a visitor of that node, of what it has resident then", float64(f.after.Total-f.before.Total) / visitors, "", ""},
	}, nil
}
