package httpfront

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// upstream keeps connections to the origin. Each is used by one request at a
// time; a free place is waited for in turn. A connection is opened only when
// none is idle, so idle ones and those in use together are never more than
// there are slots.
type upstream struct {
	target   target
	tls      *tls.Config
	timeouts *Timeouts
	slots    chan struct{} // one element for each request under way
	done     chan struct{} // closed by close
	limits   *Limits

	mu      sync.Mutex           // guards the following
	idle    []*originConn        // the one used last at the end
	open    map[*originConn]bool // all connections; true for tunnels
	tunnels int                  // of them
	closed  bool
}

var (
	errBusy    = errors.New("no place became free at the origin")
	errTunnels = errors.New("too many upgraded connections")
	errStopped = errors.New("the front has stopped")
)

func newUpstream(t target, cfg *Config) *upstream {
	u := &upstream{
		target:   t,
		timeouts: &cfg.Timeouts,
		limits:   &cfg.Limits,
		slots:    make(chan struct{}, cfg.Limits.OriginConns),
		done:     make(chan struct{}),
		open:     map[*originConn]bool{},
	}
	if t.tls {
		if u.tls = cfg.OriginTLS.Clone(); u.tls == nil {
			u.tls = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		if u.tls.ServerName == "" {
			u.tls.ServerName = t.name
		}
		u.tls.NextProtos = []string{"http/1.1"}
	}
	return u
}

// originConn is one connection to the origin. Like edgeConn it limits every
// pause instead of whole messages.
type originConn struct {
	net.Conn
	owner *upstream
	br    *bufio.Reader
	since time.Time // put back
	write time.Duration
	pause atomic.Int64 // ns between two reads; 0: no limit
}

// Read reads what has come.
func (c *originConn) Read(p []byte) (int, error) {
	if err := c.Conn.SetReadDeadline(c.readDeadline()); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *originConn) readDeadline() time.Time {
	if pause := c.pause.Load(); pause > 0 {
		return time.Now().Add(time.Duration(pause))
	}
	return time.Time{}
}

// limit sets how long a read may take, also for one that is under way.
func (c *originConn) limit(pause time.Duration) {
	c.pause.Store(int64(pause))
	c.Conn.SetReadDeadline(c.readDeadline())
}

// Write sends p.
func (c *originConn) Write(p []byte) (int, error) {
	if err := c.Conn.SetWriteDeadline(time.Now().Add(c.write)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// acquire waits for a free place and returns a connection, whose owner calls
// release or discard, once.
func (u *upstream) acquire() (*originConn, error) {
	select {
	case u.slots <- struct{}{}:
	default:
		timer := time.NewTimer(u.timeouts.OriginWait)
		defer timer.Stop()
		select {
		case u.slots <- struct{}{}:
		case <-timer.C:
			return nil, errBusy
		case <-u.done:
			return nil, errStopped
		}
	}
	for c := u.takeIdle(); c != nil; c = u.takeIdle() {
		// A request is never sent twice, so one must not be sent where nobody
		// listens any more.
		if time.Since(c.since) < u.timeouts.OriginIdle && c.br.Buffered() == 0 && isQuiet(c.Conn) {
			return c, nil
		}
		c.Close()
	}
	c, err := u.dial(false)
	if err != nil {
		<-u.slots
		return nil, err
	}
	return c, nil
}

// acquireTunnel opens a connection for an upgrade. These last, so they neither
// use nor take the places of requests. The owner calls releaseTunnel.
func (u *upstream) acquireTunnel() (*originConn, error) {
	u.mu.Lock()
	full := u.tunnels >= u.limits.Upgrades
	u.mu.Unlock()
	if full {
		return nil, errTunnels
	}
	return u.dial(true)
}

func (u *upstream) releaseTunnel(c *originConn) { c.Close() }

func (u *upstream) dial(tunnel bool) (*originConn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), u.timeouts.Dial)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", u.target.addr)
	if err != nil {
		return nil, err
	}
	if u.tls != nil {
		t := tls.Client(conn, u.tls)
		if err := t.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, err
		}
		conn = t
	}
	c := &originConn{Conn: conn, owner: u, write: u.timeouts.Write}
	c.br = bufio.NewReaderSize(c, bufferSize)
	if err := u.add(c, tunnel); err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

func (u *upstream) add(c *originConn, tunnel bool) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.closed:
		return errStopped
	case tunnel && u.tunnels >= u.limits.Upgrades: // others dialled meanwhile
		return errTunnels
	case tunnel:
		u.tunnels++
	}
	u.open[c] = tunnel
	return nil
}

// Close closes the connection.
func (c *originConn) Close() error {
	u := c.owner
	u.mu.Lock()
	if u.open[c] {
		u.tunnels--
	}
	delete(u.open, c)
	u.mu.Unlock()
	return c.Conn.Close()
}

func (u *upstream) takeIdle() *originConn {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := len(u.idle)
	if n == 0 {
		return nil
	}
	c := u.idle[n-1]
	u.idle[n-1] = nil
	u.idle = u.idle[:n-1]
	return c
}

// release puts c back for another request.
func (u *upstream) release(c *originConn) {
	c.limit(0)
	c.since = time.Now()
	if !u.putIdle(c) {
		c.Close()
	}
	<-u.slots
}

func (u *upstream) putIdle(c *originConn) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return false
	}
	u.idle = append(u.idle, c)
	return true
}

// discard closes c, which cannot be used again.
func (u *upstream) discard(c *originConn) {
	c.Close()
	<-u.slots
}

// reap closes idle connections that are too old, until ctx ends.
func (u *upstream) reap(ctx context.Context) {
	tick := time.NewTicker(u.timeouts.OriginIdle)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			u.closeIdle(now.Add(-u.timeouts.OriginIdle))
		}
	}
}

// close closes everything that is open, also under requests that are under way.
func (u *upstream) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	close(u.done)
	for c := range u.open {
		c.Conn.Close()
	}
	u.idle = nil
}

// closeIdle closes connections that were put back before t. They are in the
// order in which they were put back.
func (u *upstream) closeIdle(t time.Time) {
	u.mu.Lock()
	n := 0
	for n < len(u.idle) && u.idle[n].since.Before(t) {
		n++
	}
	old := append([]*originConn(nil), u.idle[:n]...)
	rest := copy(u.idle, u.idle[n:])
	clear(u.idle[rest:])
	u.idle = u.idle[:rest]
	u.mu.Unlock()
	for _, c := range old {
		c.Close()
	}
}
