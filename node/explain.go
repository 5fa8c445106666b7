package node

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// Why a visitor is let in, or is not.

// Explanation says how this node decides about one visitor of a room, and by what.
type Explanation struct {
	At     time.Time `json:"at"`
	Node   string    `json:"node"` // id of the node that says so
	Site   string    `json:"site"`
	Room   string    `json:"room"` // id
	Name   string    `json:"name"` // of the room
	Policy string    `json:"policy"`
	DryRun bool      `json:"dry_run,omitempty"` // whatever is decided, everybody passes

	Action string      `json:"action"` // as a word: enter, ask, apply, compete, wait, too_early or refuse
	Reason room.Reason `json:"reason"`
	Steps  []StepTold  `json:"steps"` // questions in the order in which they were asked; the last one decided

	Pass  *PassTold  `json:"pass,omitempty"`  // left out: nobody that is known
	Place *PlaceTold `json:"place,omitempty"` // of somebody who waits
	View  ViewTold   `json:"view"`
	// Rights is left out where they are not the limit.
	Rights *RightsStatus `json:"rights,omitempty"`
	// Who hands out tickets: ids of nodes, under the policies that have counters.
	SiteCounter     string `json:"site_counter,omitempty"`
	AnywhereCounter string `json:"anywhere_counter,omitempty"`
}

// StepTold is one question of a decision.
type StepTold struct {
	Question string `json:"question"`
	Yes      bool   `json:"yes"`
	Because  string `json:"because"`
}

// PassTold is what a visitor carries, as this node would read it now.
type PassTold struct {
	Visitor    string     `json:"visitor"` // id
	Owner      string     `json:"owner"`   // id of the node of this site that counts the visitor
	Arrival    time.Time  `json:"arrival"`
	LastPoll   *time.Time `json:"last_poll,omitempty"`
	Refresh    float64    `json:"refresh_seconds,omitempty"` // that was told
	AcceptedAt *time.Time `json:"accepted_at,omitempty"`     // not left out: the visitor was let in
	LeaseEnd   *time.Time `json:"lease_end,omitempty"`
	Anchor     string     `json:"anchor,omitempty"` // id of the node that has the session's place
	Ticket     string     `json:"ticket,omitempty"` // of that node: start, block and number
	Borrowed   bool       `json:"borrowed,omitempty"`
	Over       bool       `json:"over,omitempty"` // the site has ended the session
	// Exchanged says that this pass stands for one that waited and was redeemed lately.
	Exchanged bool `json:"exchanged,omitempty"`
}

// PlaceTold is where somebody stands who waits.
type PlaceTold struct {
	At       time.Time `json:"at"`                 // in the order of the queue
	Position int       `json:"position,omitempty"` // 1 is next; left out: there is no order
	Ahead    int       `json:"ahead"`
	Reserved bool      `json:"reserved"` // before the cursor
	Minutes  int       `json:"estimated_minutes,omitempty"`
}

// ViewTold is what all visitors of a room are decided by at this node now.
type ViewTold struct {
	BuiltAt           time.Time  `json:"built_at"`
	Active            int        `json:"active"`
	TotalActiveUsers  int        `json:"total_active_users"`
	AdmittedLast60s   int        `json:"admitted_per_minute"`
	NewUsersPerMinute int        `json:"new_users_per_minute"`
	Waiting           int        `json:"waiting"`
	Slots             int        `json:"slots"`
	SlotsNew          int        `json:"slots_new"` // those beyond all who wait
	OpenToNew         bool       `json:"open_to_new"`
	Cursor            *time.Time `json:"cursor,omitempty"` // before whom it is everybody's turn
	Edge              *time.Time `json:"edge,omitempty"`   // before whom anybody may try
	AllowWaiting      int        `json:"allow_waiting"`    // this node's: for whoever's turn it is
	AllowNew          int        `json:"allow_new"`        // for all others
	AllowAnywhere     int        `json:"allow_anywhere"`   // that no site has a claim to
	Sites             []Share    `json:"sites"`
}

// Share is a site's part of a room.
type Share struct {
	Site     string `json:"site"`
	Active   int    `json:"active"`
	Waiting  int    `json:"waiting"`
	Reserved int    `json:"reserved"` // slots for who waits there
	New      int    `json:"new"`      // slots for who comes there
	Held     int    `json:"held"`     // rights to places that its nodes own
	Frozen   bool   `json:"frozen"`
}

var actions = map[room.Action]string{
	room.Enter: "enter", room.Ask: "ask", room.Apply: "apply", room.Compete: "compete",
	room.Wait: "wait", room.TooEarly: "too_early", room.Refuse: "refuse",
}

// Explain says how a request with that pass would be decided now; known is as for Decide.
// It changes nothing. Any goroutine may call it.
func (r *Room) Explain(p Pass, known bool, now time.Time) Explanation {
	w := r.view.Load()
	if !known || p.Room != r.id {
		p = Pass{}
	}
	exchanged := false
	if known && !p.Accepted() && p.Visitor != (VisitorID{}) {
		if q, ok := r.core.stripes.ofVisitor(p.Visitor).redeemedAs(visitKey{r.id, p.Visitor}, now); ok {
			p, exchanged = q, true
		}
	}
	vis, over := r.visitor(w, &p), !p.Ticket.IsZero() && r.over(p.Ticket)
	if over {
		vis = room.Visitor{}
	}
	e := room.Explain(w.View, vis, now)
	s := w.Settings
	x := Explanation{
		At: now.UTC(), Node: r.core.self.Node.String(), Site: r.core.site, Room: r.id.String(), Name: s.Name, Policy: string(s.Policy), DryRun: s.DryRun,
		Action: actions[e.Decision.Action], Reason: e.Reason, View: viewTold(w.View),
		SiteCounter: nameOf(w.ask[ticket.SiteCounter]), AnywhereCounter: nameOf(w.ask[ticket.AnywhereCounter]),
	}
	if over {
		x.Steps = append(x.Steps, StepTold{"has the site ended the session?", true, "its answer said so; the visitor is new"})
	}
	for _, step := range e.Steps {
		x.Steps = append(x.Steps, StepTold(step))
	}
	if step, is := r.ticketTold(w, e.Decision.Action, now); step.Question != "" {
		x.Steps = append(x.Steps, step)
		if is == refused {
			x.Action, x.Reason = actions[room.Wait], room.ReasonNodeHasNone
			if w.Slots <= 0 {
				x.Reason = room.ReasonNoPlace
			}
		}
	}
	if pl := e.Place; pl != nil {
		x.Place = &PlaceTold{At: pl.At.UTC(), Position: pl.Position, Ahead: pl.Ahead, Reserved: pl.Reserved, Minutes: pl.Minutes}
	}
	if p.Visitor != (VisitorID{}) {
		x.Pass = r.passTold(&p)
		x.Pass.Exchanged, x.Pass.Over = exchanged, over
	}
	if s.Policy == room.Escrow {
		x.Rights = r.rightsStatus()
	}
	return x
}

// ticketTold says whether whoever may have a ticket gets one, as far as this node can tell
// without taking it. There is no question for anybody else.
func (r *Room) ticketTold(w *view, action room.Action, now time.Time) (step StepTold, is outcome) {
	var of []class
	switch action {
	case room.Apply:
		of = []class{reserved}
	case room.Compete:
		of = []class{contested, anywhere}
	default:
		return step, granted
	}
	if e, byRights := w.tickets.(escrow); byRights {
		return r.rightTold(w, e.until[of[0]].Load(), now)
	}
	left := int64(0)
	for _, c := range of {
		here := w.from == nil || w.leads(scopeOf(c), r.core.self.Node)
		allowed := [classes]int{reserved: w.AllowWaiting, contested: w.AllowNew, anywhere: w.AllowAnywhere}[c]
		if !here && allowed > 0 {
			return StepTold{
				"does this node hand out the tickets itself?", false,
				fmt.Sprintf("node %s does, and is asked; %d lent by it are in stock here", nameOf(w.ask[scopeOf(c)]), w.from.inStock.Load()),
			}, asked
		}
		if here && now.Sub(w.BuiltAt) <= viewKept {
			left += max(0, w.upTo[c]-r.used[c].Load())
		}
	}
	is = granted
	if left == 0 {
		is = refused
	}
	return StepTold{"is a ticket left of those that the figures allowed?", left > 0, fmt.Sprintf("%d are, since %s", left, w.BuiltAt.UTC().Format(time.RFC3339Nano))}, is
}

// rightTold is ticketTold where a ticket needs a right. What others may lend is known to
// them alone; where the counts have no place left either, they have none.
func (r *Room) rightTold(w *view, until int64, now time.Time) (StepTold, outcome) {
	const question = "is a right free for a ticket?"
	is := r.Rights()
	own := max(0, min(is.Free.Places, is.Free.Rate))
	here := fmt.Sprintf("%d of this node are, and %d that others have lent to it", own, is.InStock)
	switch {
	case now.UnixNano() < until:
		return StepTold{question, false, fmt.Sprintf("none was a moment ago; it is tried again from %s on", time.Unix(0, until).UTC().Format(time.RFC3339Nano))}, refused
	case own+is.InStock > 0:
		return StepTold{question, true, here}, granted
	case w.Slots <= 0:
		return StepTold{question, false, here + "; all places are taken, or all of this minute were given"}, refused
	}
	return StepTold{question, false, fmt.Sprintf("%s; %d places are free by the counts, and node %s is asked for one", here, w.Slots, nameOf(w.ask[ticket.SiteCounter]))}, asked
}

func (r *Room) passTold(p *Pass) *PassTold {
	told := &PassTold{
		Visitor: hex.EncodeToString(p.Visitor[:]), Owner: nameOf(r.core.ownerNow(r.id, p.Visitor)), Arrival: p.Arrival.UTC(),
		LastPoll: moment(p.LastPoll), Refresh: p.Refresh.Seconds(), AcceptedAt: moment(p.AcceptedAt), LeaseEnd: moment(p.LeaseEnd),
		Borrowed: p.Borrowed,
	}
	if t := p.Ticket; !t.IsZero() {
		told.Anchor, told.Ticket = t.Anchor.String(), fmt.Sprintf("%d.%d.%d", t.Boot, t.Block, t.Seq)
	}
	return told
}

// ownerNow is owner for any goroutine.
func (c *Core) ownerNow(id crdt.RoomID, v VisitorID) crdt.NodeID {
	return room.Owner(c.key, id, v, *c.shownNodes.Load())
}

// moment returns nil for the zero time.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

func viewTold(v *room.View) ViewTold {
	told := ViewTold{
		BuiltAt: v.BuiltAt.UTC(), Active: v.Active, TotalActiveUsers: v.Settings.TotalActiveUsers,
		AdmittedLast60s: v.AdmittedLast60s, NewUsersPerMinute: v.Settings.NewUsersPerMinute, Waiting: v.Waiting,
		Slots: v.Slots, SlotsNew: v.SlotsNew, OpenToNew: v.OpenToNew, Cursor: moment(v.Cursor), Edge: moment(v.Edge),
		AllowWaiting: v.AllowWaiting, AllowNew: v.AllowNew, AllowAnywhere: v.AllowAnywhere, Sites: []Share{},
	}
	for _, p := range v.Sites {
		told.Sites = append(told.Sites, Share{Site: p.Name, Active: p.Active, Waiting: p.Waiting, Reserved: p.Reserved, New: p.New, Held: p.Held, Frozen: p.Frozen})
	}
	return told
}

// redeemedAs returns the pass that one that waited was exchanged for, if that is known.
func (s *stripe) redeemedAs(k visitKey, now time.Time) (p Pass, ok bool) {
	r := s.redeemedFrom(k, now)
	return r.pass, r.is == confirmed
}

// redeemedFrom returns what is known of a waiting pass. Unlike shown it does not have it be
// known for longer.
func (s *stripe) redeemedFrom(k visitKey, now time.Time) redeemed {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.redeemed.get(k); now.Before(r.until) {
		return r
	}
	return redeemed{}
}

// ErrUnknownVisitor says that a node knows nothing of a visitor.
var ErrUnknownVisitor = errors.New("no such visitor is known here: who waits is known to the node that counts them, and who is inside to the one that let them in; give the visitor's cookie instead")

// ExplainVisitor says how this node would decide about a visitor of whom it knows what
// they carry, because it counts them. It is called by one goroutine at a time, as Tick is.
func (c *Core) ExplainVisitor(id crdt.RoomID, v VisitorID, now time.Time) (Explanation, error) {
	r := c.keptAs(id)
	if r == nil || r.resting.Load() {
		return Explanation{}, fmt.Errorf("node: explain: room %s: %w", id, ErrUnknownRoom)
	}
	p, known := c.stripes.ofVisitor(v).redeemedAs(visitKey{r.id, v}, now)
	if !known {
		p, known = r.letInAs(v, now)
	}
	if at, waits := r.line.Find(v); !known && waits && !at.In {
		p, known = Pass{Visitor: v, Room: r.id, Arrival: at.Arrival, LastPoll: at.LastPoll, Refresh: at.Refresh}, true
	}
	if !known {
		return Explanation{}, fmt.Errorf("node: explain visitor %s: %w", hex.EncodeToString(v[:]), ErrUnknownVisitor)
	}
	return r.Explain(p, true, now), nil
}

// ExplainVisitor is Core.ExplainVisitor for any goroutine, while Run runs.
func (n *Node) ExplainVisitor(ctx context.Context, id crdt.RoomID, v VisitorID) (x Explanation, err error) {
	err = n.tell(ctx, func(c *Core, now time.Time) (err error) {
		x, err = c.ExplainVisitor(id, v, now)
		return err
	})
	return x, err
}

// ParseVisitorID reads a visitor's id, 32 hexadecimal digits.
func ParseVisitorID(s string) (id VisitorID, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("visitor %q: want %d hexadecimal digits", s, 2*len(id))
	}
	copy(id[:], b)
	return id, nil
}
