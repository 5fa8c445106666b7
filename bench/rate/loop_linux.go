package rate

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ropeline/ropeline/bench/rate/internal/poll"
)

const (
	mostEvents = 64                    // at a time, between two looks at what is due
	readSize   = 64 << 10              // bytes of one read; all connections share them
	choresGap  = 20 * time.Millisecond // between two looks at what takes too long
)

// request is one head to send.
type request struct {
	head   []byte
	toHead bool // it is for HEAD, so that its answer has no body
}

// loop is the generator: it sends, receives and keeps time on one thread. Times are nanoseconds since start.
//
//	schedule ─ due ─▶ line ─ a connection is free ─▶ send ──▶ server
//	                                     ▲                      │
//	                                     └── answer, tally ◀────┘
//
// The line needs no memory: who is in it are the requests that the schedule still has before now.
type loop struct {
	cfg      Config
	to       unix.Sockaddr
	family   int
	requests []request
	poller   *poll.Poller
	conns    []conn
	free     ring
	line     *schedule // nil: the closed model
	tally    *tally
	buf      []byte
	start    time.Time

	running    bool  // connections are made, and requests may be sent
	begin, end int64 // the measured time
	turn       int   // the next request of the list
	connecting int   // connections that are being made
	awaited    int   // requests under way that count
	chores     int64 // when to look after what takes too long
	dialFailed error // why the last connection could not be made

	marks [2]mark // at begin and end
}

// mark is what was used up to a moment.
type mark struct {
	at   int64
	used poll.Used
}

func (l *loop) now() int64 { return int64(time.Since(l.start)) }

func newLoop(cfg Config, to unix.Sockaddr, family int) (*loop, error) {
	poller, err := poll.New(mostEvents)
	if err != nil {
		return nil, err
	}
	l := &loop{
		cfg: cfg, to: to, family: family, poller: poller, tally: newTally(), start: time.Now(),
		conns: make([]conn, cfg.Conns), free: newRing(cfg.Conns), buf: make([]byte, readSize),
	}
	for _, head := range cfg.Requests {
		l.requests = append(l.requests, request{head, len(head) > 5 && string(head[:5]) == "HEAD "})
	}
	for i := range l.conns {
		l.conns[i] = conn{fd: -1}
	}
	return l, nil
}

// close ends all connections.
func (l *loop) close() {
	for i := range l.conns {
		if l.conns[i].fd >= 0 {
			_ = unix.Close(int(l.conns[i].fd))
		}
	}
	l.poller.Close()
}

// connect makes all connections. Each of them has to come about.
func (l *loop) connect(ctx context.Context) error {
	const atATime = 64 // fewer than any server lets wait
	last := l.now() + int64(l.cfg.Timeout)
	for next := 0; next < len(l.conns) || l.connecting > 0; {
		if next < len(l.conns) && l.connecting < atATime {
			l.dial(int32(next), l.now())
			next++
		} else if err := l.pump(time.Millisecond); err != nil {
			return err
		}
		switch {
		case l.dialFailed != nil:
			return l.dialFailed
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case l.now() > last:
			return fmt.Errorf("connect to %s: %d of %d connections were not made in %s", l.cfg.Address, len(l.conns)-next+l.connecting, len(l.conns), l.cfg.Timeout)
		}
	}
	return nil
}

// begins starts to send. Requests are due from now on.
func (l *loop) begins() {
	l.start = time.Now() // the schedule's
	for i := range l.conns {
		l.conns[i].freeSince = 0
	}
	l.begin = int64(l.cfg.Warm)
	l.end = l.begin + int64(l.cfg.Lasts)
	l.chores = int64(choresGap)
	l.running = true
	if l.cfg.Rate > 0 {
		l.line = &schedule{gap: 1e9 / l.cfg.Rate}
		return
	}
	for l.free.len() > 0 {
		if i, ok := l.freeConn(); ok {
			l.next(i, l.now())
		}
	}
}

// step sends what is due, and takes what has come. It reports whether that was all.
func (l *loop) step(ctx context.Context) (done bool, err error) {
	now := l.now()
	l.sendDue(now)
	if now >= l.begin && l.marks[0].at == 0 {
		l.marks[0] = mark{now, poll.UsedSoFar()}
	}
	if now >= l.end && l.marks[1].at == 0 {
		l.marks[1] = mark{now, poll.UsedSoFar()}
	}
	if now >= l.end && l.awaited == 0 && !l.stillDue() {
		return true, nil
	}
	if now >= l.chores {
		if l.chores = now + int64(choresGap); ctx.Err() != nil {
			return true, l.stop(ctx, now)
		}
		if now >= l.end+int64(l.cfg.Drain) {
			l.giveUp(now)
			return true, nil
		}
		l.lookAfter(now)
	}
	return false, l.pump(l.patience(now))
}

// stop ends the measured time before it is over.
func (l *loop) stop(ctx context.Context, now int64) error {
	if now < l.end {
		l.end = max(now, l.begin)
	}
	l.giveUp(now)
	return context.Cause(ctx)
}

// stillDue reports whether requests of the measured time have not been sent.
func (l *loop) stillDue() bool { return l.line != nil && l.line.due() < l.end }

// patience returns how long nothing has to be done if nothing comes.
func (l *loop) patience(now int64) time.Duration {
	until := l.chores
	if l.free.len() > 0 && l.stillDue() {
		until = min(until, l.line.due())
	}
	for _, at := range [...]int64{l.begin, l.end} {
		if at > now {
			until = min(until, at)
		}
	}
	return time.Duration(until - now)
}

// pump waits for up to d, and takes what has come.
func (l *loop) pump(d time.Duration) error {
	events, err := l.poller.Wait(d)
	for i := range events {
		ev := &events[i]
		if c := &l.conns[ev.Fd]; c.version == ev.Pad {
			l.take(ev.Fd, ev.Events)
		}
	}
	return err
}

// counts reports whether a request that is due, or sent in the closed model, at some time is one of those
// that are measured.
func (l *loop) counts(at int64) bool { return at >= l.begin && at < l.end }

// sendDue sends the requests at the head of the line while there are connections.
func (l *loop) sendDue(now int64) {
	if l.line == nil || !l.running {
		return
	}
	for l.free.len() > 0 && l.line.due() <= now && l.stillDue() {
		i, ok := l.freeConn()
		if !ok {
			continue
		}
		due := l.line.due()
		l.line.advance()
		if l.counts(due) {
			l.tally.due++
			l.tally.late.add(now - max(due, l.conns[i].freeSince))
		}
		l.send(i, due, now)
		now = l.now()
	}
}

// freeConn takes the first of the free connections, if it has not broken since.
func (l *loop) freeConn() (i int32, ok bool) {
	i = l.free.pop()
	c := &l.conns[i]
	c.waits = false
	return i, c.state == idle
}

// next has a connection that is free do what comes next.
func (l *loop) next(i int32, now int64) {
	c := &l.conns[i]
	c.state, c.freeSince = idle, now
	switch {
	case !l.running || l.line != nil:
		if !c.waits { // it may still be there from before it broke
			c.waits = true
			l.free.push(i)
		}
		l.sendDue(now)
	case now < l.end:
		if l.counts(now) {
			l.tally.due++
		}
		l.send(i, now, now)
	}
}

// lookAfter gives up what takes too long, and makes broken connections anew.
func (l *loop) lookAfter(now int64) {
	for i := range l.conns {
		c := &l.conns[i]
		switch {
		case c.state == busy && now-c.sent > int64(l.cfg.Timeout):
			l.lost(int32(i), now, kindTimeout, nil)
		case c.state == dialling && now-c.sent > int64(l.cfg.Timeout):
			l.notMade(int32(i), now, unix.ETIMEDOUT)
		case c.state == down && now >= c.sent:
			l.dial(int32(i), now)
		}
	}
}

// giveUp counts what was not answered, with the time that it has waited in vain.
func (l *loop) giveUp(now int64) {
	for i := range l.conns {
		if c := &l.conns[i]; c.state == busy && c.counted {
			l.tally.fail(kindUnanswered, nil)
			l.tally.latency.add(now - c.from)
		}
	}
	l.awaited = 0
	for ; l.stillDue(); l.line.advance() {
		if due := l.line.due(); l.counts(due) {
			l.tally.due++
			l.tally.fail(kindUnsent, nil)
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
		l.marks[1] = mark{l.now(), poll.UsedSoFar()}
	}
	from, to := l.marks[0], l.marks[1]
	r := l.tally.result(l.cfg.Rate, time.Duration(l.end-l.begin))
	r.judge(spent{
		wall:    time.Duration(to.at - from.at),
		thread:  to.used.Thread - from.used.Thread,
		process: to.used.Process - from.used.Process,
		waited:  to.used.Waited - from.used.Waited,
	})
	return r
}
