//go:build linux

package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/faults/check"
	"github.com/ropeline/ropeline/bench/faults/record"
	"github.com/ropeline/ropeline/bench/load"
	"github.com/ropeline/ropeline/bench/rig"
)

// scenario is one fault, or a mixture.
type scenario struct {
	Name     string // F1, F2, …, with a letter where a fault has several forms
	Fault    string // what goes wrong, in words
	Injected string // how
	Nodes    []string
	Room     roomArgs
	Crowd    load.Crowd
	Targets  []string            // whom visitors ask, in turn; nil: every node
	Balanced bool                // visitors ask a balancer, and know of no node
	Cuts     bool                // real links are cut where the machine allows it
	Disk     int64               // a small file system of so many bytes for each data directory
	Args     []string            // for every node, besides the room
	Node     map[string][]string // for some nodes
	Length   time.Duration
	Script   func(*run) error // hurts the mesh; nil: nobody does
	Check    func(*run) error // what else must be, once all is over
	Settle   time.Duration    // how long rights may be on the move after it; 0: 10 s
	Loses    bool             // rights go with a disk, and wait to be recovered
	Trials   int              // how often it is run, each time with a new mesh; 0: once
	Skip     string           // why it is not run here
}

// roomArgs are the settings of the room that matter here.
type roomArgs struct {
	active, perMinute int
	session           time.Duration
	once              bool   // sessions are not renewed
	onPartition       string // "": hold
}

// partitionOpen lets sessions go on without a right.
const partitionOpen = "open"

// extends is for how long a request makes a session last; 0: it does not.
func (r roomArgs) extends() time.Duration {
	if r.once {
		return 0
	}
	return r.session
}

func (r roomArgs) args(policy string) []string {
	a := []string{
		"--policy", policy, "--total-active-users", fmt.Sprint(r.active), "--new-users-per-minute", fmt.Sprint(r.perMinute),
		"--session-duration", r.session.String(), "--refresh-interval", "1s", "--bucket-span", "1s",
	}
	if r.onPartition != "" {
		a = append(a, "--on-partition", r.onPartition)
	}
	if r.once {
		a = append(a, "--disable-session-renewal")
	}
	return a
}

// run is one execution of a scenario.
type run struct {
	scenario
	ctx    context.Context
	mesh   *rig.Mesh
	origin *origin
	front  *balancer // nil: none
	policy string
	trials int
	trial  int // which of several runs this is, from 0
	rng    *rand.Rand
	out    io.Writer

	limits  check.Limits // that operators have set
	marks   []int64      // when faults came
	outages []*outage
	silent  []silence
	twins   *twins
	shown   int64 // the most borrowed sessions that nodes showed at one time
	seen    []string
	loaded  load.Report
	found   *findings
	grown   time.Duration // until a node that was added had its part of the requests
	begun   time.Time     // the mesh, and what is said counts from then
}

// options are what the command line says of all runs.
type options struct {
	binary, dir, policy string
	seed                uint64
	trials              int
	loopback            bool // no namespaces, even where they can be had
	keep                bool // data, logs and records of runs that held
	out                 io.Writer
}

// network returns where the mesh of a scenario lives.
func (s *scenario) network(o options) (rig.Network, string, error) {
	if s.Cuts && !o.loopback {
		n, err := rig.NewNamespaces()
		if err == nil {
			return n, "network namespaces", nil
		}
		if !errors.Is(err, rig.ErrCannot) {
			return nil, "", err
		}
		fmt.Fprintf(o.out, "%s: through proxies: %v\n", s.Name, err)
	}
	return rig.NewLoopback(o.seed), "proxies", nil
}

// execute runs a scenario once.
func execute(ctx context.Context, s scenario, o options, trial int) (_ *run, err error) {
	dir, err := os.MkdirTemp(o.dir, strings.ToLower(s.Name)+"-")
	if err != nil {
		return nil, err
	}
	network, through, err := s.network(o)
	if err != nil {
		return nil, err
	}
	r := &run{scenario: s, ctx: ctx, begun: time.Now(), origin: new(origin), policy: o.policy, trials: o.trials, trial: trial, out: o.out, rng: rand.New(rand.NewPCG(o.seed, uint64(trial)+1))}
	r.limits = check.Limits{{Active: s.Room.active, PerMinute: s.Room.perMinute}}
	r.mesh, err = rig.NewMesh(rig.Config{
		Binary: o.binary, Dir: dir, Names: s.Nodes, Args: append(s.Room.args(o.policy), s.Args...), Disk: s.Disk, Origin: r.origin,
	}, network)
	if err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, r.mesh.Close())
		if err == nil && !o.keep && len(r.broken()) == 0 {
			err = os.RemoveAll(dir)
		} else {
			fmt.Fprintf(o.out, "%s: logs and records are in %s\n", s.Name, dir)
		}
	}()
	for name, args := range s.Node {
		r.mesh.Node(name).Args = args
	}
	if err := r.mesh.Start(ctx); err != nil {
		return r, err
	}
	r.say("mesh of %d nodes, through %s", len(s.Nodes), through)
	if s.Balanced {
		if r.front, err = newBalancer(ctx, r.mesh.Nodes); err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, r.front.close()) }()
	}
	return r, r.suffer(o.seed + uint64(trial))
}

// suffer drives visitors through the mesh while the script hurts it, and judges.
func (r *run) suffer(seed uint64) error {
	began := time.Now()
	ctx, stop := context.WithCancel(r.ctx)
	defer stop()
	type outcome struct {
		report load.Report
		err    error
	}
	loaded := make(chan outcome, 1)
	go func() {
		report, err := load.Run(ctx, r.load(seed), nil)
		loaded <- outcome{report, err}
	}()
	err := r.sleep(warmUp)
	if err == nil && r.Script != nil {
		err = r.Script(r)
	}
	if rest := r.Length - time.Since(began); err == nil && rest > 0 {
		err = r.sleep(rest)
	}
	stop()
	o := <-loaded
	r.loaded = o.report
	err = errors.Join(err, o.err)
	if r.ctx.Err() != nil {
		return err
	}
	var lost []string
	if err == nil {
		lost = r.settle()
	}
	return errors.Join(err, r.judged(lost))
}

// judged finds out what came of a run, also of one that failed half way: what was
// granted until then counts.
func (r *run) judged(lost []string) (err error) {
	for _, n := range r.mesh.Nodes {
		if err := n.Kill(); err != nil {
			return err
		}
	}
	if r.found, err = judge(r.mesh.Sources(), r.Room, r.limits, r.marks); err != nil {
		return err
	}
	r.found.Broken = append(r.found.Broken, lost...)
	// Who was let in, and does not ask again before that session is over, for want
	// of the answer, has no place any more: here that takes a long session to rule
	// out.
	if n := r.loaded.PlacesLost; n > 0 && r.Room.session >= requestTimeout {
		r.found.Broken = append(r.found.Broken, fmt.Sprintf("%d waiting visitors were told a later arrival than before", n))
	}
	if r.Check != nil {
		if err := r.Check(r); err != nil {
			r.found.Broken = append(r.found.Broken, err.Error())
		}
	}
	return nil
}

const (
	warmUp      = 4 * time.Second // until the room is full, or the rate even
	historySpan = 8 * time.Second // after each fault

	requestTimeout = 3 * time.Second // of a visitor, for one try
)

func (r *run) load(seed uint64) load.Config {
	targets := r.Targets
	if targets == nil && r.front == nil {
		targets = r.Nodes
	}
	cfg := load.Config{
		Host: "shop.test", Crowd: r.Crowd, SessionDuration: r.Room.session, Seed: seed,
		RequestTimeout: requestTimeout, GiveUp: 20 * time.Second, Dial: r.mesh.Net.Dial, Conns: 256,
	}
	if r.front != nil {
		cfg.Targets, cfg.Dial = []string{"http://" + r.front.addr + "/"}, nil
	}
	for _, name := range targets {
		cfg.Targets = append(cfg.Targets, "http://"+r.mesh.Node(name).Place.HTTP+"/")
	}
	return cfg
}

// say tells whoever watches.
func (r *run) say(format string, args ...any) {
	fmt.Fprintf(r.out, "%-4s %6.1fs  %s\n", r.Name, time.Since(r.begun).Seconds(), fmt.Sprintf(format, args...))
}

// mark says what is done to the mesh, and when: histories are searched after
// each.
func (r *run) mark(format string, args ...any) {
	r.marks = append(r.marks, record.Now())
	r.say(format, args...)
}

// note keeps a figure for the table.
func (r *run) note(format string, args ...any) {
	r.seen = append(r.seen, fmt.Sprintf(format, args...))
	r.say("%s", r.seen[len(r.seen)-1])
}

// sleep waits, and returns the reason if the run is broken off.
func (r *run) sleep(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}

// strict reports whether the policy promises that no limit is passed.
func (r *run) strict() bool { return r.policy == "escrow" }

// broken returns what must not have happened.
func (r *run) broken() []string {
	if r.found == nil {
		return nil
	}
	b := r.found.Broken
	if r.strict() {
		b = append(b[:len(b):len(b)], r.found.Strict...)
	}
	return b
}

// counter returns the node that hands out tickets in a site, once it says so
// itself and so does everybody else there.
func (r *run) counter(site string) (*rig.Node, error) {
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); {
		if n := r.agreed(site); n != nil {
			return n, nil
		}
		if err := r.sleep(50 * time.Millisecond); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("the nodes of site %s do not agree on a counter", site)
}

// agreed returns the node that all nodes of a site that answer name as its
// counter, or nil.
func (r *run) agreed(site string) *rig.Node {
	named := ""
	ids := map[string]*rig.Node{}
	for _, n := range r.mesh.Nodes {
		if n.Site != site || !n.Running() {
			continue
		}
		s, err := n.Status(r.ctx)
		if err != nil || len(s.Rooms) == 0 {
			continue
		}
		ids[s.Node] = n
		if c := s.Rooms[0].SiteCounter; named != "" && c != named {
			return nil
		}
		named = s.Rooms[0].SiteCounter
	}
	return ids[named]
}

// scratch returns a path in the run's directory.
func (r *run) scratch(name string) string {
	return filepath.Join(filepath.Dir(r.mesh.Nodes[0].Data), name)
}
