package rate

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ropeline/ropeline/bench/rate/internal/poll"
)

type connState uint8

const (
	down     connState = iota // it waits to be opened again
	dialling                  // it is being made
	idle                      // it is free
	busy                      // a request is under way
)

// conn is one connection, or the place of one.
type conn struct {
	fd        int32
	version   int32 // of the socket; one more each time, so that events of the one before are known
	state     connState
	waits     bool   // it is among the free ones
	counted   bool   // the request under way is measured
	from      int64  // when its latency began
	sent      int64  // when it was sent; when dialling began; when to dial again
	freeSince int64  // when it had its last answer
	bytes     int64  // of the answer so far
	out       []byte // what is left of the request
	reader    reader
}

// retry is how long a connection that could not be made waits for the next try.
const retry = 100 * time.Millisecond

// dial begins to make a connection.
func (l *loop) dial(i int32, now int64) {
	c := &l.conns[i]
	fd, err := unix.Socket(l.family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		l.notMade(i, now, err)
		return
	}
	c.fd, c.state, c.sent = int32(fd), dialling, now
	l.connecting++
	// A request is one write, so that nothing is gained by holding it back; if this fails, it is late.
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if err := unix.Connect(fd, l.to); err != nil && err != unix.EINPROGRESS {
		l.notMade(i, now, err)
		return
	}
	if err := l.poller.Add(fd, i, c.version); err != nil {
		l.notMade(i, now, err)
	}
}

// made has a connection begin its work.
func (l *loop) made(i int32, now int64) {
	l.connecting--
	l.next(i, now)
}

// notMade has a connection tried again later.
func (l *loop) notMade(i int32, now int64, err error) {
	c := &l.conns[i]
	if c.state == dialling {
		l.connecting--
	}
	l.dialFailed = fmt.Errorf("connect to %s: %w", l.cfg.Address, err)
	if l.running && l.counts(now) {
		l.tally.fail(kindConnect, l.dialFailed)
	}
	l.drop(c)
	c.state, c.sent = down, now+int64(retry)
}

// drop closes the socket of a connection.
func (l *loop) drop(c *conn) {
	if c.fd >= 0 {
		_ = unix.Close(int(c.fd))
	}
	c.fd = -1
	c.version++
}

// again makes a connection anew.
func (l *loop) again(i int32, now int64) {
	if l.counts(now) {
		l.tally.redials++
	}
	l.drop(&l.conns[i])
	l.dial(i, now)
}

// lost counts the request under way as failed, and makes the connection anew.
func (l *loop) lost(i int32, now int64, kind int, err error) {
	c := &l.conns[i]
	if c.counted {
		c.counted = false
		l.awaited--
		l.tally.fail(kind, err)
		if kind == kindTimeout {
			l.tally.latency.add(now - c.from)
		}
	}
	l.again(i, now)
}

// send sends the next request on a connection that is free. Its latency counts from a time.
func (l *loop) send(i int32, from, now int64) {
	c := &l.conns[i]
	next := int(i) % len(l.requests)
	if !l.cfg.OnePerConn {
		next, l.turn = l.turn, (l.turn+1)%len(l.requests)
	}
	r := &l.requests[next]
	c.state, c.from, c.sent, c.bytes, c.out = busy, from, now, 0, r.head
	c.reader.begin(r.toHead)
	if c.counted = l.counts(from); c.counted {
		l.tally.sent++
		l.awaited++
	}
	l.write(i, now)
}

// write writes what is left of the request.
func (l *loop) write(i int32, now int64) {
	c := &l.conns[i]
	n, errno := poll.Write(int(c.fd), c.out)
	switch errno {
	case 0:
		c.out = c.out[n:]
	case unix.EAGAIN, unix.EINTR: // an event tells when to go on
	default:
		l.lost(i, now, kindReset, errno)
	}
}

// take handles what has happened to a connection.
func (l *loop) take(i int32, events uint32) {
	c := &l.conns[i]
	if c.state == dialling {
		errno, err := unix.GetsockoptInt(int(c.fd), unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && errno != 0 {
			err = unix.Errno(errno)
		}
		if err != nil {
			l.notMade(i, l.now(), err)
		} else if events&poll.Writable != 0 {
			l.made(i, l.now())
		}
		return
	}
	if events&poll.Writable != 0 && c.state == busy && len(c.out) > 0 {
		version := c.version
		if l.write(i, l.now()); c.version != version {
			return
		}
	}
	if events&(poll.Readable|poll.Ended) != 0 {
		l.read(i, events&poll.Ended != 0)
	}
}

// read takes what has come on a connection; all of it, for it is not told again. ended says that the end of
// the connection has come, too.
func (l *loop) read(i int32, ended bool) {
	c := &l.conns[i]
	for {
		n, errno := poll.Read(int(c.fd), l.buf)
		now := l.now()
		switch {
		case errno == unix.EAGAIN || errno == unix.EINTR:
			return
		case errno != 0:
			l.ends(i, now, kindReset, errno)
			return
		case n == 0:
			l.ends(i, now, kindClosed, nil)
			return
		}
		if version := c.version; !l.received(i, l.buf[:n], now, ended) || c.version != version {
			return
		}
		if n < len(l.buf) && !ended {
			return
		}
	}
}

// ends handles the end of a connection: of kind, unless the answer ends with it.
func (l *loop) ends(i int32, now int64, kind int, err error) {
	c := &l.conns[i]
	switch {
	case c.state == busy && kind == kindClosed && c.reader.atEnd():
		l.answered(i, now)
		l.again(i, now)
	case c.state == busy:
		l.lost(i, now, kind, err)
	default:
		l.again(i, now)
	}
}

// received takes bytes. It reports whether more may be read on this connection.
func (l *loop) received(i int32, p []byte, now int64, ended bool) bool {
	c := &l.conns[i]
	if c.state != busy { // nobody has asked
		l.again(i, now)
		return false
	}
	n, done, err := c.reader.feed(p)
	c.bytes += int64(n)
	if done && n < len(p) {
		err = badSurplus
	}
	switch {
	case err != nil:
		l.lost(i, now, kindMalformed, err)
		return false
	case !done:
		return true
	}
	l.answered(i, now)
	if c.reader.close || ended {
		l.again(i, now)
		return false
	}
	l.next(i, now)
	return c.state == busy || c.state == idle
}

// answered counts the answer that is complete.
func (l *loop) answered(i int32, now int64) {
	c := &l.conns[i]
	if l.counts(now) {
		l.tally.inTime++
	}
	if c.counted {
		l.awaited--
		l.tally.answer(c.reader.status, c.bytes, now-c.from)
	}
	c.state, c.counted = idle, false
}
