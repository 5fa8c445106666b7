package replay

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/room"
)

// What operators do.

var (
	errDown   = errors.New("the node is down")
	errGone   = errors.New("the node is gone for good")
	errNoRoom = errors.New("the node does not know the room")
)

// act takes a step.
func (w *world) act(i int) {
	for _, m := range w.nodes {
		if len(w.occasion(links, fmt.Sprint(m.no+1), true)) > 0 {
			w.cutOff(m)
		}
	}
	s := w.h.Steps[i]
	w.note("%s", s)
	w.minted, w.taken = false, false
	if err := w.do(s); err != nil {
		w.note("refused: %v", err)
		w.result.Useless = true
	}
}

func (w *world) cutOff(m *machine) {
	m.cut = true
	w.judge.disturbed()
	w.after(4*time.Second, func() {
		m.cut = false
		w.judge.disturbed()
	})
}

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
		w.restart(m)
	case Dead:
		return w.lose(m, w.nodes[s.Told])
	}
	return nil
}

// replace puts another room in the place of the one that operators mean, as the API does.
func (w *world) replace(m *machine, writes func(c *catalog.Catalog, was *catalog.Room) []catalog.Write) error {
	return m.core.Edit(func(c *catalog.Catalog) ([]catalog.Write, error) {
		if was := c.Room(w.room); was != nil {
			return writes(c, was), nil
		}
		return nil, errNoRoom
	}, w.time())
}

// edit changes the room at a node.
func (w *world) edit(m *machine, change func(*room.Settings)) error {
	var before int
	var is *catalog.Room
	err := w.replace(m, func(c *catalog.Catalog, was *catalog.Room) []catalog.Write {
		before, is = *w.limit(&was.Settings), was.Clone()
		change(&is.Settings)
		return c.Writes(was, is)
	})
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
	is := &catalog.Room{Zone: catalog.DefaultZone, Created: w.time().Truncate(time.Millisecond), Settings: w.settings(next)}
	err := w.replace(m, func(c *catalog.Catalog, was *catalog.Room) []catalog.Write {
		return append(c.Writes(was, nil), c.Writes(nil, is)...)
	})
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
	m.gone = true // which starts no more
	if m.core != nil {
		w.stop(m)
	} else if m.alone {
		w.judge.unsure = true
	}
	w.every(250*time.Millisecond, goneSeen+tick, func() bool {
		if told.core == nil || w.homing {
			return false // heal tells another one
		}
		w.judge.disturbed()
		// While a node is cut off nobody is declared dead: that is not for a mesh of which not all can be reached.
		cut := slices.ContainsFunc(w.nodes, func(m *machine) bool { return m.cut })
		return cut || !w.declare(m, told)
	})
	return nil
}

// declare has an operator tell a node that another one is dead, and reports whether it goes by that.
func (w *world) declare(m, told *machine) bool {
	if told.core == nil || !told.core.Ready() || told.core.DeclareDead(m.ID, w.time()) != nil {
		return false
	}
	w.note("node %d is told that node %d is dead", told.no+1, m.no+1)
	w.store(told)
	return true
}

// bury has all nodes that run told of those that are gone: who was told first may be lost
// itself.
func (w *world) bury() {
	for _, m := range w.nodes {
		for _, o := range w.nodes {
			if m.gone {
				w.declare(m, o) // which refuses what it knows better
			}
		}
	}
}
