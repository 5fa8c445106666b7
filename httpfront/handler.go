package httpfront

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ropeline/ropeline/httpfront/pass"
	"github.com/ropeline/ropeline/node"
)

// handle answers one request.
func (f *Front) handle(ctx *fasthttp.RequestCtx) {
	edge := edgeOf(ctx.Conn())
	if edge != nil {
		if left := edge.fast.left.Swap(nil); left != nil {
			f.goOn(ctx, edge, left)
			return
		}
		edge.fast.requests++
	}
	a, ok := ctx.UserValue(decidedKey{}).(admitted)
	if !ok {
		a.req = f.request()
	}
	r := a.req
	r.record.begin()
	defer func() { f.end(ctx, r, recover()) }()
	if !ok {
		ok = f.decide(ctx, &a)
	}
	if ok {
		f.proxy(ctx, a)
	}
	f.conclude(ctx, edge, r)
}

// goOn goes on with a request that the fast path has left.
func (f *Front) goOn(ctx *fasthttp.RequestCtx, edge *edgeConn, left *unfinished) {
	r := left.req
	defer func() { f.end(ctx, r, recover()) }()
	switch {
	case left.err != nil:
		f.fail(ctx, r, left.failure, left.err)
	case left.waits:
		f.wait(ctx, left.waiting)
	default:
		f.proxy(ctx, left.admitted)
	}
	f.conclude(ctx, edge, r)
}

// conclude says what becomes of the connection once r has been answered.
func (f *Front) conclude(ctx *fasthttp.RequestCtx, edge *edgeConn, r *request) {
	if ctx.Hijacked() {
		return
	}
	// The server sees a wish to close only if Connection says nothing else.
	if f.isLast(edge, r) {
		ctx.Response.Header.SetConnectionClose()
	} else if edge != nil && !r.hasBody() && !r.expects {
		edge.fast.follows(f)
	}
}

// isLast reports whether the connection, nil for none, is closed once r has been answered.
func (f *Front) isLast(edge *edgeConn, r *request) bool {
	return r.close || f.draining.Load() || edge != nil && edge.fast.requests >= f.cfg.Limits.Requests
}

// end ends what is done with a request, and answers for it if that has panicked: only this
// request fails.
func (f *Front) end(ctx *fasthttp.RequestCtx, r *request, p any) {
	if p != nil {
		r.record.becomes(Unavailable)
		f.panicked(ctx, p)
	}
	limited := r.limited
	endRequest(ctx, r)
	r.release()
	if limited {
		f.hold(ctx)
	}
}

// request returns a request of whose head nothing is known yet.
func (f *Front) request() *request {
	r := newRequest()
	f.adopt(r)
	return r
}

// adopt has r be one of this front.
func (f *Front) adopt(r *request) {
	r.told, r.proofName, r.withheld = f.told, f.cfg.ProofHeader, f.withheld
	r.record, r.traces = f.newRecord(true), f.cfg.Tracer != nil
}

// decidedKey is the key of what handleExpect leaves for handle.
type decidedKey struct{}

// handleExpect is asked before a client is told to send the body of its
// request. Whoever has to wait is told so instead, and sends it later.
func (f *Front) handleExpect(ctx *fasthttp.RequestCtx) (code int) {
	a := admitted{req: f.request()}
	a.req.expects = true
	defer func() {
		if p := recover(); p != nil || code != http.StatusContinue {
			f.end(ctx, a.req, p)
			code = ctx.Response.StatusCode()
		}
	}()
	if f.decide(ctx, &a) {
		ctx.SetUserValue(decidedKey{}, a)
		return http.StatusContinue
	}
	return 0
}

// handleError answers what the server's parser refused.
func (f *Front) handleError(ctx *fasthttp.RequestCtx, err error) {
	no := bad("the request is not in order")
	if _, ok := errors.AsType[*fasthttp.ErrSmallBuffer](err); ok {
		no = refusal{code: http.StatusRequestHeaderFieldsTooLarge, reason: "the head of the request is too long"}
	} else if errors.Is(err, fasthttp.ErrBodyTooLarge) {
		no = refusal{code: http.StatusRequestEntityTooLarge, reason: "the body is too long"}
	} else if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		no = refusal{code: http.StatusRequestTimeout, reason: "the request came too slowly"}
	}
	f.refuse(ctx, no)
	f.recordUnread(ctx, err)
}

// decide takes a request as far as it can be taken without the origin. It
// returns false if the request has been answered.
func (f *Front) decide(ctx *fasthttp.RequestCtx, a *admitted) bool {
	r := a.req
	h := &ctx.Request.Header
	head := rawHead{h.Method(), h.RequestURI(), h.Protocol(), h.RawHeaders()}
	r.record.asked(head, h.Referer(), h.UserAgent())
	if r.edge = edgeOf(ctx.Conn()); r.edge != nil && r.edge.fast.requests > 1 {
		r.memory = &r.edge.memory
	}
	no := r.parse(head)
	if no.code == 0 {
		no = f.place(a, peerOf(ctx), isSecure(ctx))
	}
	if no.code != 0 {
		r.record.becomes(Malformed)
		f.refuse(ctx, no)
		return false
	}
	if f.serveKeys(ctx, r) {
		r.record.becomes(Bypassed)
		f.discardBody(ctx, r)
		return false
	}
	if what, err := f.unavailable(r); err != nil {
		f.fail(ctx, r, what, err)
		f.discardBody(ctx, r)
		return false
	}
	var w waiting
	if room := f.roomOf(r); room == nil {
		if f.admitsRoomless(r, &w) {
			return true
		}
	} else {
		from := r.record.now()
		admitted := f.judge(room, a, &w)
		r.record.decided(from)
		if admitted {
			return true
		}
	}
	f.wait(ctx, w)
	f.discardBody(ctx, r)
	return false
}

// place finds out where a.req, which was parsed, comes from and goes to, or says why it goes
// nowhere.
func (f *Front) place(a *admitted, peer netip.Addr, secure bool) refusal {
	r := a.req
	if no := r.locate(peer, secure, &f.trust); no.code != 0 {
		return no
	}
	f.settleHost(r)
	r.record.traced(r, false)
	a.site = f.sites.find(r.host, r.path.Route)
	if no := f.accepts(r); no.code != 0 {
		return no
	}
	if no := a.site.admits(r); no.code != 0 {
		return no
	}
	if !f.cfg.allows(r.method) {
		return unknownMethod
	}
	return refusal{}
}

// roomOf returns the room that decides about r; nil if none does. A preflight
// carries no cookies, so it would wait for ever; what it asks about is decided when
// it comes.
func (f *Front) roomOf(r *request) Room {
	if r.preflight {
		return nil
	}
	return f.cfg.Rooms.Route(r.host, r.path.Route)
}

// accepts says what keeps r from being taken for any room, or for none, if anything does.
func (f *Front) accepts(r *request) refusal {
	if hosts := *f.hosts.Load(); len(hosts) > 0 && !slices.Contains(hosts, r.host) {
		return refusal{code: http.StatusMisdirectedRequest, reason: "this host is not served here"}
	}
	return f.oneRoom(r)
}

// oneRoom refuses a request that is of one room where an encoded slash ends a segment,
// and of another where it does not: how the origin takes it is not known.
func (f *Front) oneRoom(r *request) refusal {
	if r.path.Literal == "" || f.cfg.Rooms.Route(r.host, r.path.Route) == f.cfg.Rooms.Route(r.host, r.path.LiteralRoute) {
		return refusal{}
	}
	return bad("an encoded slash (%2F) leaves it open which waiting room the address belongs to")
}

// judge has room decide about a.req, and fills in a; who is not admitted gets the
// answer w. It reports whether the visitor is admitted.
func (f *Front) judge(room Room, a *admitted, w *waiting) bool {
	r := a.req
	now := f.cfg.Clock()
	s := room.Settings()
	made := f.frontOf(s)
	if f.bypasses(room, made, r) {
		r.record.judged(Bypassed, s, &node.Pass{}, now)
		return true
	}
	var by pass.Binding
	keys := f.keys.Load()
	p := r.openPass(keys, s, r.bind(&by, s))
	if p.known && p.Accepted() && f.turnsBack(r, &p.Pass, room, made, now) {
		p = carried{}
	}
	var who limitSubject
	var over *askedLimit // a rate limit
	if len(f.limitRules()) > 0 {
		if who = subjectOf(room, &p, s, true, now); !who.waits {
			over = f.limitedBy(r, who.visitor, s.DryRun, now)
		}
	}
	if over != nil && !over.lines(&who) {
		*w = over.answer(waiting{req: r, settings: s, made: made, now: now}, room)
		r.record.judged(w.outcome(), s, &p.Pass, now)
		return false
	}
	v := decideOn(room, &p, over, now)
	r.record.waited(&v)
	if p.known && !p.Accepted() && v.Admit && v.Pass.Visitor == p.Visitor && f.turnsBack(r, &v.Pass, room, made, now) {
		p = carried{} // a waiting pass is as good as the one that it was exchanged for
		v = room.Decide(p.Pass, p.known, now)
		r.record.waited(&v)
	}
	if v.View != nil {
		s = v.View.Settings // an event may have begun or ended in between
	}
	*w = waiting{req: r, settings: s, made: made, verdict: v, now: now, limited: over}
	if v.New && !f.queues(room, w) {
		if s.DryRun {
			return f.passDry(a, room, s, node.Pass{}, now)
		}
		r.record.judged(Queued, s, &w.verdict.Pass, now)
		return false
	}
	switch {
	case v.SetPass, p.stale && v.Pass.Visitor == p.Visitor && !v.ClearPass:
		r.setCookie = r.appendSetCookie(r.setCookie[:0], keys, v.Pass, s, now)
		a.cookie = r.setCookie
	case v.ClearPass:
		a.cookie = r.appendNoCookie(nil, s)
	}
	w.cookie = a.cookie
	if who.waits && f.limitsLate(a, w, room, p.Visitor) {
		return false
	}
	return f.settle(a, w, room)
}

// queues has somebody new wait, and reports whether that may be; if not, w becomes the
// answer to it.
func (f *Front) queues(room Room, w *waiting) bool {
	if f.mayQueue(w.req, room, w.settings, &w.made.newVisitors, w.now) {
		room.Queue(w.verdict.Pass)
		return true
	}
	w.verdict = node.Verdict{View: w.verdict.View}
	w.crowded, w.limited = true, nil
	return false
}

// settle does what the verdict in w says. It reports whether the visitor is admitted.
func (f *Front) settle(a *admitted, w *waiting, room Room) bool {
	r, s, v, now := a.req, w.settings, &w.verdict, w.now
	switch {
	case v.Admit:
		a.room, a.settings, a.judged, a.pass = room, s, now, v.Pass
		f.prove(r, s, &a.pass, now)
		r.record.judged(Admitted, s, &a.pass, now)
		return true
	case s.DryRun:
		return f.passDry(a, room, s, v.Pass, now)
	}
	r.record.judged(w.outcome(), s, &v.Pass, now)
	return false
}

// unavailable says why r cannot be served now, if so. While the front stops,
// requests on connections that are still open are served, each as the last on
// its connection; upgrades would be cut off in a moment.
func (f *Front) unavailable(r *request) (failure, error) {
	if r.hasPassed(f.self) {
		return looping, errLoop
	}
	if f.draining.Load() && r.upgrade {
		return stopping, errDraining
	}
	if err := f.cfg.Ready(); err != nil {
		return failure{code: http.StatusServiceUnavailable, title: "This server is starting"}, err
	}
	return failure{}, nil
}

var errDraining = errors.New("an upgrade while the front stops")

// peerOf returns who is connected to us, or to the proxy that says so in a PROXY
// header.
func peerOf(ctx *fasthttp.RequestCtx) netip.Addr {
	e := edgeOf(ctx.Conn())
	if e != nil && e.peer.IsValid() {
		return e.peer
	}
	a := addrOf(ctx.RemoteAddr())
	if !a.IsValid() {
		a = netip.IPv4Unspecified()
	}
	if e != nil {
		e.peer = a
	}
	return a
}

// isSecure reports whether the peer speaks TLS with us, or with such a proxy.
func isSecure(ctx *fasthttp.RequestCtx) bool {
	if ctx.IsTLS() {
		return true
	}
	e := edgeOf(ctx.Conn())
	return e != nil && e.isSecure()
}

// How much of a body nobody wants is read, to keep the connection.
const (
	discardMax  = 64 << 10
	discardTime = time.Second
)

// discardBody reads the rest of a request's body, so that the next request
// starts where it should. What is too long or too slow costs the connection.
func (f *Front) discardBody(ctx *fasthttp.RequestCtx, r *request) {
	body := f.reader.body(ctx, r)
	if body == nil {
		return
	}
	edge := edgeOf(ctx.Conn())
	if edge != nil {
		edge.SetReadDeadline(time.Now().Add(discardTime))
	}
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	for left := discardMax; left > 0 && r.length <= discardMax; {
		n, err := body.Read(buf[:])
		left -= n
		if n == 0 && err == nil {
			continue
		}
		if err != nil {
			if isEnd(err) {
				return
			}
			break
		}
	}
	ctx.Response.Header.SetConnectionClose()
	if edge != nil {
		edge.linger.Store(true)
	}
}

// recover answers for a handler that panicked.
func (f *Front) recover(ctx *fasthttp.RequestCtx) {
	if p := recover(); p != nil {
		f.panicked(ctx, p)
	}
}

func (f *Front) panicked(ctx *fasthttp.RequestCtx, p any) {
	f.logPanic(p)
	f.refuse(ctx, panicked)
}

// logPanic is to be called while p unwinds the stack, which it logs.
func (f *Front) logPanic(p any) { logPanic(f.cfg.Logger, p) }

func logPanic(log *slog.Logger, p any) {
	log.LogAttrs(context.Background(), slog.LevelError, "panic while serving a request",
		slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
}
