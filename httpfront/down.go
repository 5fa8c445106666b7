package httpfront

import (
	"time"

	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// While no origin of a site is healthy nobody new is sent there: they would get an error for the place that
// they waited for, and the site all their requests at the moment at which it comes back. Whoever waits
// keeps the place, and is counted as somebody who is away: other nodes, whose origins may be healthy, let in those who
// come next. Whoever is on the site meets its errors, and by an answer, or one to a probe, it is seen to be back. It then gets
// new visitors at a rate that grows (upstream.Recovery).

// decideOn has a room decide about somebody who comes with p, whom it is to hold if over says so, or if the site of the
// request is down. w gets the verdict.
func (w *waiting) decideOn(room Room, a *admitted, p *carried, over *askedLimit) {
	w.down = false
	if over != nil {
		w.verdict = room.Hold(node.Pass{}, true, w.now)
		return
	}
	state := recoveryFor(w.settings, a.site)
	if state == upstream.Up {
		w.verdict = room.Decide(p.Pass, p.known, w.now)
		return
	}
	g := &gated{room: room, group: a.site.group, refresh: w.settings.RefreshInterval, state: state, now: w.now}
	w.verdict, w.down = g.decide(p), state == upstream.Down
}

// recoveryFor returns how far a site is for the visitors of a room: Up where that does not hold them.
func recoveryFor(s *room.Settings, of *site) upstream.Recovery {
	if of == nil || s.AdmitsWhileDown || passesAll(s) {
		return upstream.Up
	}
	return of.group.Recovery(s.RefreshInterval)
}

// gated is a decision about a room whose site is down, or was lately.
type gated struct {
	room    Room
	group   *upstream.Group
	refresh time.Duration
	state   upstream.Recovery
	now     time.Time
}

func (g *gated) decide(p *carried) node.Verdict {
	waits := false
	if p.known && !p.Accepted() {
		waits = g.room.Standing(p.Pass, true, g.now) == node.Waits
	}
	inside := p.known && !waits && g.isInside(p)
	if !inside && !g.enters(waits) {
		return g.hold(p, waits)
	}
	v := g.room.Decide(p.Pass, p.known, g.now)
	isNew := v.Admit && (!inside || v.Pass.Visitor != p.Visitor)
	switch {
	case inside && isNew && !g.enters(false): // the session was over, as another node knew
		g.room.End(v.Pass, g.now)
		return g.room.Hold(node.Pass{}, g.counts(), g.now)
	case !inside && !isNew:
		g.group.Unused()
	}
	return v
}

// isInside reports whether a pass that does not wait is of a session, be it one that has ended.
func (g *gated) isInside(p *carried) bool {
	return p.Accepted() || g.room.Standing(p.Pass, true, g.now) == node.Inside
}

// enters reports whether somebody may be let in now, for which a permit is taken.
func (g *gated) enters(waited bool) bool {
	return g.state != upstream.Returning && g.group.Permit(g.refresh, !waited)
}

// counts reports whether those who are held count as waiting. While the site is down they would keep
// places free that other nodes could give.
func (g *gated) counts() bool { return g.state != upstream.Down }

func (g *gated) hold(p *carried, waits bool) node.Verdict {
	if !waits {
		return g.room.Hold(node.Pass{}, g.counts(), g.now)
	}
	return g.room.Hold(p.Pass, g.counts(), g.now)
}
