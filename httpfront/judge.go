package httpfront

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/ropeline/ropeline/httpfront/forwarding"
	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/httpfront/page"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// Question is a request that another proxy holds back until it knows our verdict.
// Everything in it is what that proxy says of the request of its visitor.
type Question struct {
	// Peer is the address of the proxy. It has to be one of Config.TrustedProxies,
	// or what it tells of the visitor's address, host and TLS is not believed.
	Peer netip.Addr

	Method string // the visitor's; one that is not known counts as one that changes something
	Target string // path and query as the visitor sent them; starts with "/", or is "*"
	Host   string // as in the visitor's Host field, with or without a port
	Scheme string // "https" or "wss" if the visitor's side is TLS; or a list, with one for each of For

	// For is the list of addresses that the request came through, as in
	// X-Forwarded-For: the last is whom the proxy itself got the request from.
	// Empty means the proxy itself.
	For string

	// Fields yields the visitor's header fields. Those that say where a request
	// came from, or where a message ends, are not looked at.
	Fields func(yield func(name, value string) bool)

	// Cookie is Answer.Cookie of an earlier answer about the same request. A front
	// end that fetches its page with a second request hands it back, so that one
	// visitor is not taken for two.
	Cookie string

	// Again says that an earlier answer kept the same request from the site, and this one
	// is for its visitor: it does not count once more for rate limits.
	Again bool

	// NoPage says that nobody will read Answer.Body.
	NoPage bool
}

// Outcome is what becomes of a request. A proxy that asked about one is told the first
// five only.
type Outcome uint8

const (
	// Unavailable: this node cannot decide, and the room is to hold who comes
	// (room.PartitionHold). The zero value.
	Unavailable Outcome = iota
	// Admitted: pass the request on to the origin. It is of somebody who is in, or was let
	// in by it; for a proxy that asked, also one that no room is about.
	Admitted
	// Queued: hand the answer to the visitor.
	Queued
	// Malformed: the request would have been refused here for its form. The body
	// says why, in a line.
	Malformed
	// Limited: hand the answer to the visitor, who comes too often for a rate limit.
	Limited

	Rejected // queued, in a room that lets nobody in
	Bypassed // passed on, since no room or a rule says so
	Failed   // passed on, and not answered by the origin
	outcomes // how many there are
)

var outcomeWords = [outcomes]string{"unavailable", "admitted", "queued", "malformed", "limited", "rejected", "bypassed", "failed"}

// Outcomes returns a word in lower case for each outcome.
func Outcomes() []string { return outcomeWords[:] }

// String returns the word for the outcome.
func (o Outcome) String() string {
	if o < outcomes {
		return outcomeWords[o]
	}
	return "unknown"
}

// Answer is what becomes of a Question. Nothing in it is shared.
type Answer struct {
	Outcome Outcome

	// JSON says that the visitor asks for JSON rather than for a page. Body is JSON
	// then, unless the room answers with pages only.
	JSON bool

	// Cookie is the value of the one Set-Cookie field that is to reach the
	// visitor, whatever the outcome is; empty for none.
	Cookie string

	// Proof is the value of the field ProofField for the site, and replaces the
	// visitor's own. If it is empty, there is none, and the visitor's own is to be
	// removed.
	Proof      string
	ProofField string

	// Status, Fields and Body are the answer for a visitor who is not admitted, as
	// this node's own proxy would have given it: the room's code for queue answers
	// among them, which some front ends would take for a yes. Fields has neither
	// Set-Cookie nor Content-Length.
	Status int
	Fields []AnswerField
	Body   []byte
}

// AnswerField is one header field of an Answer.
type AnswerField struct{ Name, Value string }

// Judge decides about a request as Run would if q.Peer had sent it here. It never
// panics: where this node cannot decide, the room's OnPartition says what becomes
// of the visitor. It may be called from many goroutines at once, and it may wait
// for as long as Room.Decide.
func (f *Front) Judge(q *Question) (a Answer) {
	k := &asked{req: newRequest(), read: !q.NoPage}
	k.req.record = f.newRecord(false)
	k.req.record.begin()
	defer k.release()
	defer func() { a.ProofField = f.cfg.ProofHeader }()
	defer func() {
		if p := recover(); p != nil {
			f.logPanic(p)
			k.req.record.becomes(Unavailable)
			a = f.undecided(k, failure{code: http.StatusServiceUnavailable, title: "Something went wrong here"}, fmt.Errorf("panic: %v", p))
		}
	}()
	if no := k.req.ask(q); no.Code != 0 {
		k.req.record.becomes(Malformed)
		return malformed(no)
	}
	defer func() {
		a.JSON = page.PrefersJSON(k.req.Accept)
		if a.Outcome == Admitted && k.req.isQuestion() {
			a.Outcome, a.Proof = Queued, ""
			answerTurn(k.req.answer(), nil) // a.Cookie has it
			a.copyFrom(k.req.answer())
		}
	}()
	k.req.again = q.Again
	k.req.via.Locate(&k.req.Request, q.Peer, false, &f.asked) // never refuses a list
	k.req.record.traced(k.req, true)
	if no := f.accepts(k.req); no.Code != 0 {
		k.req.record.becomes(Malformed)
		return malformed(no)
	}
	k.room, k.routed = f.roomOf(k.req), true
	if k.room == nil {
		return f.answerRoomless(k)
	}
	if what, err := f.unavailable(k.req); err != nil {
		return f.undecided(k, what, err)
	}
	return f.answer(k, q.Cookie != "")
}

// answer has the room of a question decide. again says that the visitor was given
// the pass in an earlier answer about the same request, which this one takes the
// place of.
func (f *Front) answer(k *asked, again bool) (a Answer) {
	adm := admitted{req: k.req}
	var w waiting
	from := k.req.record.now()
	ok := f.judge(k.room, &adm, &w)
	k.req.record.decided(from)
	s, p := w.settings, w.verdict.Pass
	if ok {
		s, p = adm.settings, adm.pass
	}
	if adm.cookie == nil && again && p.Visitor != (node.VisitorID{}) {
		adm.cookie = k.req.appendSetCookie(nil, f.keys.Load(), &p, s, f.cfg.Clock())
	}
	a.Cookie = string(adm.cookie)
	if ok {
		a.Outcome, a.Proof = Admitted, k.req.proof
		f.tellUnseen(k.req)
		return a
	}
	f.keepOut(&a, k, &w)
	return a
}

// keepOut fills in what is answered to who is not admitted.
func (f *Front) keepOut(a *Answer, k *asked, w *waiting) {
	a.Outcome, a.Status = Queued, w.status()
	if w.blocked() {
		a.Outcome = Limited
	}
	if k.read {
		w.cookie = nil // a.Cookie has it
		f.wait(k.req.answer(), w)
		a.copyFrom(k.req.answer())
	}
}

// answerRoomless answers a question about a request that is of no room.
func (f *Front) answerRoomless(k *asked) (a Answer) {
	var w waiting
	if f.admitsRoomless(k.req, &w) {
		f.tellUnseen(k.req)
		return Answer{Outcome: Admitted}
	}
	f.keepOut(&a, k, &w)
	return a
}

// asked is a question while it is answered.
type asked struct {
	req    *request
	room   Room // who decides; nil: nobody, or not known yet
	routed bool // room is known
	read   bool // somebody reads the answer of req
}

func (k *asked) release() {
	k.req.record.end(0)
	k.req.release()
}

// undecided answers where this node cannot decide.
func (f *Front) undecided(k *asked, what failure, err error) Answer {
	if k.room != nil && opensOnFailure(k.room.Settings()) || k.room == nil && k.routed {
		return Answer{Outcome: Admitted}
	}
	a := Answer{Outcome: Unavailable, Status: what.code}
	if k.read {
		f.fail(k.req.answer(), k.req, k.room, what, err)
		a.copyFrom(k.req.answer())
	}
	return a
}

func opensOnFailure(s *room.Settings) bool { return s.OnPartition == room.PartitionOpen || s.DryRun }

func malformed(no http1.Refusal) Answer {
	return Answer{
		Outcome: Malformed, Status: no.Code,
		Fields: []AnswerField{
			{"Content-Type", "text/plain; charset=utf-8"},
			{"Cache-Control", "no-store"},
			{"X-Content-Type-Options", "nosniff"},
			{stateField, stateRefused},
		},
		Body: fmt.Appendf(nil, "%d %s\n", no.Code, no.Reason),
	}
}

// copyFrom takes over an answer that was made for our own clients.
func (a *Answer) copyFrom(w *answer) {
	a.Status = w.code
	for line := range strings.SplitSeq(strings.TrimSuffix(string(w.head.b), "\r\n"), "\r\n") {
		name, value, _ := strings.Cut(line, ": ")
		a.Fields = append(a.Fields, AnswerField{name, value})
	}
	a.Body = bytes.Clone(w.body())
}

// ask fills r in from a question, by writing the head that the proxy would have
// sent and reading it by the rules for heads. So a question is understood as the
// same request is in front of us, or refused like it.
func (r *request) ask(q *Question) http1.Refusal {
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	head, err := q.appendFields(buf[:0])
	if err != nil {
		return http1.Bad(err.Error())
	}
	method := q.Method
	switch {
	case http1.OpensTunnel(method):
		return http1.Bad("this method is not supported") // and not 501, which some take for a node that is down
	case !http1.IsMethod(method):
		method = http.MethodPost // what it does is not known, so it may change something
	}
	// parse copies what it keeps.
	no := r.Parse(http1.RawHead{Method: []byte(method), Target: []byte(q.Target), Protocol: []byte("HTTP/1.1"), Fields: head})
	if no.To != "" {
		return http1.Bad(no.Reason) // other proxies send nobody elsewhere
	}
	r.Preflight = r.Preflight && !q.hasBody()
	return no
}

// appendFields appends the fields of a head, with the empty line that ends it.
func (q *Question) appendFields(dst []byte) ([]byte, error) {
	var err error
	add := func(name, value string) bool {
		if strings.ContainsAny(name, "\r\n") || strings.ContainsAny(value, "\r\n") {
			err = errors.New("a header field has a line break")
			return false
		}
		dst = http1.AppendField(dst, name, value)
		return true
	}
	add("Host", q.Host)
	add("X-Forwarded-Proto", q.Scheme)
	add("X-Forwarded-For", q.For)
	if name, _, ok := strings.Cut(q.Cookie, ";"); ok {
		add("Cookie", name) // first, since it is newer than what the visitor has sent
	}
	if q.Fields != nil {
		for name, value := range q.Fields {
			b := []byte(name)
			if forwarding.Has(heldBack, b) {
				continue
			}
			if !add(name, value) {
				break
			}
		}
	}
	return append(dst, "\r\n"...), err
}

// hasBody reports whether the visitor's request has a body, as far as its fields say.
func (q *Question) hasBody() bool {
	if q.Fields == nil {
		return false
	}
	for name, value := range q.Fields {
		if http1.EqualFold([]byte(name), "transfer-encoding") || http1.EqualFold([]byte(name), "content-length") && value != "0" {
			return true
		}
	}
	return false
}

// Errors of Revoke.
var (
	ErrRevokeDisabled = errors.New("the room does not let the site end sessions; see enabled-origin-commands")
	ErrNoSession      = errors.New("the request carries no pass of a session")
)

// Revoke ends the session of the visitor whose request q is: of it, Host, Scheme,
// Target and the Cookie fields matter. It returns the value of a Set-Cookie field that
// takes the pass from the browser; without it the visitor is new all the same. It
// fails with ErrNoSession or ErrRevokeDisabled, or because q is not in order.
func (f *Front) Revoke(q *Question) (cookie string, err error) {
	r := newRequest()
	defer r.release()
	if no := r.ask(q); no.Code != 0 {
		return "", errors.New(no.Reason)
	}
	r.via.Locate(&r.Request, q.Peer, false, &f.asked)
	decider := f.roomOf(r)
	if decider == nil {
		return "", ErrNoSession
	}
	s := decider.Settings()
	var p carried
	r.openPass(&p, f.keys.Load(), s, nil) // the site asks, and not the visitor
	switch {
	case !p.known:
		return "", ErrNoSession
	case !slices.Contains(s.EnabledOriginCommands, room.Revoke):
		return "", ErrRevokeDisabled
	case !decider.End(p.Pass, f.cfg.Clock()):
		return "", ErrNoSession
	}
	return string(r.appendNoCookie(nil, s)), nil
}
