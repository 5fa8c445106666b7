package sim

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// Config says what is simulated. Room and Arrivals are required; the zero value
// of every other field means the default that its comment gives.
type Config struct {
	// Seed decides everything that is drawn. When visitors come and where, how long
	// they stay and how patient they are depends neither on the network nor on
	// faults: two runs that differ in these have the same visitors.
	Seed uint64

	Sites int // default 1; at most MaxSites
	Nodes int // per site; default 1; at most MaxNodes in all

	// Weights are the parts of all visitors who come to each site; they need not
	// add up to 1. Default: the same for all.
	Weights []float64
	// Rotate moves the weights on by one site each time it has passed: the busy
	// hour goes round the world. Default: never.
	Rotate time.Duration
	// Uneven is the part of a site's visitors who all come to its first node;
	// the others are spread over all nodes. 0 … 1; default 0.
	Uneven float64

	// Room is the room that all visitors come to. Its ID, Name, Host and Path may
	// be left out. The times of its events count from Epoch.
	Room room.Settings

	Arrivals Arrivals `json:"-"`
	// Length is when arrivals stop, counted from the start. Default: with the
	// last one.
	Length time.Duration
	// Drain is how long after Length the run may go on so that all who are there
	// can finish. Whoever waits still at its end is counted in
	// [Figures.WaitingAtEnd]. Default: as long as it takes; that nobody is let
	// in any more is then a violation.
	Drain time.Duration

	// Stay is the mean time that visitors spend on the site once let in, drawn
	// exponentially. Default: one page and gone.
	Stay time.Duration
	// Think is the mean pause between two pages, drawn exponentially; the first
	// pause is shorter. Nobody pauses for longer than most of a session. Default
	// 15 s.
	Think time.Duration
	// Abandon is the part of visitors who give up if they have to wait for too
	// long for them, which is drawn around Patience. 0 … 1; default 0.
	Abandon  float64
	Patience time.Duration // mean, exponential; default 3 min
	// Roam is the chance that a request goes to another node than the one before
	// it: half of the time of the same site, else of any. 0 … 1; default 0.
	Roam float64
	// Lost is the part of answers that never reach the visitor, who then asks
	// the same node again with the pass of before. 0 … 0.5; default 0.
	Lost float64

	// Tick is how often a node is told the time. Nodes gather what they have to
	// say and look at their rooms then, so more seldom costs less and is later.
	// 10 ms … 250 ms; default 50 ms, as real nodes have it.
	Tick time.Duration

	// Old is the part of requests that carry one of the last three passes instead
	// of the newest, as a browser does whose tabs do not agree. 0 … 0.5; default 0.
	Old float64

	// Disk is the median time until a write of a node is durable. Default 0.5 ms;
	// negative: none.
	Disk time.Duration

	Network Network
	Clocks  Clocks
	Faults  []Fault

	// LeaveOut has the nodes leave out rules about rights, to see what each is for.
	// Default: all rules hold.
	LeaveOut ticket.Rules

	// Trace, if not nil, gets a line about each fault, start, admission and change of
	// rights, for people. What cannot be written is lost.
	Trace io.Writer `json:"-"`
}

// Limits of a Config.
const (
	MaxSites = 1000
	MaxNodes = 5000 // over all sites
)

// Epoch is the time of the virtual clock at which visitors begin to come.
func Epoch() time.Time { return time.Unix(1_800_000_000, 0).UTC() }

// Network is what happens to messages between nodes. The zero value is a fast
// and faultless one.
type Network struct {
	// Delay is the median time that a message takes from one site to another.
	// Default 40 ms; negative: none.
	Delay time.Duration
	// Near is the same inside a site. Default 0.5 ms; negative: none.
	Near time.Duration
	// Jitter spreads delays: each is the median times e to the power of a normal
	// number with this deviation. 0 … 2; default 0.
	Jitter float64
	// Loss, Duplicate and Reorder are the parts of messages that never arrive,
	// arrive twice, and take up to five times as long. 0 … 1; default 0.
	Loss, Duplicate, Reorder float64
}

// Clocks says how far the nodes' clocks are from the true time. The zero value
// are perfect ones.
type Clocks struct {
	// Offset is the most that a node's clock is ahead or behind at the start.
	Offset time.Duration
	// Drift is the most that a clock gains or loses, in parts of time passed: 1e-4
	// is 0.1 ms per second. At most 0.01.
	Drift float64
}

// ErrConfig is what errors about an impossible Config wrap.
var ErrConfig = errors.New("sim: bad config")

// Check reports what cannot be run, joined, without running anything. What each
// field of its own may be is for who reads it from somebody, such as the command line. Each part wraps [ErrConfig]; what is wrong with Room is a
// *room.FieldError besides.
func (c Config) Check() error {
	_, err := c.withDefaults()
	return err
}

// withDefaults returns a checked copy of c with every default filled in.
func (c Config) withDefaults() (Config, error) {
	setDefault(&c.Sites, 1)
	setDefault(&c.Nodes, 1)
	setDefault(&c.Think, 15*time.Second)
	setDefault(&c.Tick, 50*time.Millisecond)
	setDefault(&c.Patience, 3*time.Minute)
	setDefault(&c.Network.Delay, 40*time.Millisecond)
	setDefault(&c.Network.Near, 500*time.Microsecond)
	setDefault(&c.Disk, 500*time.Microsecond)
	c.Network.Delay, c.Network.Near, c.Disk = max(0, c.Network.Delay), max(0, c.Network.Near), max(0, c.Disk)
	setDefault(&c.Room.Name, "simulated")
	setDefault(&c.Room.ID, roomID)
	c.Room = c.Room.WithDefaults()
	if c.Length == 0 && c.Arrivals != nil {
		c.Length = c.Arrivals.Span()
	}
	return c, c.check()
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (c Config) check() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
	}
	if c.Sites < 1 || c.Sites > MaxSites {
		bad("%d sites; want 1 to %d", c.Sites, MaxSites)
	}
	if c.Nodes < 1 || c.Nodes > MaxNodes || c.Sites*c.Nodes > MaxNodes {
		bad("%d nodes at each of %d sites; want 1 to %d in all", c.Nodes, c.Sites, MaxNodes)
	}
	if c.Weights != nil {
		c.checkWeights(bad)
	}
	if err := c.Room.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("%w: room: %w", ErrConfig, err))
	}
	if c.Room.Suspended {
		bad("the room is suspended: every request passes, and there is nothing to see")
	}
	if c.Arrivals == nil {
		bad("no arrivals")
	}
	if n := changesOf(c.Faults); n >= maxChanges {
		bad("%d changes of limits, rooms made again included; want fewer than %d", n, maxChanges)
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for i, f := range c.Faults {
		if err := f.check(c); err != nil {
			errs = append(errs, fmt.Errorf("%w: fault %d (%s): %w", ErrConfig, i+1, f.Kind, err))
		}
	}
	return errors.Join(errs...)
}

type badFunc func(format string, args ...any)

func (c Config) checkWeights(bad badFunc) {
	if len(c.Weights) != c.Sites {
		bad("%d site weights for %d sites", len(c.Weights), c.Sites)
	} else if slices.Max(c.Weights) <= 0 {
		bad("all site weights are 0")
	}
}
