package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"
)

// Sizes that hold for every mesh. A peer that sends more loses that stream.
const (
	MaxMessage = 256 << 10 // bytes of one message given to [Mesh.Send]
	MaxCall    = 1 << 20   // bytes of one request or answer of [Mesh.Call]

	maxNameLen = 63
	maxSiteLen = 63
)

// Config describes a node of the mesh. Start from [LAN], which fills
// Timing and Limits and leaves the rest to the caller. ID and Identity are
// required.
type Config struct {
	ID   PeerID
	Boot uint64 // number of this start; must grow with each start of the same ID

	// Known says that the node was of its mesh before this start: then it does not give way to
	// another one that has its name and says that it was started earlier.
	Known bool

	Name string // at most 63 letters, digits, '-', '.' or '_'; empty means the ID's first digits
	Site string // same alphabet; required, and the same as in the certificate

	// Listen is the UDP host:port to bind. Port 0 takes any free port; an
	// empty Listen means ":0".
	Listen string
	// Advertise is the host:port that others dial. Empty means the address
	// bound, and when that is a wildcard, an address of this machine.
	Advertise string
	// PacketConn, when set, is used in place of a socket bound to Listen.
	// The mesh closes it. Hosts that are handed a socket, and tests on a
	// simulated network, need it.
	PacketConn net.PacketConn

	// Seeds are host:port of nodes to join; names are resolved again at
	// each try. Own addresses among them do no harm.
	Seeds []string
	// DataDir keeps the addresses of the last peers seen, so that a node
	// finds the mesh again though all its seeds are gone. Empty keeps
	// nothing.
	DataDir string

	// Mesh is the mesh that the node is of. Nodes of different ones refuse each other. With
	// Pending set the node is of none yet, and [Mesh.SetMesh] will say of which.
	Mesh    MeshID
	Pending bool

	Identity *Identity
	Logger   *slog.Logger // nil discards

	// OnCall answers a call. It runs in a goroutine of its own, may take
	// as long as ctx allows, and owns req. Nil refuses all calls. Calls
	// and messages of a peer can come before OnEvent has told of it; who
	// it is, from says in any case.
	OnCall func(ctx context.Context, from Peer, method uint8, req []byte) ([]byte, error)
	// OnMessage takes a one-way message and owns msg. Messages of one peer
	// come one after the other and in order per connection; it must not
	// block, or that peer's next messages wait.
	OnMessage func(from Peer, kind uint8, msg []byte)
	// OnEvent is told of each change in the membership, one at a time and
	// in order. It must not block.
	OnEvent func(Event)

	// Clock is the clock that [Mesh.Offset] compares with those of the
	// peers; nil means time.Now. All timers run on the monotonic clock.
	Clock func() time.Time

	Timing Timing
	Limits Limits
}

// Timing holds the intervals of a mesh. All must be above zero.
type Timing struct {
	ProbeInterval    time.Duration // one member is probed per interval; shorter finds failures sooner and costs packets
	ProbeTimeout     time.Duration // wait for a probe's answer; must exceed the round trip, below ProbeInterval
	SuspicionMult    int           // a suspect has SuspicionMult × log(n) × ProbeInterval to object
	GossipInterval   time.Duration // pause between rounds of news
	GossipNodes      int           // members told per round
	PushPullInterval time.Duration // pause between full exchanges with one member
	StreamTimeout    time.Duration // limit of one full exchange

	PingInterval      time.Duration // clock and distance sample per connection
	DialTimeout       time.Duration // limit of a dial, hello included
	CheckTimeout      time.Duration // limit of the direct call that must fail before a peer counts as failed
	IdleTimeout       time.Duration // a silent connection dies after this; QUIC does not go below 5 s
	CallTimeout       time.Duration // of a call whose context has no deadline
	RetryInterval     time.Duration // failed peers are tried this often, so a healed cut is noticed this soon
	SeedInterval      time.Duration // seeds are joined this often while one is missing
	ReconcileInterval time.Duration // members are compared with serf's list at least this often
	LeaveTimeout      time.Duration // limit of saying good-bye
}

// Limits bounds what one mesh holds. All must be above zero.
type Limits struct {
	Links      int // connections; the longest unused goes when a new one is needed
	QueueLen   int // messages waiting per peer; the oldest goes first
	QueueBytes int // bytes waiting per peer; the oldest goes first
	Handshakes int // handshakes per second from unproven addresses before they must prove them
}

// LAN returns the settings for nodes that reach each other within a few
// milliseconds: a crashed node is known to be gone in under 10 s. They hold for sites a
// continent apart, too, where paths lose packets.
func LAN() Config {
	return Config{
		Timing: Timing{
			ProbeInterval: time.Second,
			ProbeTimeout:  500 * time.Millisecond,
			SuspicionMult: 4,
			// A node that has nothing to tell wakes as often. With 500 ms, it takes a second until a dozen
			// nodes know that one is ready; a new counter of a site waits half of that to hear of another.
			GossipInterval:   200 * time.Millisecond,
			GossipNodes:      3,
			PushPullInterval: 30 * time.Second,
			StreamTimeout:    10 * time.Second,

			PingInterval:      2 * time.Second,
			DialTimeout:       3 * time.Second,
			CheckTimeout:      1500 * time.Millisecond,
			IdleTimeout:       6 * time.Second,
			CallTimeout:       2 * time.Second,
			RetryInterval:     3 * time.Second,
			SeedInterval:      60 * time.Second,
			ReconcileInterval: 10 * time.Second,
			LeaveTimeout:      3 * time.Second,
		},
		Limits: Limits{Links: 512, QueueLen: 512, QueueBytes: 8 << 20, Handshakes: 200},
	}
}

// withDefaults checks cfg and returns a copy with the optional fields filled.
func (c Config) withDefaults() (Config, error) {
	if c.ID.IsZero() {
		return c, errors.New("transport: Config.ID is zero")
	}
	if c.Identity == nil {
		return c, errors.New("transport: Config.Identity is nil")
	}
	if c.Name == "" {
		c.Name = c.ID.Short()
	}
	if err := checkLabel("name", c.Name, maxNameLen); err != nil {
		return c, fmt.Errorf("transport: %w", err)
	}
	if err := checkLabel("site", c.Site, maxSiteLen); err != nil {
		return c, fmt.Errorf("transport: %w", err)
	}
	if id, site := c.Identity.ID(), c.Identity.Site(); id != c.ID || site != c.Site {
		return c, fmt.Errorf("transport: the certificate is for node %s in site %q, not for node %s in site %q", id, site, c.ID, c.Site)
	}
	for _, s := range c.Seeds {
		if _, _, err := net.SplitHostPort(s); err != nil {
			return c, fmt.Errorf("transport: seed %q: %w", s, err)
		}
	}
	if c.Advertise != "" {
		if _, _, err := net.SplitHostPort(c.Advertise); err != nil {
			return c, fmt.Errorf("transport: advertise %q: %w", c.Advertise, err)
		}
	}
	if c.Listen == "" {
		c.Listen = ":0"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if err := c.Timing.validate(); err != nil {
		return c, err
	}
	return c, c.Limits.validate()
}

func (t Timing) validate() error {
	for _, f := range []struct {
		name string
		d    time.Duration
	}{
		{"ProbeInterval", t.ProbeInterval},
		{"ProbeTimeout", t.ProbeTimeout},
		{"GossipInterval", t.GossipInterval},
		{"PushPullInterval", t.PushPullInterval},
		{"StreamTimeout", t.StreamTimeout},
		{"PingInterval", t.PingInterval},
		{"DialTimeout", t.DialTimeout},
		{"CheckTimeout", t.CheckTimeout},
		{"IdleTimeout", t.IdleTimeout},
		{"CallTimeout", t.CallTimeout},
		{"RetryInterval", t.RetryInterval},
		{"SeedInterval", t.SeedInterval},
		{"ReconcileInterval", t.ReconcileInterval},
		{"LeaveTimeout", t.LeaveTimeout},
	} {
		if f.d <= 0 {
			return fmt.Errorf("transport: Timing.%s is %v, want above zero (start from LAN)", f.name, f.d)
		}
	}
	if t.SuspicionMult < 1 || t.GossipNodes < 1 {
		return errors.New("transport: Timing.SuspicionMult and Timing.GossipNodes must be above zero (start from LAN)")
	}
	if t.ProbeTimeout >= t.ProbeInterval {
		return fmt.Errorf("transport: Timing.ProbeTimeout %v is not below ProbeInterval %v", t.ProbeTimeout, t.ProbeInterval)
	}
	return nil
}

func (l Limits) validate() error {
	if l.Links < 1 || l.QueueLen < 1 || l.QueueBytes < MaxMessage || l.Handshakes < 1 {
		return fmt.Errorf("transport: Limits must be above zero and QueueBytes at least %d (start from LAN)", MaxMessage)
	}
	return nil
}

// checkLabel accepts what can stand in a certificate, a tag and a log line
// without quoting.
func checkLabel(what, s string, limit int) error {
	if s == "" {
		return fmt.Errorf("%s is empty", what)
	}
	if len(s) > limit {
		return fmt.Errorf("%s has %d bytes, at most %d are allowed", what, len(s), limit)
	}
	if i := strings.IndexFunc(s, func(r rune) bool { return !isLabelRune(r) }); i >= 0 {
		return fmt.Errorf("%s %q: only letters, digits, '-', '.' and '_' are allowed", what, s)
	}
	return nil
}

func isLabelRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_'
}
