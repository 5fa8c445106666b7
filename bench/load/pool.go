package load

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
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

var errNoConn = errors.New("no connection became free in time")

// pool holds the connections to one target, and bounds how many there are.
type pool struct {
	endpoint endpoint
	tls      *tls.Config
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
	open     context.Context // until then connections are, those in use too, whose requests then fail
	slots    chan struct{}   // one token for each connection
	idle     chan *conn      // oldest use first
}

// conn is a connection, with what can be used again for the next request on it.
type conn struct {
	net.Conn
	br     *bufio.Reader
	wbuf   []byte
	used   time.Time   // when it was put back
	reused bool        // whether a request went over it before
	stop   func() bool // has the end of the pool be none of its business
}

func newPool(open context.Context, e endpoint, cfg Config) *pool {
	p := &pool{endpoint: e, dial: cfg.Dial, open: open, slots: make(chan struct{}, cfg.Conns), idle: make(chan *conn, cfg.Conns)}
	if e.tls {
		p.tls = cmp.Or(cfg.TLS.Clone(), &tls.Config{})
		if p.tls.ServerName == "" {
			p.tls.ServerName, _, _ = net.SplitHostPort(e.address)
		}
	}
	return p
}

// get returns a connection that the caller gives back by put or drop. With
// fresh it is always a new one.
func (p *pool) get(ctx context.Context, deadline time.Time, fresh bool) (*conn, error) {
	for more := true; more; { // the common case, which needs no context of its own
		select {
		case c := <-p.idle:
			if p.usable(c, fresh) {
				return c, nil
			}
		default:
			more = false
		}
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	for {
		select {
		case c := <-p.idle:
			if p.usable(c, fresh) {
				return c, nil
			}
		case p.slots <- struct{}{}:
			c, err := p.connect(ctx)
			if err != nil {
				<-p.slots
			}
			return c, err
		case <-ctx.Done():
			return nil, errNoConn
		}
	}
}

// usable reports whether an idle connection is used again, and drops it if not.
func (p *pool) usable(c *conn, fresh bool) bool {
	if c.reused = true; fresh || time.Since(c.used) > maxIdle {
		p.drop(c)
		return false
	}
	return true
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
	return &conn{Conn: nc, br: bufio.NewReaderSize(nc, headSize), stop: context.AfterFunc(p.open, func() { _ = nc.Close() })}, nil
}

// put gives back a connection that can be used again.
func (p *pool) put(c *conn) {
	c.used = time.Now()
	p.idle <- c
}

// drop gives back a connection that broke. An error of Close tells nothing: all that was wanted
// from the connection was had, or failed already.
func (p *pool) drop(c *conn) {
	c.stop()
	_ = c.Close()
	<-p.slots
}

// dropIdle closes every connection that is not in use, after one of them turned
// out to be dead: the others most likely are too.
func (p *pool) dropIdle() {
	for {
		select {
		case c := <-p.idle:
			p.drop(c)
		default:
			return
		}
	}
}
