//go:build linux

package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/faults/check"
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
	Targets  []string // whom visitors ask, in turn; nil: every node
	Balanced bool     // visitors ask a balancer, and know of no node
	Later    string   // a node that the balancer knows of, and that the script starts
	Cuts     bool     // real links are cut where the machine allows it
	Disk     int64    // a small file system of so many bytes for each data directory
	Args     []string // for every node, besides the room
	// LogReader is a program that the log of each node goes through, and its arguments; nil: there is none.
	LogReader []string
	Node      map[string][]string // for some nodes
	Length    time.Duration
	Script    func(*run)          // hurts the mesh; nil: nobody does. See steps.go
	Check     func(*run) []string // says what is wrong, once all is over
	Settle    time.Duration       // how long rights may be on the move after it; 0: 10 s
	Loses     bool                // rights go with a disk, and wait to be recovered
	Trials    int                 // how often it is run, each time with a new mesh; 0: once
}

// roomArgs are the settings of the room that matter here.
type roomArgs struct {
	active, perMinute int
	session           time.Duration
	once              bool // sessions are not renewed
}

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
	if r.once {
		a = append(a, "--disable-session-renewal")
	}
	return a
}

// run is one execution of a scenario.
type run struct {
	scenario
	options
	ctx   context.Context
	mesh  *rig.Mesh
	front *balancer // nil: none
	trial int       // which of several runs this is, from 0
	rng   *rand.Rand

	limits check.Limits // that operators have set
	marks  []int64      // when faults came
	outage *outage
	silent []silence
	twins  *twins
	seen   []string
	loaded load.Report
	found  *findings
	grown  time.Duration // until a node that was added had its part of the requests
	begun  time.Time     // the mesh, and what is said counts from then
}

// options are what the command line says of all runs.
type options struct {
	binary, dir, policy string
	seed                uint64
	trials              int
	loopback            bool // no namespaces, even where they can be had
	out                 io.Writer
}

// execute runs a scenario once.
func execute(ctx context.Context, s scenario, o options, trial int) (_ *run, err error) {
	dir, err := os.MkdirTemp(o.dir, strings.ToLower(s.Name)+"-")
	if err != nil {
		return nil, err
	}
	network, through, err := rig.NewNetwork(s.Cuts && !o.loopback, o.seed, o.out)
	if err != nil {
		return nil, err
	}
	r := &run{scenario: s, options: o, ctx: ctx, begun: time.Now(), trial: trial, rng: rand.New(rand.NewPCG(o.seed, uint64(trial)+1))}
	r.limits = check.Limits{{Active: s.Room.active, PerMinute: s.Room.perMinute}}
	c := rig.Config{Binary: o.binary, Dir: dir, Names: s.Nodes, Args: append(s.Room.args(o.policy), s.Args...), Disk: s.Disk, Origin: http.HandlerFunc(shop), LogReader: s.LogReader}
	r.mesh, err = rig.NewMesh(c, network)
	if err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, r.mesh.Close())
		if err == nil && len(r.broken()) == 0 {
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
	if s.Later != "" {
		if _, err := r.mesh.Add(s.Later); err != nil {
			return r, err
		}
	}
	if s.Balanced {
		if r.front, err = startBalancer(ctx, dir, r.mesh.Nodes); err != nil {
			return r, err
		}
		defer func() { _ = r.front.Stop() }() // it has nothing to lose
	}
	return r, r.suffer(o.seed + uint64(trial))
}

// shop is the site behind the mesh.
func shop(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	io.WriteString(w, "<!doctype html><html lang=en><title>The shop</title><h1>Welcome</h1></html>")
}

// suffer drives visitors through the mesh while the script hurts it, and judges: also a run that
// failed half way, since what was granted until then counts.
func (r *run) suffer(seed uint64) error {
	began := time.Now()
	ctx, stop := context.WithCancel(r.ctx)
	defer stop()
	loaded := make(chan error, 1)
	go func() {
		var err error
		r.loaded, err = load.Run(ctx, r.load(seed), nil)
		loaded <- err
	}()
	err := rig.Try(func() {
		r.sleep(warmUp)
		if r.Script != nil {
			r.Script(r)
		}
		r.sleep(r.Length - time.Since(began))
	})
	stop()
	err = errors.Join(err, <-loaded)
	if r.ctx.Err() != nil {
		return err
	}
	var wrong []string
	if err == nil {
		err = rig.Try(func() { wrong = r.settle() })
	}
	return errors.Join(err, rig.Try(func() { r.judge(wrong) }))
}

// judge finds out what came of a run, of which something is known to be wrong.
func (r *run) judge(wrong []string) {
	for _, n := range r.mesh.Nodes {
		r.kill(n)
	}
	r.found = rig.Got(judge(r.mesh.Sources(), r.Room, r.limits))
	// Who was let in, and does not ask again before that session is over, for want
	// of the answer, has no place any more: here that takes a long session to rule
	// out.
	if n := r.loaded.PlacesLost; n > 0 && r.Room.session >= requestTimeout {
		wrong = append(wrong, fmt.Sprintf("%d waiting visitors were told a later arrival than before", n))
	}
	if r.Check != nil {
		wrong = append(wrong, r.Check(r)...)
	}
	r.found.broken = append(r.found.broken, wrong...)
}

const (
	warmUp         = 4 * time.Second // until the room is full, or the rate even
	requestTimeout = 3 * time.Second // of a visitor, for one try
)

func (r *run) load(seed uint64) load.Config {
	cfg := load.Config{
		Host: "shop.test", Crowd: r.Crowd, SessionDuration: r.Room.session, Seed: seed,
		RequestTimeout: requestTimeout, GiveUp: 20 * time.Second, Conns: 256,
	}
	if r.front != nil {
		cfg.Targets = []string{"http://" + r.front.addr + "/"}
		return cfg
	}
	cfg.Dial = r.mesh.Net.Dial
	targets := r.Targets
	if targets == nil {
		targets = r.Nodes
	}
	for _, name := range targets {
		cfg.Targets = append(cfg.Targets, "http://"+r.mesh.Node(name).Place.HTTP+"/")
	}
	return cfg
}

// strict reports whether the policy promises that no limit is passed.
func (r *run) strict() bool { return r.policy == escrow }

// escrow is the policy of measurements. Tests have others, to see that what is checked is found.
const escrow = "escrow"

// broken returns what must not have happened.
func (r *run) broken() []string {
	if r.found == nil {
		return nil
	}
	if r.strict() {
		return slices.Concat(r.found.broken, r.found.strict)
	}
	return r.found.broken
}

// scratch returns a path in the run's directory.
func (r *run) scratch(name string) string {
	return filepath.Join(filepath.Dir(r.mesh.Nodes[0].Data), name)
}
