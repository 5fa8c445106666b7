package relay

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// goingAway is a close frame with the code 1001: this end is going away.
var goingAway = []byte{0x80 | opClose, 2, 0x03, 0xe9}

// errEnded ends the direction to the client.
var errEnded = errors.New("the tunnel was ended")

// Ending lets a tunnel be ended by a word of ours. The zero value is ready for one Join.
type Ending struct {
	wanted, done atomic.Bool

	mu     sync.Mutex // held while something is sent to the client; guards the following
	client net.Conn   // nil: there is no tunnel yet
	finish func()
	frames frames
}

func (e *Ending) begin(client net.Conn, finish func()) {
	e.mu.Lock()
	e.client, e.finish = client, finish
	e.mu.Unlock()
	e.settle()
}

// closeFrameTime is how long a close frame may take to be sent: a client that has read nothing for so long that no
// four bytes fit in between would otherwise hold up the ends of all others.
const closeFrameTime = 100 * time.Millisecond

// End has the client be told that this end is going away, by a close frame behind the frame that is
// under way, and gives both sides some seconds for their last words, for which it does not wait.
// Where it cannot be told where a frame ends the connection is closed without a word.
func (e *Ending) End() {
	e.wanted.Store(true)
	e.settle()
}

// Write sends p to the client.
func (e *Ending) Write(p []byte) (int, error) {
	n, err := e.write(p)
	e.settle() // which End could not while we were writing
	return n, err
}

func (e *Ending) write(p []byte) (n int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done.Load() {
		return 0, errEnded
	}
	for from := 0; from < len(p); {
		from += e.frames.next(p[from:])
		if e.wanted.Load() && e.frames.boundary() {
			p = p[:from] // what comes behind the close frame is nobody's
		}
	}
	return e.client.Write(p)
}

// settle does what End wants as soon as nothing is being sent: whoever holds the lock calls it afterwards.
func (e *Ending) settle() {
	for e.wanted.Load() && !e.done.Load() && e.mu.TryLock() {
		waits := e.endLocked()
		e.mu.Unlock()
		if waits {
			return
		}
	}
}

// endLocked reports whether the end has to wait: for the tunnel, or for the end of a frame.
func (e *Ending) endLocked() (waits bool) {
	switch {
	case e.done.Load():
		return false
	case e.client == nil:
		return true
	case e.frames.broken:
		e.client.Close()
	case e.frames.over: // the origin has said it already
	case !e.frames.boundary():
		return true
	default:
		e.client.SetWriteDeadline(time.Now().Add(closeFrameTime))
		e.client.Write(goingAway)
		closeWrite(e.client)
	}
	e.done.Store(true)
	e.finish()
	return false
}
