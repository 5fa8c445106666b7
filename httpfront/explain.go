package httpfront

import (
	"time"

	"github.com/ropeline/ropeline/httpfront/gate/pass"
	"github.com/ropeline/ropeline/httpfront/gate/visitor"
	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// Explained says what would become of a request, and why, in the order in which the front
// looks at it. What does not apply is left out.
type Explained struct {
	Refused string `json:"refused,omitempty"` // why the request would be refused for its form
	NotNow  string `json:"not_now,omitempty"` // why this node would decide about nobody
	Room    string `json:"room,omitempty"`    // name; left out: the request is of no room, and passes

	Bypass  *BypassTold       `json:"bypass,omitempty"`  // why it passes the room
	Cookie  string            `json:"cookie,omitempty"`  // "none", "good", or that what came cannot be opened
	DryRun  bool              `json:"dry_run,omitempty"` // whatever is decided, the request passes
	Passes  bool              `json:"passes"`            // it would reach the site
	Decided *node.Explanation `json:"decided,omitempty"`
	// Held says why nobody new is let in whatever was decided: the site is down, or was lately.
	Held string `json:"held,omitempty"`

	Limits []LimitTold `json:"limits,omitempty"` // rate limits that the request is held against, in their order
	// Unlimited says that none is asked about: the visitor waits.
	Unlimited bool `json:"unlimited,omitempty"`
}

// BypassTold is what lets a request pass a room.
type BypassTold struct {
	Crawler     bool   `json:"crawler,omitempty"` // the crawler of a search engine
	Rule        int    `json:"rule,omitempty"`    // from 1 on
	Description string `json:"description,omitempty"`
	Expression  string `json:"expression,omitempty"`
}

// explainer is a Room that can say why.
type explainer interface {
	Explain(p node.Pass, known bool, now time.Time) node.Explanation
}

// Explain says what would become of a request. It is like Judge, but nothing is counted or
// changed, and no other node is asked: where one would have to be, the action is "ask".
// Nothing of a pass is told that could be used in its place. Peer is the visitor's address, and
// For means nothing.
func (f *Front) Explain(q *Question) (x Explained) {
	r := newRequest()
	defer r.release()
	if no := r.ask(q); no.Code != 0 {
		return Explained{Refused: no.Reason}
	}
	r.via.Locate(&r.Request, q.Peer, q.Scheme == "https" || q.Scheme == "wss", &visitor.Trust{}) // never refuses where nobody is believed
	r.via.Country = f.trust.Country
	if no := f.accepts(r); no.Code != 0 {
		return Explained{Refused: no.Reason}
	}
	decider := f.roomOf(r)
	now := f.cfg.Clock()
	if decider == nil {
		x.Passes = true
		f.explainLimits(&x, r, node.VisitorID{}, false, now)
		return x
	}
	s := decider.Settings()
	x.Room, x.DryRun = s.Name, s.DryRun
	if err := f.cfg.Ready(); err != nil {
		x.NotNow = err.Error()
		return x
	}
	made := f.frontOf(s)
	if by, passes := f.bypassOf(made, r); passes {
		x.Passes, x.Bypass = true, &BypassTold{Crawler: by == nil}
		if by != nil {
			x.Bypass.Rule, x.Bypass.Description, x.Bypass.Expression = by.index+1, by.description, made.front.Rules[by.index].Expression
		}
		return x
	}
	var by pass.Binding
	var p carried
	r.openPass(&p, f.keys.Load(), s, r.bind(&by, s))
	x.Cookie = cookieTold(r, &p)
	if e, ok := decider.(explainer); ok {
		told := e.Explain(p.Pass, p.known, now)
		x.Decided = &told
		x.Passes = s.DryRun || told.Action == "enter" || told.Action == "apply" || told.Action == "compete"
	}
	if x.Held = f.heldTold(r, s); x.Held != "" && !p.Accepted() {
		x.Passes = false
	}
	who := subjectOf(decider, &p, s, false, now)
	if x.Unlimited = who.waits; !x.Unlimited {
		f.explainLimits(&x, r, who.visitor, s.DryRun, now)
	}
	return x
}

// heldTold says why nobody new is let in because of the site; "" if that is not so.
func (f *Front) heldTold(r *request, s *room.Settings) string {
	switch recoveryFor(s, f.sites.find(r.Host, r.Path.Route)) {
	case upstream.Down:
		return "no origin of the site is healthy"
	case upstream.Returning:
		return "the site is back, and those who wait are counted first"
	case upstream.Growing:
		return "the site is back, and gets more new visitors with each step"
	}
	return ""
}

// cookieTold says in words what became of the cookie.
func cookieTold(r *request, p *carried) string {
	switch {
	case p.known && p.stale:
		return "good, and to be sealed with a newer key"
	case p.known:
		return "good"
	case !r.Cookies:
		return "none"
	}
	return "none that can be opened for this room: no such name, of another mesh or key, or bound to another address or browser"
}
