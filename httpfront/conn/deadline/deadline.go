// Package deadline moves the deadlines of connections as seldom as it can. A connection that
// brings a request every millisecond has its deadline moved some times for each of them, and
// hardly ever reaches one; to move it costs more than to parse the request.
package deadline

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// Lazy is the deadline of one direction of a connection. A deadline that is moved to a later
// time is only noted. When the earlier one runs out, what waits looks at what is noted, has
// that set, and goes on to wait:
//
//	for {
//		n, err := conn.Read(p)
//		if !l.Again(err) {
//			return n, err
//		}
//	}
//
// So it is kept to the nanosecond, as one that was moved each time. Any goroutine may call its
// methods. It is not for directions in which an operation that timed out cannot be begun
// again, such as writes of TLS.
type Lazy struct {
	// Arm sets it: the SetReadDeadline or SetWriteDeadline of a connection that has none yet.
	Arm func(time.Time) error

	mu    sync.Mutex // guards the following
	want  time.Time  // zero: none
	armed time.Time  // what the connection has; zero: none
}

// Set has what is waited for now, and from now on, end at t; zero is no deadline. The error is
// that of the connection.
func (l *Lazy) Set(t time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.want = t
	if t.IsZero() || !l.armed.IsZero() && !t.Before(l.armed) {
		return nil
	}
	l.armed = t
	return l.Arm(t)
}

// Write writes all of p to the connection whose deadline for writes l is, by until.
func (l *Lazy) Write(to io.Writer, p []byte, until time.Time) (sent int, err error) {
	if err := l.Set(until); err != nil {
		return 0, err
	}
	for {
		n, err := to.Write(p[sent:])
		if sent += n; !l.Again(err) {
			return sent, err
		}
	}
}

// Again reports whether what ended with err ended too early, so that it is to be begun again.
func (l *Lazy) Again(err error) bool {
	if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.want.IsZero() && !time.Now().Before(l.want) {
		return false
	}
	l.armed = l.want
	return l.Arm(l.want) == nil
}
