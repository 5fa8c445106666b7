package load

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

const (
	// maxIdle is how long an unused connection is kept. Servers close theirs
	// after some tens of seconds, and a request that meets that moment has to
	// be sent twice.
	maxIdle = 15 * time.Second
	// headSize bounds the head of an answer.
	headSize = 16 << 10
)

var (
	errPoolClosed = errors.New("the run is over")
	errNoConn     = errors.New("no connection became free in time")
)

// pool holds the connections to one target. It bounds how many there are and
// hands out the one that was used last, so that those no longer needed age.
type pool struct {
	endpoint endpoint
	tls      *tls.Config
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
	slots    chan struct{} // one token for each connection that is in use or being made

	mu     sync.Mutex // guards the following
	idle   []*conn    // oldest use first
	open   map[*conn]struct{}
	closed bool
}

// conn is a connection, with what can be used again for the next request on it.
type conn struct {
	net.Conn
	br     *bufio.Reader
	wbuf   []byte
	used   time.Time // when it was put back
	reused bool      // whether a request went over it before
}

func newPool(e endpoint, cfg Config) *pool {
	p := &pool{
		endpoint: e,
		dial:     cfg.Dial,
		slots:    make(chan struct{}, cfg.Conns),
		open:     make(map[*conn]struct{}),
	}
	if e.tls {
		p.tls = &tls.Config{}
		if cfg.TLS != nil {
			p.tls = cfg.TLS.Clone()
		}
		if p.tls.ServerName == "" {
			p.tls.ServerName, _, _ = net.SplitHostPort(e.address)
		}
	}
	return p
}

// get returns a connection that the caller gives back by put or drop. With
// fresh it is always a new one.
func (p *pool) get(ctx context.Context, deadline time.Time, fresh bool) (*conn, error) {
	// The common case: there is a slot and an idle connection, and no need for
	// a context of its own.
	select {
	case p.slots <- struct{}{}:
		if c := p.takeIdle(fresh); c != nil {
			return c, nil
		}
		<-p.slots
	default:
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, errNoConn
	}
	if c := p.takeIdle(fresh); c != nil {
		return c, nil
	}
	c, err := p.connect(ctx)
	if err != nil {
		<-p.slots
		return nil, err
	}
	return c, nil
}

// takeIdle returns the connection that was used last, or nil if there is none
// or a fresh one is wanted.
func (p *pool) takeIdle(fresh bool) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 || fresh {
		return nil
	}
	c := p.idle[n-1]
	p.idle[n-1] = nil
	p.idle = p.idle[:n-1]
	if time.Since(c.used) > maxIdle {
		// The others are older still.
		p.forgetLocked(c)
		p.dropIdleLocked()
		return nil
	}
	c.reused = true
	return c
}

// connect makes a new connection.
func (p *pool) connect(ctx context.Context) (*conn, error) {
	nc, err := p.dial(ctx, "tcp", p.endpoint.address)
	if err != nil {
		return nil, err
	}
	if p.tls != nil {
		secure := tls.Client(nc, p.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, nc.Close())
		}
		nc = secure
	}
	c := &conn{Conn: nc, br: bufio.NewReaderSize(nc, headSize)}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.Join(errPoolClosed, nc.Close())
	}
	p.open[c] = struct{}{}
	return c, nil
}

// put gives back a connection that can be used again.
func (p *pool) put(c *conn) {
	c.used = time.Now()
	p.mu.Lock()
	if p.closed {
		p.forgetLocked(c)
	} else {
		// One old connection a time keeps the pool from holding on to what a
		// burst once needed, without a goroutine to look after it.
		if len(p.idle) > 0 && c.used.Sub(p.idle[0].used) > maxIdle {
			p.forgetLocked(p.idle[0])
			p.idle = append(p.idle[:0], p.idle[1:]...)
		}
		p.idle = append(p.idle, c)
	}
	p.mu.Unlock()
	<-p.slots
}

// drop gives back a connection that broke.
func (p *pool) drop(c *conn) {
	p.mu.Lock()
	p.forgetLocked(c)
	p.mu.Unlock()
	<-p.slots
}

// dropIdle closes every connection that is not in use, after one of them turned
// out to be dead: the others most likely are too.
func (p *pool) dropIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropIdleLocked()
}

func (p *pool) dropIdleLocked() {
	for _, c := range p.idle {
		p.forgetLocked(c)
	}
	clear(p.idle)
	p.idle = p.idle[:0]
}

// forgetLocked closes c. An error of Close tells nothing: all that was wanted
// from the connection was had, or failed already.
func (p *pool) forgetLocked(c *conn) {
	delete(p.open, c)
	_ = c.Close()
}

// close closes all connections, those in use too, whose requests then fail.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	clear(p.idle)
	p.idle = nil
	for c := range p.open {
		p.forgetLocked(c)
	}
}
