package upstream

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Reasons why there is no connection.
var (
	ErrBusy    = errors.New("no place became free at the origin")
	ErrTunnels = errors.New("too many upgraded connections")
	ErrClosed  = errors.New("the front has stopped")
	ErrLeft    = errors.New("the client has left while it waited for a place")
	ErrStale   = errors.New("the origin has closed an unused connection, or has spoken on it")
)

// Group is the origins of one site and the connections to them.
type Group struct {
	cfg     Config
	pools   []*pool
	tunnels atomic.Int64
	kept    atomic.Int64  // connections that wait for their clients; see Conn.Keep
	done    chan struct{} // closed by Close
	once    sync.Once     // of Close

	resolver *net.Resolver // nil: the system's
	names    names
	guard    guard

	mu      sync.Mutex // guards the following
	members []member   // as long as pools, in the same order
	reasons []string   // why each is out; "" if it is in
}

// New checks cfg and returns a Group. It opens nothing.
func New(cfg Config) (*Group, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	g := &Group{
		cfg:     cfg,
		done:    make(chan struct{}),
		members: make([]member, len(cfg.Origins)),
		reasons: make([]string, len(cfg.Origins)),
	}
	for i, o := range cfg.Origins {
		g.members[i].weight = int64(o.weight)
		g.pools = append(g.pools, newPool(g, i))
		cfg.Budget.join(g.pools[i])
	}
	return g, nil
}

// Run checks origins, or where that is not wanted probes them while none is healthy, and closes unused connections until
// ctx ends. It is to be called once.
func (g *Group) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { g.reap(ctx) })
	again := g.probeAgain
	if g.cfg.Check != nil {
		again = g.checkAgain
	}
	for _, p := range g.pools {
		wg.Go(func() { again(ctx, p) })
	}
	wg.Wait()
}

// Close closes all connections, also under requests that are under way, and
// lets no new one be opened.
func (g *Group) Close() {
	g.once.Do(func() {
		close(g.done)
		for _, p := range g.pools {
			p.closeAll()
		}
	})
}

// Use is what a connection is acquired for.
type Use uint8

const (
	Request Use = iota
	// Preflight is a question of a browser that comes before a request of a page of
	// another site. They pass rooms, as they tell nothing of who asks, so they have a
	// bound of their own: an eighth of Limits.Conns, and at least one.
	Preflight
	// Upload is a request whose body has not come yet. How fast it comes is up to the client, so
	// they have a bound of their own: half of Limits.Conns, and at least one.
	Upload
	uses
)

// Tried is which origins a request has been to. The zero value is none.
type Tried struct {
	For Client // who waits for a place; nil: nobody who can leave
	set indexes
}

// Any reports whether there is such an origin.
func (t Tried) Any() bool { return t.set != 0 }

// Client is whose request waits for a place at an origin.
type Client interface {
	// Waits says what is aborted from now on when the client leaves; nil: nothing.
	Waits(w *Waiting)
	// Left reports whether the client has left.
	Left() bool
}

// Waiting is a wait for a place.
type Waiting struct{ given chan struct{} }

// Abort gives the wait up. It is called once.
func (w *Waiting) Abort() { close(w.given) }

// Others reports whether there is an origin that the request has not been to.
func (g *Group) Others(t Tried) bool { return t.set != indexes(1)<<len(g.pools)-1 }

// Acquire chooses an origin, one that the request has not been to if there is
// one, and returns a connection to it. For a request that has been somewhere it
// is a new one: if one connection was closed while it was unused, others will
// be, and of the origin where it was all of them are closed. It adds the origin to
// t. The error wraps ErrBusy, or is ErrClosed, ErrLeft or a *DialError.
func (g *Group) Acquire(t *Tried, use Use) (*Conn, error) { return g.acquire(t, use, true) }

// AcquireToAsk is Acquire for a request that goes out by Conn.Ask, which finds out by itself
// whether the origin has closed a connection that was unused.
func (g *Group) AcquireToAsk(t *Tried, use Use) (*Conn, error) { return g.acquire(t, use, false) }

func (g *Group) acquire(t *Tried, use Use, look bool) (*Conn, error) {
	been := t.set
	p := g.choose(t)
	p.requests.Add(1)
	began := time.Now()
	if been.has(p.index) {
		p.closeIdle(began)
	}
	c, err := p.acquire(t.For, use, been != 0, look, began)
	if err == nil {
		c.began = began
	}
	return c, g.dialled(p, err)
}

// Resume has c, which was kept, serve another request. look says that it is looked at whether
// the origin has closed it, as Acquire does and AcquireToAsk does not. With an error, which is
// ErrStale if it is of no use any more, it is closed.
func (g *Group) Resume(c *Conn, t *Tried, use Use, look bool) error {
	p := c.pool
	g.kept.Add(-1)
	p.requests.Add(1)
	if err := p.take(t.For, use); err != nil {
		p.close(c)
		return err
	}
	if !c.isFresh(g.cfg.Timeouts.Idle, time.Now()) || look && !c.isQuiet() {
		p.close(c)
		p.leave(use)
		return ErrStale
	}
	t.set |= 1 << p.index
	c.use, c.began = use, time.Now()
	c.received.Store(false)
	return nil
}

// Has reports whether c leads to an origin of g.
func (g *Group) Has(c *Conn) bool { return c.pool.group == g }

// AcquireTunnel is Acquire for an upgrade. Those last, so they neither use nor
// take the places of requests. The error may also be ErrTunnels.
func (g *Group) AcquireTunnel(t *Tried) (*Conn, error) {
	if g.tunnels.Add(1) > int64(g.cfg.Limits.Tunnels) {
		g.tunnels.Add(-1)
		return nil, ErrTunnels
	}
	p := g.choose(t)
	p.requests.Add(1)
	began := time.Now()
	c, err := p.dial(t.For, true)
	if err == nil {
		c.began = began
	} else {
		g.tunnels.Add(-1)
	}
	return c, g.dialled(p, err)
}

// dialled takes note of an origin that cannot be connected to.
func (g *Group) dialled(p *pool, err error) error {
	if _, ok := errors.AsType[*DialError](err); ok {
		p.failed(err, time.Now())
	}
	return err
}

func (g *Group) choose(t *Tried) *pool {
	i := 0
	if len(g.pools) > 1 {
		var full indexes
		for i, p := range g.pools {
			if p.isFull() {
				full |= 1 << i
			}
		}
		g.mu.Lock()
		i = choose(g.members, time.Now(), g.cfg.SlowStart, t.set, full)
		g.mu.Unlock()
	}
	t.set |= 1 << i
	return g.pools[i]
}

// observe takes note of what a request to the origin i, a check or a probe has made of it.
func (g *Group) observe(i int, failure error, of func(h *health, now time.Time) change) {
	now := time.Now()
	g.mu.Lock()
	m, p := &g.members[i], g.pools[i]
	what := of(&m.health, now)
	p.steady.Store(!m.isOut() && m.failures == 0 && !m.doubted && m.served == enough)
	if p.probed.Store(m.isProbed()); p.probed.Load() {
		p.wake()
	}
	if what != stays {
		m.current = 0 // what it gained or owes from before is not made up for
		g.guard.observe(g.isHealthyLocked(), now)
		for _, p := range g.pools {
			p.wake()
		}
	}
	switch {
	case !m.isOut():
		g.reasons[i] = ""
	case failure != nil:
		g.reasons[i] = failure.Error()
	}
	g.mu.Unlock()
	g.tell(i, what, failure)
}

// anyIn reports whether an origin is in.
func (g *Group) anyIn() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.isHealthyLocked()
}

// tell logs that an origin has gone out or come in.
func (g *Group) tell(i int, what change, failure error) {
	attrs := []slog.Attr{slog.String("origin", g.pools[i].origin.url)}
	if g.cfg.Name != "" {
		attrs = append(attrs, slog.String("of", g.cfg.Name))
	}
	switch what {
	case goesOut:
		message := "origin is out: the others get its requests"
		if !g.anyIn() {
			message = "origin is out, and no other is in: requests are still tried"
		}
		g.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn, message, append(attrs, slog.Any("error", failure))...)
	case comesIn:
		g.cfg.Logger.LogAttrs(context.Background(), slog.LevelInfo, "origin is in again", attrs...)
	}
}
