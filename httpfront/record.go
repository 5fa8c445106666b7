package httpfront

import (
	"sync"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/httpfront/observe/accesslog"
	"github.com/ropeline/ropeline/httpfront/observe/tracing"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// RequestCounter is told of each request once it has ended, by many goroutines at once. It
// must not wait for anything.
type RequestCounter interface {
	// Record takes a request about a room, by its id; zero: about none.
	Record(of crdt.RoomID, o Outcome, took time.Duration)
}

// AccessLog takes a line for each request once it has ended, by many goroutines at once.
// It must neither wait for a disk nor keep e.
type AccessLog interface {
	Write(e *accesslog.Entry)
}

// record is what is noted of a request until its answer is out: by whom it is served, and
// what has become of it.
//
// A record comes from Front.newRecord and is good until end. All methods may be called
// on nil, which is a request that nobody wants to know of.
type record struct {
	front   *Front
	began   time.Time
	counted bool // among those that are being answered
	logged  bool // there is an access log, and entry for it
	outcome Outcome
	room    crdt.RoomID // zero: none
	name    string      // of it
	status  int         // of the answer; 0: there is none yet

	trace *tracing.Trace // nil: this one is not traced

	entry accesslog.Entry
	told  tracing.Request // where it is
	text  []byte          // backing bytes of entry
}

var records = sync.Pool{New: func() any { return new(record) }}

// newRecord returns nil if nobody wants to know. logged says that the request is one for the
// access log, if there is one.
func (f *Front) newRecord(logged bool) *record {
	logged = logged && f.cfg.AccessLog != nil
	if f.cfg.Requests == nil && !logged && f.cfg.Tracer == nil {
		return nil
	}
	c := records.Get().(*record)
	text := c.text[:0]
	*c = record{}
	c.front, c.began, c.logged, c.entry.Wait, c.text = f, time.Now(), logged, -1, text
	return c
}

// asked notes what the access log wants of a head, which goes before the answer is out.
func (c *record) asked(h http1.RawHead, r *request) {
	if c == nil || !c.logged {
		return
	}
	parts := [...]struct {
		to *[]byte
		of []byte
	}{
		{&c.entry.Method, h.Method},
		{&c.entry.Target, h.Target},
		{&c.entry.Protocol, h.Protocol},
		{&c.entry.Referer, r.First("referer")},
		{&c.entry.Agent, r.First("user-agent")},
	}
	for i := range parts {
		c.text = append(c.text, parts[i].of...)
	}
	rest := c.text // which is as large as it will be
	for i := range parts {
		n := len(parts[i].of)
		*parts[i].to, rest = rest[:n:n], rest[n:]
	}
}

// begin counts the request among those that are being answered.
func (c *record) begin() {
	if c != nil {
		c.counted = true
		c.front.inFlight.Add(1)
	}
}

// held says that the answer was held for so long, which is no time that the request took.
func (c *record) held(d time.Duration) {
	if c != nil {
		c.began = c.began.Add(d)
	}
}

// becomes notes what becomes of the request, unless more is known later.
func (c *record) becomes(o Outcome) {
	if c != nil {
		c.outcome = o
	}
}

// judged notes what a room has said of the request, with the visitor's pass from now on.
func (c *record) judged(o Outcome, s *room.Settings, p *node.Pass, now time.Time) {
	if c == nil {
		return
	}
	c.outcome, c.room, c.name = o, s.ID, s.Name
	if !c.logged {
		return
	}
	switch {
	case p.Arrival.IsZero():
	case p.Accepted():
		c.entry.Wait = max(0, p.AcceptedAt.Sub(p.Arrival))
	default:
		c.entry.Wait = max(0, now.Sub(p.Arrival))
	}
}

// end hands the record in: the answer is out, with so many bytes of body.
func (c *record) end(bytes int64) {
	if c == nil {
		return
	}
	f, now := c.front, time.Now()
	if c.counted {
		f.inFlight.Add(-1)
	}
	if f.cfg.Requests != nil {
		f.cfg.Requests.Record(c.room, c.outcome, now.Sub(c.began))
	}
	if c.logged {
		c.entry.Time, c.entry.Status, c.entry.Bytes = now, c.status, bytes
		c.entry.Room, c.entry.Decision = c.name, c.outcome.String()
		f.cfg.AccessLog.Write(&c.entry)
	}
	if c.trace != nil {
		c.told.Room, c.told.Outcome, c.told.Status = c.name, c.outcome.String(), c.status
		c.trace.End(&c.told, now)
	}
	records.Put(c)
}

// handOver returns what is noted of r, whose answer has that code, to be ended by the caller.
func (r *request) handOver(status int) *record {
	c := r.record
	if c == nil {
		return nil
	}
	r.record = nil
	c.status = status
	if c.logged {
		if c.entry.Addr = r.via.Client; !c.entry.Addr.IsValid() && r.edge != nil {
			c.entry.Addr = r.edge.PeerAddr() // it was refused before its visitor was found out
		}
	}
	return c
}
