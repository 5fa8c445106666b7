package rate

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

const (
	mostEvents = 64                    // at a time, between two looks at what is due
	readSize   = 64 << 10              // bytes of one read; all connections share them
	longest    = 20 * time.Millisecond // without a look at whether all is over
)

// loop is the generator: it sends, receives and keeps time on one thread. Times are nanoseconds since start.
//
//	schedule ─ due ─▶ line ─ a connection is free ─▶ send ──▶ server
//	                                     ▲                      │
//	                                     └── answer, tally ◀────┘
//
// The line needs no memory: who is in it are the requests that the schedule still has before now.
type loop struct {
	cfg    Config
	poller *poller
	conns  []conn
	free   chan int32 // connections; the one that has been free longest is used next, so that all are used as those of a crowd are
	line   *schedule  // nil: the closed model
	tally  *tally
	buf    []byte
	start  time.Time

	begin, end int64 // the measured time
	turn       int   // the next request of the list
	awaited    int   // requests under way that count

	marks [2]mark // at begin and end
}

// mark is what was used up to a moment.
type mark struct {
	at   int64
	used used
}

func (l *loop) now() int64 { return int64(time.Since(l.start)) }

func newLoop(cfg Config) (*loop, error) {
	poller, err := newPoller(mostEvents)
	return &loop{cfg: cfg, poller: poller, tally: newTally(), start: time.Now(), free: make(chan int32, cfg.Conns), buf: make([]byte, readSize)}, err
}

// close ends all connections.
func (l *loop) close() {
	for i := range l.conns {
		_ = unix.Close(l.conns[i].fd)
	}
	l.poller.close()
}

// connect makes all connections. Each of them has to come about.
func (l *loop) connect(ctx context.Context) error {
	for i := range l.cfg.Conns {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		fd, err := l.poller.dial(l.cfg.Address, int32(i))
		if err != nil {
			return err
		}
		l.conns = append(l.conns, conn{fd: fd})
	}
	return nil
}

// begins starts to send. Requests are due from now on.
func (l *loop) begins() {
	l.start = time.Now() // the schedule's
	l.begin = int64(l.cfg.Warm)
	l.end = l.begin + int64(l.cfg.Lasts)
	if l.cfg.Rate > 0 {
		l.line = &schedule{gap: 1e9 / l.cfg.Rate}
	}
	for i := range l.conns {
		l.free <- int32(i)
	}
}

// step sends what is due, and takes what has come. It reports whether that was all.
func (l *loop) step(ctx context.Context) (done bool, err error) {
	if err := l.sendDue(l.now()); err != nil {
		return true, err
	}
	now := l.now()
	for i, at := range [...]int64{l.begin, l.end} {
		if now >= at && l.marks[i].at == 0 {
			l.marks[i] = mark{now, usedSoFar()}
		}
	}
	switch {
	case ctx.Err() != nil: // the measured time ends before it is over
		l.end = min(l.end, max(now, l.begin))
		l.giveUp(now)
		return true, context.Cause(ctx)
	case now >= l.end && l.awaited == 0 && !l.stillDue():
		return true, nil
	case now >= l.end+int64(l.cfg.Drain):
		l.giveUp(now)
		return true, nil
	}
	ready, err := l.poller.wait(l.patience(now))
	for i := 0; i < len(ready) && err == nil; i++ {
		if err = l.read(ready[i].Fd); err == nil {
			err = l.sendDue(l.now())
		}
	}
	return err != nil, err
}

// stillDue reports whether requests of the measured time have not been sent.
func (l *loop) stillDue() bool { return l.line != nil && l.line.due() < l.end }

// patience returns how long nothing has to be done if nothing comes.
func (l *loop) patience(now int64) time.Duration {
	until := now + int64(longest)
	if len(l.free) > 0 && l.stillDue() {
		until = min(until, l.line.due())
	}
	for _, at := range [...]int64{l.begin, l.end} {
		if at > now {
			until = min(until, at)
		}
	}
	return time.Duration(until - now)
}

// counts reports whether a request that is due, or sent in the closed model, at some time is one of those
// that are measured.
func (l *loop) counts(at int64) bool { return at >= l.begin && at < l.end }

// sendDue sends what is due on the connections that are free: in the closed model, one request on each.
func (l *loop) sendDue(now int64) error {
	for ; len(l.free) > 0; now = l.now() {
		due := now
		if l.line != nil {
			due = l.line.due()
		}
		if due > now || due >= l.end {
			return nil
		}
		i := <-l.free
		if l.line != nil {
			l.line.advance()
		}
		if l.counts(due) {
			l.tally.due++
			if l.line != nil {
				l.tally.late.add(now - max(due, l.conns[i].freeSince))
			}
		}
		if err := l.send(i, due, now); err != nil {
			return err
		}
	}
	return nil
}

// giveUp counts what was not answered, with the time that it has waited in vain.
func (l *loop) giveUp(now int64) {
	for i := range l.conns {
		if c := &l.conns[i]; c.counted {
			l.tally.fail(ErrUnanswered, nil)
			l.tally.latency.add(now - c.from)
		}
	}
	for ; l.stillDue(); l.line.advance() {
		if due := l.line.due(); l.counts(due) {
			l.tally.due++
			l.tally.fail(ErrUnsent, nil)
			l.tally.latency.add(now - due)
		}
	}
}

// result returns what came of it.
func (l *loop) result() Result {
	if l.marks[0].at == 0 { // it was stopped before anything counted
		return l.tally.result(l.cfg.Rate, 0)
	}
	if l.marks[1].at == 0 {
		l.marks[1] = mark{l.now(), usedSoFar()}
	}
	from, to := l.marks[0], l.marks[1]
	r := l.tally.result(l.cfg.Rate, time.Duration(l.end-l.begin))
	r.share(spent{time.Duration(to.at - from.at), to.used.thread - from.used.thread, to.used.waited - from.used.waited})
	return r
}
