package node

import (
	"errors"
	"fmt"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// How settings come to hold while requests run.

// ErrUnknownRoom is wrapped by the error about a room that a node does not keep.
var ErrUnknownRoom = errors.New("no such room")

// Configure takes new settings of a room over, whichever they are; only the id
// must be one that the node keeps. Requests may run meanwhile: each is decided by
// the old settings or the new ones. Sessions keep the end they have, and who waits
// keeps the place. Settings that do not hold together are an error and change
// nothing; for its parts see room.Settings.Validate.
//
// Where rights are the limit, all nodes follow the new limits. As long as Noted does
// not say that these are on disk, a crash may undo that, and whoever asked for them is
// not to be told that they hold.
func (c *Core) Configure(s room.Settings, now time.Time) error {
	r := c.keptAs(s.ID)
	if r == nil || r.resting.Load() {
		return fmt.Errorf("node: settings of room %s: %w", s.ID, ErrUnknownRoom)
	}
	if c.toldAll() {
		return fmt.Errorf("node: settings of room %s: %w", s.ID, ErrLeaving)
	}
	s.ID = r.id // which another has taken the place of
	s = s.WithDefaults()
	if err := s.Validate(); err != nil {
		return fmt.Errorf("node: settings of room %s: %w", s.ID, err)
	}
	for _, o := range c.order {
		if o == r || o.resting.Load() {
			continue
		}
		t := o.settings.Load()
		if e, ok := room.Shared(t, &s); ok {
			return fmt.Errorf("node: settings of room %s: room %q has host %q and path %q", s.ID, t.Name, e.Host, e.Path)
		}
	}
	s = s.Clone()
	if s.Policy == room.Escrow && c.open.Load() {
		if err := c.facts.set(roomKey(factLimits, r.id), encodeAmount(limitsOf(&s)), now); err != nil {
			return fmt.Errorf("node: settings of room %s: %w", s.ID, err)
		}
	}
	r.configure(s, now)
	c.routes.Store(newRoutes(c.order))
	return nil
}

// configure takes settings over that are the room's own by now.
func (r *Room) configure(s room.Settings, now time.Time) {
	if c := r.core; c.open.Load() && s.Policy == room.Escrow {
		c.setFact(roomKey(factSession, r.id), encodeSession(s.SessionDuration), now)
	}
	r.settings.Store(&s)
	r.line.SetSettings(&s)
	r.look(now)
}

// adopt has what is not decided from the view follow the settings that hold.
func (r *Room) adopt(s *room.Settings, now time.Time) {
	if s.SessionDuration != r.session {
		// Leases keep their end, so a dead node's may run for as long as they did.
		if now.Before(r.longUntil.time()) {
			r.long = max(r.long, r.session)
		} else {
			r.long = r.session
		}
		if until := now.Add(r.session); until.After(r.longUntil.time()) {
			r.longUntil = briefOf(until)
		}
		r.session = s.SessionDuration
	}
	if !now.Before(r.longUntil.time()) {
		r.long = 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rights != nil {
		r.rights.SetSession(s.SessionDuration, now)
		r.rights.SetRenewal(!s.DisableSessionRenewal)
		r.rights.SetUnlimited(!byRights(s))
		r.lasts = r.lasting()
	}
}

// every returns after how long a room's view is built anew without news.
func (r *Room) every() time.Duration {
	switch {
	case r.still:
		return stillInterval
	case r.idle:
		return idleInterval
	}
	return viewInterval
}

// movesEvery returns how often the mover looks at a room.
func (r *Room) movesEvery() time.Duration {
	if r.still {
		return stillInterval
	}
	return viewInterval
}

// outdated reports whether a room's view is older than others' use of what it allows may be. That of a room in
// which all is still is as good as new while the loop comes round: whatever happens has it be built again.
func (r *Room) outdated(w *view, now time.Time) bool {
	at := w.BuiltAt
	if r.still && r.core.ticked.After(at) {
		at = r.core.ticked
	}
	return now.Sub(at) > viewKept
}

// stale reports whether a room's view has to be built anew.
func (r *Room) stale(now time.Time) bool {
	viewed := r.viewed.time()
	return r.news || r.dated || now.Sub(viewed) >= r.every() || now.Before(viewed) || r.eventOver(now)
}

// eventOver reports whether an event has made an end of a room's view.
func (r *Room) eventOver(now time.Time) bool { return r.until != 0 && !now.Before(r.until.time()) }
