package httpfront

import (
	"bytes"

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
	t := &tunnel{e, bytes.Clone(early), x.conn, x.active, r.handOver(w.code), x.call}
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
	relay.Join(t.client, t.early, t.origin, f.cfg.Timeouts.Tunnel, t.active, f.logPanic)
	t.active.finish()
	t.origin.Discard()
	t.call.End(false)
	t.record.end(0)
}
