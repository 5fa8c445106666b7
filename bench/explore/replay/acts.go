package replay

import (
	"errors"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/room"
)

// What operators do, and when.

// patience is how long a moment is waited for.
const patience = 6 * time.Second

// begin has the first act come now.
func (w *world) begin() {
	w.begun = true
	w.result.cuts(len(w.nodes), len(w.h.Steps))
	w.act()
}

// act does what is next, and all that comes together with it.
func (w *world) act() {
	s := w.h.Steps[w.next]
	w.next++
	for _, t := range w.h.Twists {
		if t.What == Cut && t.Nth == w.next {
			w.cutOff(w.nodes[t.From], t)
		}
	}
	w.note("%s", s)
	w.minted, w.taken, w.lastAt = false, false, w.now
	if err := w.do(s); err != nil {
		w.note("refused: %v", err)
		w.result.Refused = w.next
	}
	if w.next == len(w.h.Steps) {
		return
	}
	w.waits = true
	switch w.h.Steps[w.next].When {
	case Now:
		w.waits = false
		w.act()
		return
	case Soon:
		w.after(time.Second, w.goOn(w.next))
	case Settled:
		w.after(5*time.Second, w.goOn(w.next))
	case Minted, Taken:
		next := w.next
		wait := patience
		if w.rooms > firstRoom {
			wait += cooling
		}
		w.after(wait, func() {
			if w.waits && w.next == next {
				w.result.Unmet = next + 1
				w.goOn(next)()
			}
		})
	}
}

// goOn does the next act, if that is still the one that is meant.
func (w *world) goOn(next int) func() {
	return func() {
		if w.waits && w.next == next {
			w.waits = false
			w.act()
		}
	}
}

// step does the next act if its moment is there.
func (w *world) step() {
	if !w.waits || w.now == w.lastAt {
		return
	}
	if when := w.h.Steps[w.next].When; when == Minted && w.minted || when == Taken && w.taken {
		w.goOn(w.next)()
	}
}

func (w *world) cutOff(m *machine, t Twist) {
	w.note("%s", t)
	w.result.twisted()
	m.cut = true
	w.judge.disturbed()
	w.changed()
	w.after(4*time.Second, func() {
		m.cut = false
		w.judge.disturbed()
		w.changed()
	})
}

var (
	errDown   = errors.New("the node is down")
	errGone   = errors.New("the node is gone for good")
	errNoRoom = errors.New("the node does not know the room")
)

func (w *world) do(s Step) error {
	m := w.nodes[s.Node]
	if s.Act != Dead && m.core == nil {
		return errDown
	}
	defer w.store(m)
	switch s.Act {
	case Raise:
		return w.edit(m, func(r *room.Settings) { *w.limit(r) += firstCap })
	case Lower:
		return w.edit(m, func(r *room.Settings) { *w.limit(r) = max(2, *w.limit(r)/2) })
	case Policy:
		return w.edit(m, func(r *room.Settings) {
			if r.Policy == room.Escrow {
				r.Policy = room.Counter
			} else {
				r.Policy = room.Escrow
			}
		})
	case Remake:
		return w.remake(m)
	case Leave:
		err := m.core.Leave(w.time())
		m.goes = m.goes || err == nil
		return err
	case Kill:
		w.stop(m)
	case Restart:
		w.stop(m)
		w.after(time.Second, func() { w.startAgain(m) })
	case Dead:
		return w.lose(m, w.nodes[s.Told])
	}
	return nil
}

// edit changes the room at a node, as the API does.
func (w *world) edit(m *machine, change func(*room.Settings)) error {
	var is *catalog.Room
	var before int
	err := m.core.Edit(func(c *catalog.Catalog) ([]catalog.Write, error) {
		was := c.Room(w.room)
		if was == nil {
			return nil, errNoRoom
		}
		is = was.Clone()
		before = *w.limit(&is.Settings)
		change(&is.Settings)
		if err := c.Check(is, nil); err != nil {
			return nil, err
		}
		return catalog.Writes(was, is), nil
	}, w.time())
	if err != nil {
		return err
	}
	if n := *w.limit(&is.Settings); n != before {
		w.judge.set(w.room, int64(n), m)
	} else {
		w.judge.policy(is.Settings.Policy, m)
	}
	return nil
}

// remake deletes the room and makes another one, under an id of its own.
func (w *world) remake(m *machine) error {
	next := crdt.RoomID{w.rooms + 1}
	err := m.core.Edit(func(c *catalog.Catalog) ([]catalog.Write, error) {
		was := c.Room(w.room)
		if was == nil {
			return nil, errNoRoom
		}
		is := &catalog.Room{Zone: catalog.DefaultZone, Created: w.time().Truncate(time.Millisecond), Settings: w.settings(next)}
		return append(catalog.Writes(was, nil), catalog.Writes(nil, is)...), nil
	}, w.time())
	if err != nil {
		return err
	}
	w.rooms++
	w.judge.set(w.room, 0, m) // nobody has to be let in any more
	w.room = next
	w.judge.first(next, firstCap)
	return nil
}

// lose takes a node's disk away for good, and has another one told as soon as membership
// has noticed.
func (w *world) lose(m, told *machine) error {
	switch {
	case m.gone:
		return errGone
	case told.gone || told.core == nil:
		return errDown
	}
	m.gone = true
	if m.core != nil {
		w.stop(m)
	} else if m.alone {
		w.judge.unsure = true
	}
	clear(m.disk)
	var declare func()
	declare = func() {
		if told.core == nil || w.begun && w.homing {
			return // heal tells another one
		}
		w.judge.disturbed()
		if w.isCut() || !told.core.Ready() || told.core.DeclareDead(m.id, w.time()) != nil {
			w.after(250*time.Millisecond, declare)
			return
		}
		w.note("node %d is told that node %d is dead", told.no+1, m.no+1)
		w.store(told)
	}
	w.after(goneSeen+tick, declare)
	return nil
}

// isCut reports whether a node is cut off. Nobody is declared dead meanwhile: that is not
// for a mesh of which not all can be reached.
func (w *world) isCut() bool {
	return slices.ContainsFunc(w.nodes, func(m *machine) bool { return m.cut })
}

// bury has all nodes that run told of those that are gone: who was told first may be lost
// itself.
func (w *world) bury() {
	for _, m := range w.nodes {
		for _, o := range w.nodes {
			if m.gone && o.core != nil && o.core.Ready() {
				_ = o.core.DeclareDead(m.id, w.time()) // it refuses what it knows better
				w.store(o)
			}
		}
	}
}
