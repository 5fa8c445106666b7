package story

import (
	"fmt"
	"strings"
	"time"
)

// set is a table's worth of runs.
type set struct {
	runs  []planned
	head  []string // of the cells of planned.title
	cells []cell
}

// cell is one column of figures.
type cell struct {
	head  string
	value func(finished) string
}

// policies are the policies in several situations.
func policies() set {
	// Sessions are short so that places change hands as often, for so small a
	// crowd, as those of a large site do.
	room := "--total-active-users 800 --new-users-per-minute 400 --stay 2m --session-duration 1m"
	day := "--trace bench/testdata/worldcup98-0707.csv --begin 2h --for 1h50m --scale 0.002 --sites 5 --nodes 3 --site-weights 0.4,0.3,0.15,0.1,0.05 --rotate 20m " + room
	// The crowd moves from site to site every 20 minutes, at 40m the last time before
	// the cut.
	cut := day + " --fault partition:site=2,from=45m,for=12m"
	moved := day + " --fault partition:site=2,from=40m,for=12m"
	spike := "--arrivals flash:8000/30m,at=10m,in=10s,part=0.9 --sites 5 --nodes 3 " + room
	s := set{head: []string{"situation", "policy"}, cells: []cell{
		{"overshoot, %", number(func(f finished) float64 { return f.result.OvershootPct }, 1)},
		{"of the rate, %", number(func(f finished) float64 { return f.result.OvershootRatePct }, 1)},
		{"early queued, %", number(func(f finished) float64 { return f.result.EarlyQueuedPct }, 2)},
		{"idle, %", number(func(f finished) float64 { return f.result.IdlePct }, 2)},
		{"wait p50 / p99", func(f finished) string { return short(f.result.WaitP50) + " / " + short(f.result.WaitP99) }},
		{"order error", number(func(f finished) float64 { return f.result.OrderError }, 4)},
		{"estimate off p50 / p90, min", func(f finished) string {
			return fmt.Sprintf("%.1f / %.1f", f.result.EstimateP50, f.result.EstimateP90)
		}},
		{"B/s per node, in site / between", func(f finished) string {
			return fmt.Sprintf("%.0f / %.0f", f.result.Near.Bytes, f.result.Far.Bytes)
		}},
		{"broken promises", func(f finished) string { return fmt.Sprint(len(f.result.Violations)) }},
	}}
	shares := []string{"even", "curve", "counter"}
	all := append([]string{"escrow"}, append(shares, "open")...)
	for _, situation := range []struct {
		name, args string
		policies   []string
	}{
		{"undisturbed", day, all},
		{"spike everywhere", spike, all},
		{"site cut off", cut, all},
		{"site cut off as the crowd leaves it", moved, append([]string{"escrow"}, shares...)},
		{"site cut off, sessions go on", cut + " --on-partition open", []string{"escrow"}},
		{"site cut off, shares not frozen", cut + " --share-freeze 0s", shares},
	} {
		for _, policy := range situation.policies {
			s.runs = append(s.runs, planned{
				title: []string{situation.name, "`" + policy + "`"},
				args:  strings.Fields(situation.args + " --policy " + policy + " --seed 1"),
			})
		}
	}
	return s
}

// methods are first come first served and chance, for the same crowd.
func methods() set {
	s := set{head: []string{"room for", "method"}, cells: []cell{
		{"wait p50 / p99", func(f finished) string { return short(f.result.WaitP50) + " / " + short(f.result.WaitP99) }},
		{"part of the waits' variance that a line over arrivals explains", number(func(f finished) float64 { return f.result.WaitR2 }, 2)},
		{"correlation of wait and arrival", number(func(f finished) float64 { return f.result.WaitCorrelation }, 2)},
		{"deviation of waits inside a minute of arrival", func(f finished) string { return short(f.result.WaitSpread) }},
		{"idle, %", number(func(f finished) float64 { return f.result.IdlePct }, 1)},
	}}
	for _, r := range []struct{ places, method string }{{"65", "fifo"}, {"65", "random"}, {"200", "random"}} {
		s.runs = append(s.runs, planned{title: []string{r.places, "`" + r.method + "`"}, args: strings.Fields("--arrivals uniform:10000/30m --stay 1m --session-duration 30s " +
			"--total-active-users " + r.places + " --new-users-per-minute 10000 --refresh-interval 60s --method " + r.method + " --seed 1")})
	}
	return s
}

// large are the runs that show what simulations, and meshes, of size cost.
func large() set {
	s := set{head: []string{"run", "nodes"}, cells: []cell{
		{"visitors", func(f finished) string { return fmt.Sprint(f.result.Visitors) }},
		{"time simulated", func(f finished) string { return short(f.result.Simulated) }},
		{"took, s", number(func(f finished) float64 { return f.took.Seconds() }, 1)},
		{"visitors per s", number(func(f finished) float64 { return float64(f.result.Visitors) / f.took.Seconds() }, 0)},
		{"memory, MiB", number(func(f finished) float64 { return float64(f.memory) / (1 << 20) }, 0)},
		{"B/s per node, in site", number(func(f finished) float64 { return f.result.Near.Bytes }, 0)},
		{"between sites", number(func(f finished) float64 { return f.result.Far.Bytes }, 0)},
		{"worst node", number(func(f finished) float64 { return f.result.FarWorst.Bytes }, 0)},
		{"broken promises", func(f finished) string { return fmt.Sprint(len(f.result.Violations)) }},
	}}
	add := func(name, nodes, args string) {
		s.runs = append(s.runs, planned{title: []string{name, nodes}, args: strings.Fields(args + " --seed 1"), env: []string{"GOMAXPROCS=1"}})
	}
	add("a million visitors", "5 × 3", "--trace bench/testdata/worldcup98-0707.csv --begin 2h40m --for 20m --scale 0.306 --sites 5 --nodes 3 "+
		"--site-weights 0.4,0.3,0.15,0.1,0.05 --rotate 20m --total-active-users 110000 --new-users-per-minute 60000 --stay 1m --session-duration 1m --policy even")
	for _, m := range []struct{ sites, nodes, visitors int }{{10, 10, 1_000}, {30, 2, 1_000}, {30, 10, 1_000}, {30, 10, 10_000}, {100, 10, 1_000}, {300, 10, 1_000}} {
		add("a mesh of many sites", fmt.Sprintf("%d × %d", m.sites, m.nodes), fmt.Sprintf(
			"--arrivals uniform:%d/5s --sites %d --nodes %d --total-active-users %d --new-users-per-minute %[4]d --stay 1s --session-duration 1s --drain 5s --tick 250ms --policy even",
			m.visitors, m.sites, m.nodes, m.visitors))
	}
	return s
}

func number(value func(finished) float64, digits int) func(finished) string {
	return func(f finished) string { return fmt.Sprintf("%.*f", digits, value(f)) }
}

// short writes seconds as people read them.
func short(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	text := d.Round(time.Second).String()
	if cut, ok := strings.CutSuffix(text, "m0s"); ok {
		return cut + "m"
	}
	return text
}

// table returns the runs as Markdown: one row each, then how to make them.
func (s set) table(done []finished) string {
	var b strings.Builder
	heads := append([]string{}, s.head...)
	for _, c := range s.cells {
		heads = append(heads, c.head)
	}
	fmt.Fprintf(&b, "| %s |\n|%s%s\n", strings.Join(heads, " | "), strings.Repeat("---|", len(s.head)), strings.Repeat("--:|", len(s.cells)))
	last := ""
	for _, f := range done {
		row := append([]string{}, f.title...)
		if row[0] == last {
			row[0] = ""
		} else {
			last = row[0]
		}
		for _, c := range s.cells {
			row = append(row, c.value(f))
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	b.WriteString("\nEach row is one of these:\n\n```\n")
	for _, f := range done {
		b.WriteString(f.line() + "\n")
	}
	b.WriteString("```\n")
	return b.String()
}
