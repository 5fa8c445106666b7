//go:build linux

// Package scaling measures what a decision costs in processor time, by how many nodes a site
// has. There are twelve processes at any time, each of which gets as many requests as any other:
// twelve meshes of one node, six of two, and so on to one of twelve. So what differs is the mesh
// and not how busy the machine is, nor how cold its caches are. What nodes take while nobody asks
// is measured before and after, in the same meshes.
package scaling

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/load"
	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/transport"
)

// Entry is the measurement.
func Entry() measurement.Entry {
	e := measurement.Entry{
		Name: "scaling", Page: "measurements.md",
		Question: "Does a decision cost more where a site has more nodes?",
		Method: fmt.Sprintf("%d nodes on one core, the load and the site on the other: as many meshes of one node, half as many of two, and so on to one. Each node gets as many requests as any other. "+
			"Processor time of all nodes for each decision, without what they take while nobody asks.", processes),
		Units: []measurement.Unit{
			{Name: "cpu-sec/decision", Meaning: "processor time of all nodes for one decision", Better: "lower"},
			{Name: "of-one-node", Meaning: "the same by that of sites of one node in the same round", Better: "lower"},
			{Name: "idle-sec/s", Meaning: "processor time of a node while nobody asks", Better: "lower"},
			{Name: "req/s", Meaning: "requests to each node a second that were made", Better: "higher"},
		},
		Needs: []string{measurement.Ropeline, "taskset"}, Cores: []int{1}, Quick: []string{"rounds=1", "for=500ms", "rate=30", "sizes=1,12"},
		New: func(o *pflag.FlagSet) func(context.Context, *measurement.Run) error {
			var cfg config
			o.IntVar(&cfg.rounds, "rounds", 6, "how often each is measured; an interval takes six")
			o.Float64Var(&cfg.rate, "rate", 300, "requests per node and second")
			o.DurationVar(&cfg.lasts, "for", 3*time.Second, "how long each time")
			o.IntSliceVar(&cfg.sizes, "sizes", sizes, "how many nodes sites have; they divide 12, and 1 is what others are told by")
			return func(ctx context.Context, r *measurement.Run) error {
				if slices.ContainsFunc(cfg.sizes, func(n int) bool { return n < 1 || processes%n != 0 }) || !slices.Contains(cfg.sizes, 1) {
					return fmt.Errorf("sizes are %d: want some that divide %d, and 1", cfg.sizes, processes)
				}
				if r.Docs != "" && !slices.Equal(cfg.sizes, sizes) {
					return errors.New("--docs does not go with the option sizes: the page would have a part of the sites")
				}
				cfg.binary = r.Binary
				return rig.Try(func() { run(ctx, cfg, r) })
			}
		},
	}
	for _, kind := range kinds {
		for _, size := range sizes[1:] {
			e.Bounds = append(e.Bounds, measurement.Bound{Row: rowOf(size, kind), Unit: "of-one-node", Most: 1.1})
		}
	}
	return e
}

func rowOf(size int, kind string) string {
	return measurement.Row("nodes", fmt.Sprint(size), "kind", kind)
}

// processes is how many nodes there are at any time.
const processes = 12

// sizes are those of sites that are measured; they divide processes.
var sizes = []int{1, 2, 3, 6, 12}

// Kinds of requests.
const (
	inside  = "a visitor who is in"
	waiting = "a waiting visitor's poll"
	fresh   = "a new visitor, with a ticket"
)

var kinds = []string{inside, waiting, fresh}

const (
	think = 100 * time.Millisecond // of a visitor who is in, on average
	poll  = 3 * time.Second        // how often who waits is told to ask
)

// crowdOf returns who makes requests of a kind at a rate, and after which time all of them have come.
func crowdOf(kind string, rate float64) (c load.Crowd, warm time.Duration) {
	switch kind {
	case inside:
		return load.Crowd{Burst: int(rate * think.Seconds()), Spread: time.Second, Stay: time.Hour, Think: think, Paths: []string{"/open"}}, 2 * time.Second
	case waiting:
		return load.Crowd{Burst: int(rate * poll.Seconds()), Spread: poll, Paths: []string{"/closed"}}, poll + time.Second
	}
	return load.Crowd{Rate: rate, Paths: []string{"/open"}}, time.Second
}

// config says how long what is measured.
type config struct {
	binary string
	rounds int
	sizes  []int
	rate   float64 // requests per node and second
	lasts  time.Duration
}

func run(ctx context.Context, cfg config, r *measurement.Run) {
	site, stop, err := rig.Serve(&http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello\n") })}, "")
	rig.Must(err)
	defer stop()
	for round := range cfg.rounds {
		found := map[int]figure{}
		for i := range cfg.sizes {
			size := cfg.sizes[(i+round)%len(cfg.sizes)] // not always the same one first
			r.Tell("round %d of %d: sites of %d", round+1, cfg.rounds, size)
			f, err := measure(ctx, cfg, size, site)
			if err != nil {
				rig.Must(fmt.Errorf("sites of %d nodes: %w", size, err))
			}
			found[size] = f
		}
		for _, size := range cfg.sizes {
			for _, kind := range kinds {
				r.Add(rowOf(size, kind), found[size].values(found[1], kind))
			}
		}
	}
}

// figure is what was measured of one size in one round, in processor time.
type figure struct {
	idle     time.Duration            // of one node for a second, while nobody asks
	decision map[string]time.Duration // of all nodes for one decision of each kind, without that
	asked    map[string]float64       // requests per node and second
}

// values are those of a row; one is what was measured of sites of one node in the same round: a machine
// that is slower in one round is so for all.
func (f figure) values(one figure, kind string) measurement.Values {
	return measurement.Values{
		"cpu-sec/decision": f.decision[kind].Seconds(), "idle-sec/s": f.idle.Seconds(), "req/s": f.asked[kind],
		"of-one-node": float64(f.decision[kind]) / float64(max(1, one.decision[kind])),
	}
}

// spell is what nodes took for some requests.
type spell struct {
	used, span time.Duration
	requests   float64
}

// measure starts as many meshes as there are processes for, and asks them.
func measure(ctx context.Context, cfg config, size int, site string) (f figure, err error) {
	g := &group{}
	defer g.stop()
	err = rig.Try(func() {
		g.start(ctx, cfg.binary, size, site)
		rest := func() time.Duration {
			before, start := g.cpu(), time.Now()
			rig.Must(rig.Sleep(ctx, cfg.lasts))
			return time.Duration(float64(g.cpu()-before) / time.Since(start).Seconds() / processes)
		}
		f = figure{rest(), map[string]time.Duration{}, map[string]float64{}}
		spent := map[string]spell{}
		for _, kind := range kinds {
			spent[kind] = g.ask(ctx, cfg, kind)
		}
		f.idle = (f.idle + rest()) / 2
		for kind, s := range spent {
			f.asked[kind] = s.requests / processes / s.span.Seconds()
			f.decision[kind] = time.Duration((float64(s.used) - float64(f.idle)*processes*s.span.Seconds()) / s.requests)
		}
	})
	return f, err
}

// ask has a crowd come to all nodes, and returns what these took for it once all of it had come.
func (g *group) ask(ctx context.Context, cfg config, kind string) (s spell) {
	crowd, warm := crowdOf(kind, cfg.rate*processes)
	visits := load.Config{Host: "shop.example", Crowd: crowd, SessionDuration: time.Minute}
	for _, p := range g.nodes {
		visits.Targets = append(visits.Targets, "http://"+p.http+"/")
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var before, used time.Duration
	var from, to load.Snapshot
	var failed error
	report, err := load.Run(ctx, visits, func(now load.Snapshot) {
		failed = errors.Join(failed, rig.Try(func() {
			switch {
			case now.Elapsed < warm || to.Elapsed > 0:
			case from.Elapsed == 0:
				from, before = now, g.cpu()
			case now.Elapsed >= from.Elapsed+cfg.lasts:
				to, used = now, g.cpu()-before
				stop()
			}
		}))
	})
	rig.Must(errors.Join(err, failed))
	if to.Elapsed == 0 {
		rig.Must(cmp.Or(context.Cause(ctx), errors.New("the crowd has gone before it was measured")))
	}
	// Somebody who stood still for want of a processor may be answered otherwise.
	wrong := report.Errors + map[string]int{inside: report.Waited, waiting: report.Admitted, fresh: report.Waited}[kind]
	if float64(wrong) > 0.05*float64(report.Requests) {
		rig.Must(fmt.Errorf("%s: %d of %d requests were answered otherwise than they should be: the machine is too busy", kind, wrong, report.Requests))
	}
	return spell{used, to.Elapsed - from.Elapsed, float64(to.Requests - from.Requests)}
}

// settings are those of all nodes: a room whose visitors are let in at once, and one in which all
// of them wait.
const settings = `
total-active-users: 10000000
new-users-per-minute: 10000000
session-duration: 1m
max-connections-per-address: 100000
max-requests-per-connection: 1048576
rooms:
  - room: open
    path: /open
    cookie-suffix: open
  - room: closed
    path: /closed
    cookie-suffix: closed
    queue-all: true
    refresh-interval: 3s
`

// group is all processes, in meshes of the same size.
type group struct {
	dir   string
	nodes []*process
}

// process is one node.
type process struct {
	*rig.Process
	http, admin, mesh string
}

// start starts all processes and waits until every mesh is whole. The first of each mesh makes it, so that who joins
// finds somebody.
func (g *group) start(ctx context.Context, binary string, size int, site string) {
	g.dir = rig.Got(os.MkdirTemp("", "scaling"))
	rig.Must(os.WriteFile(filepath.Join(g.dir, "secret.key"), []byte(transport.NewSecret().Text()+"\n"), 0o600))
	var first []*process // of each mesh
	for i := range processes {
		if i%size == 0 {
			first = append(first, g.node(ctx, binary, site, i, "--bootstrap-nodes", fmt.Sprint("node-", i)))
		}
	}
	for _, p := range first {
		rig.Must(p.await(ctx, 0))
	}
	for i := range processes {
		if i%size != 0 {
			g.node(ctx, binary, site, i, "--bootstrap-nodes", fmt.Sprint("node-", i/size*size), "--join", first[i/size].mesh)
		}
	}
	for _, p := range g.nodes {
		rig.Must(p.await(ctx, size-1))
	}
	rig.Must(rig.Sleep(ctx, 5*time.Second)) // rights and counters have settled
}

// node starts one of the processes.
func (g *group) node(ctx context.Context, binary, site string, i int, args ...string) *process {
	p := &process{http: rig.Got(rig.Free()), admin: rig.Got(rig.Free()), mesh: rig.Got(rig.Free())}
	name := fmt.Sprint("node-", i)
	dir := filepath.Join(g.dir, name)
	rig.Must(os.Mkdir(dir, 0o700))
	args = append(args, "--secret-file", filepath.Join(g.dir, "secret.key"), "--log-level", "warn", "--name", name, "--mesh", p.mesh)
	p.Process = rig.Got(rig.StartNode(ctx, rig.NodeConfig{Binary: binary, Listen: p.http, Admin: p.admin, Site: site, Dir: dir, Config: settings, Args: args}))
	g.nodes = append(g.nodes, p)
	return p
}

// await waits until a node takes requests and sees that many others.
func (p *process) await(ctx context.Context, others int) error {
	return p.AwaitFunc(ctx, fmt.Sprintf("sees %d others", others), func(ctx context.Context) bool {
		s, err := rig.StatusAt(ctx, http.DefaultClient, p.admin)
		return err == nil && s.Ready && rig.Alive(s) == others
	})
}

// cpu returns the processor time that all nodes have taken so far.
func (g *group) cpu() (total time.Duration) {
	for _, p := range g.nodes {
		total += rig.Got(p.CPU())
	}
	return total
}

func (g *group) stop() {
	for _, p := range g.nodes {
		_ = p.Kill() // it has nothing to lose
	}
	_ = os.RemoveAll(g.dir)
}
