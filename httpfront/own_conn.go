package httpfront

import (
	"fmt"

	"github.com/ropeline/ropeline/httpfront/upstream"
)

// Some sites take who has logged in for whoever speaks on a connection (NTLM, and Negotiate as
// many servers do it). Where a request or an answer is about such a login, the connection to
// the origin stays with the client's, and serves nobody else. Where that client is a proxy, whose
// connection may bring requests of many visitors, it is closed.

// own says that the connection to the origin is the client's own from now on. If it can have
// none, it is to be closed.
func (x *exchange) own(r *request) {
	if r.edge == nil || r.via.Trusted {
		x.reusable = false
		return
	}
	x.owner = r.edge
}

// release gives the connection of x back: to its owner, if it has one.
func (x *exchange) release() {
	switch {
	case x.owner == nil:
		x.conn.Release()
	case x.conn.Keep():
		x.owner.keep(x.conn)
	}
}

// resume returns the connection that the client of a request has of its own, as connect does;
// nil if there is none.
func (f *Front) resume(a *admitted) (*upstream.Conn, error) {
	r := a.req
	if r.edge == nil || r.Upgrade || a.tried.Any() {
		return nil, nil
	}
	c := r.edge.kept.Load()
	if c == nil || !a.site.group.Has(c) || !r.edge.kept.CompareAndSwap(c, nil) {
		return nil, nil
	}
	switch err := a.site.group.Resume(c, &a.tried, r.use(), !r.asks()); {
	case err == upstream.ErrStale:
		return nil, nil
	case err != nil:
		return nil, err
	case !r.asks():
		return c, nil
	}
	switch err := f.ask(c, r); {
	case err == upstream.ErrStale:
		c.Discard()
		a.tried = upstream.Tried{For: a.tried.For}
		return nil, nil
	case err != nil:
		return c, fmt.Errorf("wait for the response: %w", err)
	}
	return c, nil
}
