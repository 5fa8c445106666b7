package httpfront

import (
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"time"

	"github.com/ropeline/ropeline/httpfront/gate/pass"
	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// handler makes the answer to r. no says why r cannot be understood, if so.
type handler func(r *request, no http1.Refusal)

// handle is the handler of visitors. Whatever protocol a request came by, this is its way.
func (f *Front) handle(r *request, no http1.Refusal) {
	a := admitted{req: r}
	switch {
	case !f.decide(&a, no):
	case r.isQuestion():
		answerTurn(r.answer(), a.cookie)
	default:
		f.proxy(&a)
	}
	if r.limited {
		r.record.held(f.hold(r.edge.PeerAddr()))
	}
}

// decide takes a request as far as it can be taken without the origin. It
// returns false if the request has been answered.
func (f *Front) decide(a *admitted, no http1.Refusal) bool {
	r := a.req
	if no.Code == 0 {
		no = f.place(a, r.edge.PeerAddr(), r.edge.IsSecure())
	}
	if no.Code != 0 {
		r.record.becomes(Malformed)
		f.refuse(r.answer(), no)
		return false
	}
	if f.serveKeys(r) {
		r.record.becomes(Bypassed)
		return false
	}
	if what, err := f.unavailable(r); err != nil {
		f.fail(r.answer(), r, nil, what, err)
		return false
	}
	var waits waiting
	if room := f.roomOf(r); room == nil {
		if f.admitsRoomless(r, &waits) {
			return true
		}
	} else {
		from := r.record.now()
		admitted := f.judge(room, a, &waits)
		r.record.decided(from)
		if admitted {
			return true
		}
	}
	f.wait(r.answer(), &waits)
	return false
}

// place finds out where a.req, which was parsed, comes from and goes to, or says why it goes
// nowhere.
func (f *Front) place(a *admitted, peer netip.Addr, secure bool) http1.Refusal {
	r := a.req
	if no := r.via.Locate(&r.Request, peer, secure, &f.trust); no.Code != 0 {
		return no
	}
	f.settleHost(r)
	r.record.traced(r, false)
	a.site = f.sites.find(r.Host, r.Path.Route)
	if no := f.accepts(r); no.Code != 0 {
		return no
	}
	if no := a.site.admits(r); no.Code != 0 {
		return no
	}
	if !f.cfg.allows(r.Method) {
		return http1.UnknownMethod
	}
	return http1.Refusal{}
}

// settleHost decides which host r is for, where a trusted proxy names another one than
// the Host field. Proxies that rewrite Host say so, and rooms stand at what visitors
// ask for. But many proxies leave Host as it is and pass a visitor's X-Forwarded-Host
// on, so who asks for a host that has a room could get around it by naming another:
// a Host that leads to a room by its name counts. The origin is told the same, or a
// visitor would wait for one host and be served another.
func (f *Front) settleHost(r *request) {
	switch {
	case r.via.Host == nil || r.via.Name == r.Host:
	case f.cfg.Rooms.Route(r.Host, r.Path.Route) == f.cfg.Rooms.Route("", r.Path.Route):
		r.Host = r.via.Name
	default:
		r.via.Host, r.via.Name = nil, ""
	}
}

// roomOf returns the room that decides about r; nil if none does. A preflight
// carries no cookies, so it would wait for ever; what it asks about is decided when
// it comes.
func (f *Front) roomOf(r *request) Room {
	if r.Preflight {
		return nil
	}
	return f.cfg.Rooms.Route(r.Host, r.Path.Route)
}

// accepts says what keeps r from being taken for any room, or for none, if anything does.
func (f *Front) accepts(r *request) http1.Refusal {
	if hosts := *f.hosts.Load(); len(hosts) > 0 && !slices.Contains(hosts, r.Host) {
		return http1.Refusal{Code: http.StatusMisdirectedRequest, Reason: "this host is not served here"}
	}
	return f.oneRoom(r)
}

// oneRoom refuses a request that is of one room where an encoded slash ends a segment,
// and of another where it does not: how the origin takes it is not known.
func (f *Front) oneRoom(r *request) http1.Refusal {
	if r.Path.Literal == "" || f.cfg.Rooms.Route(r.Host, r.Path.Route) == f.cfg.Rooms.Route(r.Host, r.Path.LiteralRoute) {
		return http1.Refusal{}
	}
	return http1.Bad("an encoded slash (%2F) leaves it open which waiting room the address belongs to")
}

// judge has room decide about a.req, and fills in a; who is not admitted gets the
// answer w, which is zero before. It reports whether the visitor is admitted.
func (f *Front) judge(room Room, a *admitted, w *waiting) bool {
	r := a.req
	s := room.Settings()
	*w = waiting{req: r, settings: s, made: f.frontOf(s), now: f.cfg.Clock()}
	if f.bypasses(room, w.made, r) {
		r.record.judged(Bypassed, s, &w.verdict.Pass, w.now)
		return true
	}
	var by pass.Binding
	keys := f.keys.Load()
	var p carried
	r.openPass(&p, keys, s, r.bind(&by, s))
	if p.known && p.Accepted() && f.turnsBack(r, &p.Pass, room, w.made, w.now) {
		p = carried{}
	}
	var who limitSubject
	var over *askedLimit // a rate limit
	if len(f.limitRules()) > 0 {
		if who = subjectOf(room, &p, s, true, w.now); !who.waits {
			over = f.limitedBy(r, who.visitor, s.DryRun, w.now)
		}
	}
	if over != nil && !over.lines(&who) {
		over.answer(w, room)
		r.record.judged(w.outcome(), s, &p.Pass, w.now)
		return false
	}
	if isIn := p.Accepted() && p.LeaseEnd.After(w.now); !isIn && r.isSpeculative() && !passesAll(s) {
		w.crowded = true // nobody may come for the place
		return f.crowdedOut(a, w, room)
	}
	v := &w.verdict
	w.decideOn(room, a, &p, over)
	r.record.waited(v)
	if p.known && !p.Accepted() && v.Admit && v.Pass.Visitor == p.Visitor && f.turnsBack(r, &v.Pass, room, w.made, w.now) {
		p = carried{} // a waiting pass is as good as the one that it was exchanged for
		w.decideOn(room, a, &p, over)
		r.record.waited(v)
	}
	w.limited = over
	if v.View != nil {
		w.settings = v.View.Settings // an event may have begun or ended in between
	}
	if v.New && !f.queues(room, w) {
		return f.crowdedOut(a, w, room)
	}
	switch {
	case v.SetPass, p.stale && v.Pass.Visitor == p.Visitor && !v.ClearPass:
		r.setCookie = r.appendSetCookie(r.setCookie[:0], keys, &v.Pass, w.settings, w.now)
		a.cookie = r.setCookie
	case v.ClearPass:
		a.cookie = r.appendNoCookie(nil, w.settings)
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

// crowdedOut is settle for somebody new who may not queue.
func (f *Front) crowdedOut(a *admitted, w *waiting, room Room) bool {
	if w.settings.DryRun {
		return f.passDry(a, room, w.settings, &node.Pass{}, w.now)
	}
	w.req.record.judged(Queued, w.settings, &w.verdict.Pass, w.now)
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
		return f.passDry(a, room, s, &v.Pass, now)
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
	if f.draining.Load() && r.Upgrade {
		return stopping, errDraining
	}
	if err := f.cfg.Ready(); err != nil {
		return failure{code: http.StatusServiceUnavailable, title: "This server is starting"}, err
	}
	return failure{}, nil
}

var errDraining = errors.New("an upgrade while the front stops")

// logPanic is to be called while p unwinds the stack, which it logs.
func (f *Front) logPanic(p any) {
	f.failures.tell(f.cfg.Logger, slog.LevelError, failureKind{title: "panic"}, "panic while serving a request",
		slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
}

// passDry lets somebody pass who would have queued, in a room that only tries its limits.
// There is no session, so nothing hangs on how long the request goes on. It returns true.
func (f *Front) passDry(a *admitted, decider Room, s *room.Settings, p *node.Pass, now time.Time) bool {
	decider.CountDryRun()
	a.settings, a.pass = s, *p
	f.prove(a.req, s, &node.Pass{Visitor: p.Visitor, AcceptedAt: now}, now)
	a.req.record.judged(Admitted, s, &a.pass, now)
	return true
}
