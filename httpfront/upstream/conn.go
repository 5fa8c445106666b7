package upstream

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/httpfront/conn/deadline"
)

// readerSize is the size of the buffer of a connection, and so the longest head
// that is read from it.
const readerSize = 16 << 10

// Conn is one connection to an origin, used by one request at a time. It limits
// every pause instead of whole messages: reads as Limit says, writes by
// Timeouts.Send. Reads go through Reader.
type Conn struct {
	net.Conn
	pool   *pool
	br     *bufio.Reader
	look   look
	since  time.Time // put back; only for the pool
	ends   time.Time // it is not put back then
	began  time.Time // it was asked for
	left   int       // requests that it may still serve
	send   time.Duration
	reads  deadline.Lazy
	writes deadline.Lazy // not of TLS, which cannot go on after a write that timed out

	pause    atomic.Int64 // ns between two reads; 0: no limit
	waits    atomic.Int64 // ns since the epoch from when on it is waited for the answer of a request that is asked; 0: it is not
	received atomic.Bool  // since it was acquired
	broken   atomic.Bool  // a read has failed

	use    Use     // what it was acquired for
	byte   [1]byte // that isQuiet reads
	tunnel bool    // for an upgrade
	reused bool    // has served a request before
	kept   bool    // for one client
}

// newConn returns a connection of a pool.
func newConn(conn net.Conn, p *pool) *Conn {
	cfg := &p.group.cfg
	c := &Conn{
		Conn: conn, pool: p, send: cfg.Timeouts.Send, reads: deadline.Lazy{Arm: conn.SetReadDeadline},
		ends: time.Now().Add(jittered(cfg.Timeouts.Life, rand.Float64())), left: cfg.Limits.Requests,
	}
	c.look.on(c.plain())
	if _, tls := conn.(*tls.Conn); !tls {
		c.writes.Arm = conn.SetWriteDeadline
	}
	return c
}

var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, readerSize) }}

// Reader reads what the origin sends. A connection on which nothing is to be read has none, so that those that wait for
// slow origins take little memory.
func (c *Conn) Reader() *bufio.Reader {
	if c.br == nil {
		c.br = readers.Get().(*bufio.Reader)
		c.br.Reset(c)
	}
	return c.br
}

// freeReader frees the reader, and reports whether all that it had read was asked for.
func (c *Conn) freeReader() (empty bool) {
	if c.br == nil {
		return true
	}
	empty = c.br.Buffered() == 0
	c.br.Reset(nil)
	readers.Put(c.br)
	c.br = nil
	return empty
}

// DropReader returns what the reader holds already, and frees the reader. From
// then on the origin is read from Conn, which has its own deadlines.
func (c *Conn) DropReader() []byte {
	early, _ := c.Reader().Peek(c.br.Buffered())
	early = bytes.Clone(early)
	c.freeReader()
	return early
}

// Origin is the origin at the other end.
func (c *Conn) Origin() Origin { return c.pool.origin }

// Reused reports whether the connection has served another request before.
func (c *Conn) Reused() bool { return c.reused }

// Received reports whether anything has come from the origin since the
// connection was acquired.
func (c *Conn) Received() bool { return c.received.Load() }

// Broken reports whether reading from the origin has failed, be it that it has closed
// the connection or that it was too slow.
func (c *Conn) Broken() bool { return c.broken.Load() }

// Read reads what has come.
func (c *Conn) Read(p []byte) (n int, err error) {
	if c.look.soon {
		n, err = c.look.take(p)
	} else {
		n, err = c.waitAndRead(p)
	}
	if err != nil && err != errNothingYet {
		c.broken.Store(true)
	}
	if n > 0 && !c.received.Load() {
		c.received.Store(true)
	}
	return n, err
}

func (c *Conn) waitAndRead(p []byte) (int, error) {
	for {
		pause := c.pause.Load()
		if err := c.reads.Set(deadlineIn(pause)); err != nil {
			return 0, err
		}
		// Looking again after setting the deadline, so that a Limit in between is
		// not undone.
		if pause == c.pause.Load() {
			break
		}
	}
	for {
		n, err := c.Conn.Read(p)
		if !c.reads.Again(err) {
			return n, err
		}
	}
}

// deadlineIn is when a read that begins now has to end, with that many ns between two.
func deadlineIn(pause int64) time.Time {
	if pause > 0 {
		return time.Now().Add(time.Duration(pause))
	}
	return time.Time{}
}

// Limit sets how long a read may take, also for one that is under way; 0 is no
// limit.
func (c *Conn) Limit(pause time.Duration) {
	c.pause.Store(int64(pause))
	c.reads.Set(deadlineIn(int64(pause)))
}

// SendTimeout is how long a write may take.
func (c *Conn) SendTimeout() time.Duration { return c.send }

// Write sends p.
func (c *Conn) Write(p []byte) (int, error) {
	until := time.Now().Add(c.send)
	if c.writes.Arm == nil {
		if err := c.Conn.SetWriteDeadline(until); err != nil {
			return 0, err
		}
		return c.Conn.Write(p)
	}
	return c.writes.Write(c.Conn, p, until)
}

// Ask sends a request that has no body, and waits for up to pause until its answer begins,
// which is in Reader then. The error is ErrStale if nothing was sent, since the connection was
// of no use any more; another one may be. sent is told when the request is of no more use.
func (c *Conn) Ask(request []byte, pause time.Duration, sent func([]byte)) error {
	c.Limit(pause)
	c.waits.Store(c.began.UnixNano())
	defer c.waits.Store(0)
	err := c.lookAndWrite(request, sent)
	if err == nil {
		err = c.lookSoon()
	}
	if err == errNothingYet {
		for !c.isTLS() && c.reads.Again(c.look.await()) { // TLS may have read it already
		}
		_, err = c.Reader().Peek(1)
	}
	if err != nil && err != ErrStale {
		c.broken.Store(true)
	}
	return err
}

var errNothingYet = errors.New("nothing has come yet")

// lookSoon looks whether an answer has begun by the time that others have been seen to. If so, it is in Reader; if not, the error is
// errNothingYet, and Reader has taken no memory.
func (c *Conn) lookSoon() error {
	if c.isTLS() || !c.pool.hasMany() {
		return errNothingYet
	}
	runtime.Gosched()
	c.look.soon = true
	_, err := c.Reader().Peek(1)
	if c.look.soon = false; err == errNothingYet {
		c.freeReader()
	}
	return err
}

// lookAndWrite sends a request that has no body. As with Ask, the error may be ErrStale.
func (c *Conn) lookAndWrite(request []byte, sent func([]byte)) error {
	defer sent(request)
	if c.reused && !c.isQuiet() {
		return ErrStale // what there is to read would be taken for the answer
	}
	_, err := c.Write(request)
	return err
}

// isQuiet reports whether the connection is open and there is nothing to read: neither in the
// socket nor, of another record, in what TLS has read of it already.
func (c *Conn) isQuiet() bool {
	if !c.look.isQuiet() {
		return false
	}
	if !c.isTLS() {
		return true
	}
	if c.reads.Set(time.Unix(1, 0)) != nil {
		return false
	}
	n, err := c.Conn.Read(c.byte[:])
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
}

// Abort ends all reads and writes that are under way, and does not wait: of TLS there is no goodbye. Discard is still due.
func (c *Conn) Abort() { c.plain().Close() }

func (c *Conn) isTLS() bool {
	_, is := c.Conn.(*tls.Conn)
	return is
}

// plain is the connection below TLS.
func (c *Conn) plain() net.Conn {
	if t, ok := c.Conn.(*tls.Conn); ok {
		return t.NetConn()
	}
	return c.Conn
}

// Answered tells that the origin has answered a request, with whatever status; 0 is an answer
// that is of no use. host is the Host field of the request, empty if it had none.
func (c *Conn) Answered(status int, host []byte) {
	now := time.Now()
	c.pool.ended(status, host, now.Sub(c.began), now)
}

// Failed tells that the origin has not answered, and why. It is not to be told
// of what the client is to blame for, nor of answers that are of no use.
func (c *Conn) Failed(err error) { c.pool.failed(err, time.Now()) }

// Left tells that the client of a request without a body has left before the answer began.
func (c *Conn) Left() { c.pool.left(c.began, time.Now()) }

// Release gives c back for another request.
func (c *Conn) Release() {
	if c.tunnel {
		c.Discard()
		return
	}
	c.Limit(0)
	c.since = time.Now()
	c.reused = true
	c.left--
	p, use := c.pool, c.use // it may be somebody else's at once
	if !c.freeReader() || c.left <= 0 || c.since.After(c.ends) || !p.putIdle(c) {
		p.close(c)
	}
	p.leave(use)
}

// Keep has c wait for another request of the client whose request it has served, since the
// origin may have taken it for that client's own: the login of NTLM is one of a connection.
// It reports whether it may, which it may not if too many are kept; then it is closed. Who
// keeps it ends that by Group.Resume or Drop.
func (c *Conn) Keep() bool {
	g := c.pool.group
	keeps := !c.tunnel && c.freeReader()
	if keeps && g.kept.Add(1) > int64(g.cfg.Limits.Conns) {
		g.kept.Add(-1)
		keeps = false
	}
	if !keeps {
		c.Discard()
		return false
	}
	c.Limit(0)
	c.since, c.reused, c.kept = time.Now(), true, true
	c.pool.leave(c.use)
	return true
}

// Kept reports whether c has been kept before, so that it is nobody else's.
func (c *Conn) Kept() bool { return c.kept }

// Drop closes c while it is kept.
func (c *Conn) Drop() {
	c.pool.group.kept.Add(-1)
	c.pool.close(c)
}

// Discard closes c, which cannot be used again.
func (c *Conn) Discard() {
	c.pool.close(c)
	if !c.tunnel {
		c.pool.leave(c.use)
	}
}

// ResetOnClose has the connection, of which all that is wanted has come, be reset when it is closed. Who closes a
// connection in order keeps its port for a minute, and whoever can have many closed would use up all that there are.
func (c *Conn) ResetOnClose() {
	if l, ok := c.plain().(interface{ SetLinger(int) error }); ok {
		l.SetLinger(0) //nolint:errcheck // it is closed in order then
	}
}
