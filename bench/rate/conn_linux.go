package rate

import (
	"cmp"

	"golang.org/x/sys/unix"
)

// conn is one connection.
type conn struct {
	fd        int
	busy      bool  // a request is under way
	counted   bool  // and is measured
	from      int64 // when its latency began
	freeSince int64 // when it had its last answer
	reader    reader
}

// send sends the next request on a connection that is free. Its latency counts from a time.
func (l *loop) send(i int32, from, now int64) error {
	c := &l.conns[i]
	next := int(i) % len(l.cfg.Requests)
	if !l.cfg.OnePerConn {
		next, l.turn = l.turn, (l.turn+1)%len(l.cfg.Requests)
	}
	head := l.cfg.Requests[next]
	c.busy, c.from = true, from
	c.reader.begin()
	if c.counted = l.counts(from); c.counted {
		l.tally.sent++
		l.awaited++
	}
	// Nothing else is under way on it, so that there is room for a head.
	if n, errno := transmit(c.fd, head); n < len(head) {
		return l.lost(i, now, ErrReset, cmp.Or(errno, unix.EAGAIN))
	}
	return nil
}

// read takes some of what has come on a connection; of more it is told again.
func (l *loop) read(i int32) error {
	c := &l.conns[i]
	n, errno := receive(c.fd, l.buf)
	now := l.now()
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		return nil
	case !c.busy: // nobody has asked, or the server has ended it
		return l.again(i)
	case errno != 0:
		return l.lost(i, now, ErrReset, errno)
	case n == 0:
		return l.lost(i, now, ErrClosed, nil)
	}
	took, done, err := c.reader.feed(l.buf[:n])
	if done && took < n {
		err = badSurplus
	}
	switch {
	case err != nil:
		return l.lost(i, now, ErrMalformed, err)
	case done:
		return l.answered(i, now)
	}
	return nil
}

// answered counts the answer that is complete.
func (l *loop) answered(i int32, now int64) error {
	c := &l.conns[i]
	if l.counts(now) {
		l.tally.inTime++
	}
	if c.counted {
		l.tally.answer(c.reader.status, now-c.from)
	}
	return l.over(i, now, c.reader.close)
}

// lost counts the request under way as failed.
func (l *loop) lost(i int32, now int64, kind ErrorKind, err error) error {
	if l.conns[i].counted {
		l.tally.fail(kind, err)
	}
	return l.over(i, now, true)
}

// over has a connection be free, which is opened again if it has ended.
func (l *loop) over(i int32, now int64, ended bool) (err error) {
	c := &l.conns[i]
	if c.counted {
		l.awaited--
	}
	c.busy, c.counted, c.freeSince = false, false, now
	if ended {
		err = l.again(i)
	}
	l.free <- i
	return err
}

// again opens a connection again.
func (l *loop) again(i int32) (err error) {
	_ = unix.Close(l.conns[i].fd)
	l.conns[i].fd, err = l.poller.dial(l.cfg.Address, i)
	return err
}
