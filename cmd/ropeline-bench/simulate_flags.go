package main

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/sim"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/settings"
)

func simulateFlags(f *pflag.FlagSet, o *simulateOptions) {
	c := &o.cfg
	f.StringVar(&o.trace, "trace", "", "`file` with requests per minute (minute,requests)")
	f.StringVar(&o.arrivals, "arrivals", "", "`shape` of the crowd instead of a file: uniform or flash, such as uniform:10000/30m")
	o.scale = 1
	f.Var(settings.Float(1e-9, 1e9).At(&o.scale), "scale", "how many visitors come for each that --trace or --arrivals says")
	duration(f, &o.begin, "begin", 0, 0, "leave out who comes before this time of --trace or --arrivals; all other times count from it")
	duration(f, &c.Length, "for", 0, 0, "end arrivals after this time (default: when all have come)")
	duration(f, &c.Drain, "drain", 0, 0, "how long those who are left may take after that (default: as long as it takes)")
	c.Sites, c.Nodes = 1, 1
	f.Var(settings.Int(1, sim.MaxSites).At(&c.Sites), "sites", "number of sites")
	f.Var(settings.Int(1, sim.MaxNodes).At(&c.Nodes), "nodes", "number of nodes at each site")
	f.Var(weights.At(&c.Weights), "site-weights", "parts of the crowd that come to each site, such as 0.5,0.3,0.2 (default: the same)")
	duration(f, &c.Rotate, "rotate", 0, 0, "move the weights on by one site each time this has passed (default: never)")
	part(f, &c.Uneven, "uneven", "part of a site's visitors who all come to its first node")
	simulatedRoomFlags(f, &c.Room)
	visitorFlags(f, c)
	networkFlags(f, c)
	f.StringArrayVar(&o.faults, "fault", nil, "what goes wrong, as `kind:key=value,...`, see above; repeat it for several")
	f.Uint64Var(&c.Seed, "seed", 0, "`number` that makes the same run again (default: a new one each time)")
}

// simulatedRoomFlags binds what a simulated room has of the settings of real ones.
func simulatedRoomFlags(f *pflag.FlagSet, s *room.Settings) {
	*s = s.WithDefaults()
	fields := room.Fields(nil).Pick("policy", "on-partition", "curve-factor", "queueing-method", "total-active-users", "new-users-per-minute",
		"session-duration", "refresh-interval", "bucket-span", "place-kept", "share-freeze")
	fields[3].Name = "method"
	for i := range fields {
		v := fields[i].Of(s)
		f.Var(v, fields[i].Name, fields[i].Meaning+v.Spec().Words())
	}
	f.Lookup("total-active-users").DefValue, f.Lookup("new-users-per-minute").DefValue = "", ""
}

func visitorFlags(f *pflag.FlagSet, c *sim.Config) {
	duration(f, &c.Stay, "stay", 2*time.Minute, time.Millisecond, "mean time that a visitor spends on the site, exponential")
	duration(f, &c.Think, "think", 15*time.Second, time.Millisecond, "mean pause between two pages")
	part(f, &c.Abandon, "abandon", "part of visitors who give up if they wait for too long")
	duration(f, &c.Patience, "patience", 3*time.Minute, time.Second, "mean wait after which these give up")
	part(f, &c.Roam, "roam", "chance that a request goes to another node than the one before it")
	f.Var(settings.Float(0, 0.5).At(&c.Lost), "lost-answers", "part of answers that never reach the visitor")
	f.Var(settings.Float(0, 0.5).At(&c.Old), "old-passes", "part of requests that carry an older pass than the newest")
}

func networkFlags(f *pflag.FlagSet, c *sim.Config) {
	n := &c.Network
	n.Delay, n.Near = 40*time.Millisecond, 500*time.Microsecond
	f.Var(settings.OrNever(settings.Duration(0, time.Minute, 1)).At(&n.Delay), "delay", "median time of a message from one site to another")
	f.Var(settings.OrNever(settings.Duration(0, time.Minute, 1)).At(&n.Near), "near-delay", "the same inside a site")
	f.Var(settings.Float(0, 2).At(&n.Jitter), "jitter", "how far delays spread: the deviation of their logarithm")
	part(f, &n.Loss, "loss", "part of messages that never arrive")
	part(f, &n.Duplicate, "duplicate", "part of messages that arrive twice")
	part(f, &n.Reorder, "reorder", "part of messages that take up to five times as long")
	c.Disk = 500 * time.Microsecond
	f.Var(settings.OrNever(settings.Duration(0, time.Minute, 1)).At(&c.Disk), "disk-delay", "median time until a write of a node is on its disk")
	c.Tick = 50 * time.Millisecond
	f.Var(settings.Duration(10*time.Millisecond, 250*time.Millisecond, 1).At(&c.Tick), "tick", "how often a node is told the time; more seldom costs less and is later")
	f.Var(settings.Duration(0, time.Hour, 1).At(&c.Clocks.Offset), "clock-offset", "most that a node's clock is ahead or behind at the start")
	f.Var(settings.Float(0, 0.01).At(&c.Clocks.Drift), "clock-drift", "most that a clock gains or loses, in parts of the time passed")
}

var weights = settings.Row(settings.Of(settings.Spec{Type: "number", Allowed: "numbers of at least 0, one for each site, such as 0.5,0.3,0.2"},
	func(s string) (float64, bool) {
		w, err := strconv.ParseFloat(s, 64)
		return w, err == nil && w >= 0 && !math.IsInf(w, 1)
	},
	func(w float64) string { return strconv.FormatFloat(w, 'g', -1, 64) }, nil))

// longestSimulated bounds every duration of a simulated run.
const longestSimulated = 30 * 24 * time.Hour

// duration binds a duration. Where its default is none, the usage says what that
// means.
func duration(f *pflag.FlagSet, dst *time.Duration, name string, value, least time.Duration, usage string) {
	*dst = value
	if value == 0 {
		least = time.Second
	}
	f.Var(settings.Duration(least, longestSimulated, 1).At(dst), name, usage)
	if value == 0 {
		f.Lookup(name).DefValue = ""
	}
}

func part(f *pflag.FlagSet, dst *float64, name, usage string) {
	f.Var(settings.Float(0, 1).At(dst), name, usage)
}

// sameAgain returns the command line that repeats a run, to be pasted into a
// shell: every flag that was given, and the seed.
func sameAgain(flags *pflag.FlagSet, seed uint64) string {
	words := []string{"ropeline-bench", "simulate"}
	flags.Visit(func(f *pflag.Flag) {
		if f.Name == "seed" {
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
