package httpfront

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ropeline/ropeline/httpfront/observe/tracing"
	"github.com/ropeline/ropeline/httpfront/relay"
	"github.com/ropeline/ropeline/httpfront/upstream"
)

// tunnel is a connection that was upgraded, and its origin's. It keeps nothing else of the request,
// since most tunnels say nothing most of the time, and last.
type tunnel struct {
	client *client
	early  []byte // that the client has sent behind the head
	origin *upstream.Conn
	active *activity
	record *record
	call   *tracing.Call
	ending relay.Ending
}

// beginTunnel answers r with the origin's 101, and returns the tunnel; nil if the client has gone.
func (w *answer) beginTunnel(e *client, r *request) *tunnel {
	x := &w.origin
	e.asks(nil) // from now on each direction ends by itself
	w.out = w.appendHead(w.out[:0], r, false)
	if _, err := e.Write(w.out); err != nil {
		x.close(false)
		return nil
	}
	var early []byte
	if e.in != nil {
		early, _ = e.in.Peek(e.in.Buffered())
	}
	t := &tunnel{client: e, early: bytes.Clone(early), origin: x.conn, active: x.active, record: r.handOver(w.code), call: x.call}
	x.conn = nil
	if t.active != nil {
		t.active.over = func() { e.Close() } // which ends both directions
	}
	return t
}

// run passes bytes on both ways, until that ends. The client's connection is not closed then.
func (t *tunnel) run(f *Front) {
	t.client.Requestless()
	t.client.freeReader()
	f.tunnels.add(t)
	relay.Join(t.client, t.early, t.origin, f.cfg.Timeouts.Tunnel, t.active, &t.ending, f.logPanic)
	f.tunnels.remove(t)
	t.active.finish()
	t.origin.Discard()
	t.call.End(false)
	t.record.end(0)
}

// tunnels are those that are open. The zero value is ready; any goroutine may call its methods.
type tunnels struct {
	mu   sync.Mutex // guards the following
	open map[*tunnel]struct{}
	none chan struct{} // closed when the last of them has ended; nil: nobody waits for that
}

func (s *tunnels) add(t *tunnel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[*tunnel]struct{}{}
	}
	s.open[t] = struct{}{}
}

func (s *tunnels) remove(t *tunnel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, t)
	if len(s.open) == 0 && s.none != nil {
		close(s.none)
		s.none = nil
	}
}

const (
	// endingPart of the time to drain is what the ends of tunnels are spread over; the rest is for last words.
	endingPart = 0.9
	// closingTime is for how long clients may answer the last close frame.
	closingTime = time.Second
)

// end ends all tunnels, evenly spread over most of span, so that their clients do not all come back in one moment. It
// returns when they have ended, soon after the last one was to, or when ctx ends.
func (s *tunnels) end(ctx context.Context, span time.Duration) {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.open))
	none := make(chan struct{})
	s.none = none
	s.mu.Unlock()
	if len(all) == 0 {
		return
	}
	begun := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i, t := range all {
		timer.Reset(time.Until(begun.Add(time.Duration(endingPart * float64(span) * float64(i) / float64(len(all))))))
		select {
		case <-timer.C:
			t.ending.End()
		case <-none:
			return
		case <-ctx.Done():
			return
		}
	}
	timer.Reset(closingTime)
	select {
	case <-timer.C:
	case <-none:
	case <-ctx.Done():
	}
}
