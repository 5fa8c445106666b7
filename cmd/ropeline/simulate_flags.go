package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/sim"
	"github.com/ropeline/ropeline/node/room"
)

func simulateFlags(f *pflag.FlagSet, o *simulateOptions) {
	c := &o.cfg
	f.StringVar(&o.trace, "trace", "", "`file` with requests per minute (minute,requests) or an access log, plain or gzip")
	f.StringVar(&o.arrivals, "arrivals", "", "`shape` of the crowd instead of a file: uniform, ramp or flash, such as uniform:10000/30m")
	o.scale = 1
	f.Var(floatValue{dst: &o.scale, min: 1e-9, max: 1e9}, "scale", "how many visitors come for each that --trace or --arrivals says")
	duration(f, &o.begin, "begin", 0, 0, "leave out who comes before this time of --trace or --arrivals; all other times count from it")
	duration(f, &c.Length, "for", 0, 0, "end arrivals after this time (default: when all have come)")
	duration(f, &c.Drain, "drain", 0, 0, "how long those who are left may take after that (default: as long as it takes)")
	c.Sites, c.Nodes = 1, 1
	f.Var(intValue{&c.Sites, 1, sim.MaxSites}, "sites", "number of sites")
	f.Var(intValue{&c.Nodes, 1, sim.MaxNodes}, "nodes", "number of nodes at each site")
	f.Var(weightsValue{&c.Weights}, "site-weights", "parts of the crowd that come to each site, such as 0.5,0.3,0.2 (default: the same)")
	duration(f, &c.Rotate, "rotate", 0, 0, "move the weights on by one site each time this has passed (default: never)")
	part(f, &c.Uneven, "uneven", "part of a site's visitors who all come to its first node")
	simulatedRoomFlags(f, &c.Room)
	visitorFlags(f, o)
	networkFlags(f, c)
	f.StringArrayVar(&o.faults, "fault", nil, "what goes wrong, as `kind:key=value,...`, see above; repeat it for several")
	f.Uint64Var(&c.Seed, "seed", 0, "`number` that makes the same run again (default: a new one each time)")
	f.BoolVar(&o.json, "json", false, "print one JSON object instead of a table")
	f.BoolVar(&o.speed, "speed", false, "with --json: add how fast this machine was, which differs from run to run")
	f.StringVar(&o.plot, "plot", "", "draw pictures (SVG) into this `directory`")
}

func simulatedRoomFlags(f *pflag.FlagSet, s *room.Settings) {
	*s = s.WithDefaults()
	f.Var(enumValue[room.Policy]{&s.Policy, policies}, "policy", "how the limit is divided among nodes: escrow, even, curve, counter or open")
	f.Var(enumValue[room.OnPartition]{&s.OnPartition, []room.OnPartition{room.PartitionHold, room.PartitionOpen}}, "on-partition", "escrow: what goes on if a session's node is out of reach: hold (the limit) or open (the session)")
	f.Var(floatValue{&s.CurveFactor, 0.01, 8}, "curve-factor", "exponent of the policy curve")
	f.Var(methodValue(&s.QueueingMethod), "method", "fifo, random, passthrough or reject")
	f.Var(activeValue(&s.TotalActiveUsers), "total-active-users", "visitors on the site at one time; required")
	f.Var(perMinuteValue(&s.NewUsersPerMinute), "new-users-per-minute", "visitors let in per minute; required")
	f.Lookup("total-active-users").DefValue, f.Lookup("new-users-per-minute").DefValue = "", ""
	f.Var(sessionValue(&s.SessionDuration), "session-duration", "how long a visitor counts as active after the last request")
	f.Var(durationValue{&s.RefreshInterval, time.Second, 10 * time.Minute}, "refresh-interval", "how often a waiting visitor asks")
	f.Var(durationValue{&s.BucketSpan, time.Second, time.Minute}, "bucket-span", "visitors who arrive within it share a bucket of the queue")
	f.Var(durationValue{&s.PlaceKept, time.Second, 24 * time.Hour}, "place-kept", "how long the place is kept of a visitor who stopped asking")
	f.Var(freezeValue{durationValue{&s.ShareFreeze, 0, 24 * time.Hour}}, "share-freeze", "how long a site that has fallen silent keeps its share; 0s: not at all")
}

func visitorFlags(f *pflag.FlagSet, o *simulateOptions) {
	c := &o.cfg
	duration(f, &c.Stay, "stay", 2*time.Minute, time.Millisecond, "mean time that a visitor spends on the site")
	o.stayShape = stayExponential
	f.Var(enumValue[stayShape]{&o.stayShape, []stayShape{stayExponential, stayFixed}}, "stay-shape", "how these times are spread: exponential, or fixed, all the same")
	duration(f, &c.Think, "think", 15*time.Second, time.Millisecond, "mean pause between two pages")
	part(f, &c.Abandon, "abandon", "part of visitors who give up if they wait for too long")
	duration(f, &c.Patience, "patience", 3*time.Minute, time.Second, "mean wait after which these give up")
	part(f, &c.Roam, "roam", "chance that a request goes to another node than the one before it")
	f.Var(floatValue{&c.Lost, 0, 0.5}, "lost-answers", "part of answers that never reach the visitor")
	f.Var(floatValue{&c.Old, 0, 0.5}, "old-passes", "part of requests that carry an older pass than the newest")
}

func networkFlags(f *pflag.FlagSet, c *sim.Config) {
	n := &c.Network
	n.Delay, n.Near = 40*time.Millisecond, 500*time.Microsecond
	f.Var(freezeValue{durationValue{&n.Delay, 0, time.Minute}}, "delay", "median time of a message from one site to another")
	f.Var(freezeValue{durationValue{&n.Near, 0, time.Minute}}, "near-delay", "the same inside a site")
	f.Var(floatValue{&n.Jitter, 0, 2}, "jitter", "how far delays spread: the deviation of their logarithm")
	part(f, &n.Loss, "loss", "part of messages that never arrive")
	part(f, &n.Duplicate, "duplicate", "part of messages that arrive twice")
	part(f, &n.Reorder, "reorder", "part of messages that take up to five times as long")
	c.Disk = 500 * time.Microsecond
	f.Var(freezeValue{durationValue{&c.Disk, 0, time.Minute}}, "disk-delay", "median time until a write of a node is on its disk")
	c.Tick = 50 * time.Millisecond
	f.Var(durationValue{&c.Tick, 10 * time.Millisecond, 250 * time.Millisecond}, "tick", "how often a node is told the time; more seldom costs less and is later")
	f.Var(durationValue{&c.Clocks.Offset, 0, time.Hour}, "clock-offset", "most that a node's clock is ahead or behind at the start")
	f.Var(floatValue{&c.Clocks.Drift, 0, 0.01}, "clock-drift", "most that a clock gains or loses, in parts of the time passed")
}

// longestSimulated bounds every duration of a simulated run.
const longestSimulated = 30 * 24 * time.Hour

// duration binds a duration. Where its default is none, the usage says what that
// means.
func duration(f *pflag.FlagSet, dst *time.Duration, name string, value, least time.Duration, usage string) {
	*dst = value
	if value == 0 {
		least = time.Second
	}
	f.Var(durationValue{dst: dst, min: least, max: longestSimulated}, name, usage)
	if value == 0 {
		f.Lookup(name).DefValue = ""
	}
}

func part(f *pflag.FlagSet, dst *float64, name, usage string) {
	f.Var(floatValue{dst: dst, max: 1}, name, usage)
}

// weightsValue is a list of numbers of at least 0.
type weightsValue struct{ dst *[]float64 }

func (v weightsValue) String() string {
	if v.dst == nil {
		return ""
	}
	words := make([]string, len(*v.dst))
	for i, w := range *v.dst {
		words[i] = strconv.FormatFloat(w, 'g', -1, 64)
	}
	return strings.Join(words, ",")
}
func (v weightsValue) Type() string { return "number,..." }
func (v weightsValue) Set(s string) error {
	var weights []float64
	for word := range strings.SplitSeq(s, ",") {
		w, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
		if err != nil || !(w >= 0) || math.IsInf(w, 1) {
			return fmt.Errorf("%q is not allowed: numbers of at least 0, one for each site, such as 0.5,0.3,0.2", word)
		}
		weights = append(weights, w)
	}
	*v.dst = weights
	return nil
}

// sameAgain returns the command line that repeats a run, to be pasted into a
// shell: every flag that was given and matters for the result, and the seed.
func sameAgain(flags *pflag.FlagSet, seed uint64) string {
	words := []string{"ropeline", "simulate"}
	flags.Visit(func(f *pflag.Flag) {
		if slices.Contains([]string{"seed", "json", "speed", "plot"}, f.Name) {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			words = append(words, "--"+f.Name, shellQuoted(value))
		}
	})
	return strings.Join(append(words, "--seed", strconv.FormatUint(seed, 10)), " ")
}

// shellQuoted returns s as one word for a shell.
func shellQuoted(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:,=+@%", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
