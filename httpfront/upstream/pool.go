package upstream

import (
	"cmp"
	"crypto/tls"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// pool keeps the connections to one origin. A free place is waited for in turn.
// Idle connections and those in use together are never more than there are slots:
// one is opened when none is idle, or an idle one makes room for it.
type pool struct {
	origin Origin
	index  int // in the group
	group  *Group
	tls    *tls.Config   // nil for plain connections
	slots  chan struct{} // one element for each request under way
	many   int           // more of these are many

	shares [uses]chan struct{} // one element for each of those of a use; nil for those that may have all slots

	requests atomic.Uint64 // that were sent, or should have been
	failures atomic.Uint64 // of those, not answered
	steady   atomic.Bool   // good answers tell nothing new: it is in, and nothing has gone badly since the last one
	probed   atomic.Bool   // it is in, and probes are to come
	woken    chan struct{} // what probes it has something to do

	recent      recent
	lastFailure atomic.Pointer[Failure]
	host        atomic.Pointer[string] // the Host field of a request that went well, for probes; nil: none has

	mu      sync.Mutex // guards the following
	idle    []*Conn    // the one used last at the end
	open    map[*Conn]struct{}
	tunnels int // of them
	closed  bool
}

func newPool(g *Group, i int) *pool {
	o := g.cfg.Origins[i]
	p := &pool{
		origin: o,
		index:  i,
		group:  g,
		slots:  make(chan struct{}, g.cfg.Limits.Conns),
		many:   manyEach * runtime.GOMAXPROCS(0),
		open:   map[*Conn]struct{}{},
		woken:  make(chan struct{}, 1),
	}
	p.shares[Preflight] = make(chan struct{}, max(1, g.cfg.Limits.Conns/8))
	p.shares[Upload] = make(chan struct{}, max(1, g.cfg.Limits.Conns/2))
	if o.tls {
		if p.tls = g.cfg.TLS.Clone(); p.tls == nil {
			p.tls = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		p.tls.ServerName = cmp.Or(p.tls.ServerName, o.name)
		p.tls.NextProtos = []string{"http/1.1"}
	}
	return p
}

func (p *pool) isFull() bool { return len(p.slots) == cap(p.slots) }

// manyEach is how many requests under way, for each processor, are many.
const manyEach = 4

// hasMany reports whether so many requests are under way that whoever has sent one had better see to the others before he
// looks for the answer: it has often come by then, so that he need not be woken for it, and what he has to hand is
// still in the processor's cache. With few of them, it would only wake idle processors for nothing.
func (p *pool) hasMany() bool { return len(p.slots) > p.many }

// acquire waits for a free place and returns a connection: a new one if fresh is
// asked for, else an unused one that is open, if there is one. look says that it is looked at
// whether it is open; now is when the wait begins.
func (p *pool) acquire(by Client, use Use, fresh, look bool, now time.Time) (*Conn, error) {
	if err := p.take(by, use); err != nil {
		return nil, err
	}
	var c *Conn
	var err error
	if fresh {
		p.makeRoom()
	} else {
		c = p.takeUsable(look, now)
	}
	if c == nil {
		if c, err = p.dial(by, false); err != nil {
			p.leave(use)
			return nil, err
		}
	}
	c.use = use
	return c, nil
}

// take waits for the places of a connection.
func (p *pool) take(by Client, use Use) error {
	share := p.shares[use]
	if share != nil {
		if err := p.wait(by, share); err != nil {
			return err
		}
	}
	err := p.wait(by, p.slots)
	if err != nil && share != nil {
		<-share
	}
	return err
}

// leave gives the places of a connection back.
func (p *pool) leave(use Use) {
	<-p.slots
	if share := p.shares[use]; share != nil {
		<-share
	}
}

// takeUsable returns an idle connection, nil if there is none, and closes those that
// the origin has closed.
func (p *pool) takeUsable(look bool, now time.Time) *Conn {
	for c := p.takeIdle(); c != nil; c = p.takeIdle() {
		if c.isFresh(p.group.cfg.Timeouts.Idle, now) && (!look || c.isQuiet()) {
			c.received.Store(false)
			return c
		}
		p.close(c)
	}
	return nil
}

// isFresh reports whether an idle connection may be used as far as can be told without a
// look at it. Most requests may not be sent twice, so none must be sent where nobody listens
// any more: who takes the connection is to look.
func (c *Conn) isFresh(idle time.Duration, now time.Time) bool {
	return now.Sub(c.since) < idle
}

// wait takes a free place. Whose client has left meanwhile gets none: what nobody waits for would be in the way of all behind it.
func (p *pool) wait(by Client, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	default:
	}
	w := &Waiting{given: make(chan struct{})}
	if by != nil {
		by.Waits(w)
		defer by.Waits(nil)
	}
	timer := time.NewTimer(p.group.cfg.Timeouts.Wait)
	defer timer.Stop()
	select {
	case places <- struct{}{}:
		if by != nil && by.Left() {
			<-places
			return ErrLeft
		}
		return nil
	case <-w.given:
		return ErrLeft
	case <-timer.C:
		return ErrBusy
	case <-p.group.done:
		return ErrClosed
	}
}

func (p *pool) dial(by Client, tunnel bool) (*Conn, error) {
	budget := p.group.cfg.Budget
	if err := budget.enter(by, p); err != nil {
		return nil, err
	}
	conn, err := p.group.dial(p)
	if err != nil {
		budget.leave()
		return nil, err
	}
	c := newConn(conn, p)
	c.tunnel = tunnel
	if !p.add(c) {
		conn.Close()
		budget.leave()
		return nil, ErrClosed
	}
	return c, nil
}

func (p *pool) add(c *Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	if c.tunnel {
		p.tunnels++
	}
	p.open[c] = struct{}{}
	return true
}

// close closes one connection.
func (p *pool) close(c *Conn) {
	p.mu.Lock()
	_, open := p.open[c]
	if open && c.tunnel {
		p.tunnels--
		p.group.tunnels.Add(-1)
	}
	delete(p.open, c)
	p.mu.Unlock()
	c.Conn.Close()
	if open {
		p.group.cfg.Budget.leave()
	}
}

func (p *pool) takeIdle() *Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	c := p.idle[n-1]
	p.idle[n-1] = nil
	p.idle = p.idle[:n-1]
	return c
}

// oldestIdle returns the connection that has been unused for longest, and since when; nil if none is unused.
func (p *pool) oldestIdle() (*Conn, time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil, time.Time{}
	}
	return p.idle[0], p.idle[0].since
}

// removeIdle takes c out of those that are unused, and reports whether it was among them.
func (p *pool) removeIdle(c *Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.idle, c)
	if i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
	}
	return i >= 0
}

// makeRoom closes the connection that is unused for the longest time if there would
// be too many with a new one, whose slot is taken.
func (p *pool) makeRoom() {
	p.mu.Lock()
	var c *Conn
	if len(p.idle) > 0 && len(p.idle)+len(p.slots) > cap(p.slots) {
		c = p.idle[0]
		p.idle = slices.Delete(p.idle, 0, 1)
	}
	p.mu.Unlock()
	if c != nil {
		p.close(c)
	}
}

func (p *pool) putIdle(c *Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.idle = append(p.idle, c)
	return true
}

// closeIdle closes connections that were put back before t. They are in the
// order in which they were put back.
func (p *pool) closeIdle(t time.Time) {
	p.mu.Lock()
	n := 0
	for n < len(p.idle) && p.idle[n].since.Before(t) {
		n++
	}
	old := append([]*Conn(nil), p.idle[:n]...)
	rest := copy(p.idle, p.idle[n:])
	clear(p.idle[rest:])
	p.idle = p.idle[:rest]
	p.mu.Unlock()
	for _, c := range old {
		p.close(c)
	}
}

// closeAll closes everything that is open, also under requests that are under
// way, and lets nothing be opened any more.
func (p *pool) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for c := range p.open {
		c.Conn.Close()
	}
	p.idle = nil
}

// late returns when requests without a body began that wait for their answers for lateAfter and more.
func (p *pool) late(now time.Time) (all []time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		if ns := c.waits.Load(); ns != 0 {
			if began := time.Unix(0, ns); now.Sub(began) >= lateAfter {
				all = append(all, began)
			}
		}
	}
	return all
}

// patience is how long an answer takes at which clients give up. Who leaves sooner may mean nothing by it.
const patience = time.Second

var errSlow = errors.New("no answer in time")

// left takes note of a client that has left before the answer.
func (p *pool) left(began, now time.Time) {
	if took := now.Sub(began); took >= patience {
		if took >= lateAfter {
			p.recent.add(took, false, now)
		}
		p.group.observe(p.index, errSlow, (*health).wait)
	}
}

// lookForLate has it doubted whether the origin is well, if a request is late.
func (p *pool) lookForLate(now time.Time) {
	if len(p.slots) > 0 && len(p.late(now)) > 0 {
		p.group.observe(p.index, errSlow, (*health).wait)
	}
}

// wake has what probes the origin see whether there is something to do.
func (p *pool) wake() {
	select {
	case p.woken <- struct{}{}:
	default:
	}
}

// answered takes note of an answer that is no error of the origin.
func (p *pool) answered(status int, host []byte) {
	if p.steady.Load() {
		return
	}
	if len(host) > 0 && status < http.StatusBadRequest {
		h := string(host)
		p.host.Store(&h)
	}
	p.group.observe(p.index, nil, (*health).succeed)
}

func (p *pool) failed(err error, now time.Time) {
	p.failures.Add(1)
	p.recent.add(-1, true, now)
	p.note(err.Error(), now)
	p.group.observe(p.index, err, func(h *health, now time.Time) change { return h.fail(&p.group.cfg.Passive, now) })
}

// noteEvery is how often a failure is noted at most, so that a flood of errors costs little.
const noteEvery = 100 * time.Millisecond

// note keeps a failure as the last one.
func (p *pool) note(text string, now time.Time) {
	if last := p.lastFailure.Load(); last != nil && now.Sub(last.At) < noteEvery {
		return
	}
	p.lastFailure.Store(&Failure{At: now.UTC().Round(0), Text: text})
}

// statusError is an answer that says that the origin failed: its status, from 500 on, or 0 for one that cannot be passed on.
type statusError int

func (e statusError) Error() string {
	if e == 0 {
		return "an answer that cannot be passed on"
	}
	return "status " + strconv.Itoa(int(e))
}

// ended notes an answer, which took so long to begin.
func (p *pool) ended(status int, host []byte, took time.Duration, now time.Time) {
	failed := status == 0 || status >= http.StatusInternalServerError
	p.recent.add(took, failed, now)
	if !failed {
		p.answered(status, host)
		return
	}
	err := statusError(status)
	p.note(err.Error(), now)
	p.group.observe(p.index, err, func(h *health, now time.Time) change { return h.err(&p.group.cfg.Passive, now) })
}
