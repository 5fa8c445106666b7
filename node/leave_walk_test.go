package node

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// leaveWalk takes whole nodes with two rooms through leaves, lost disks, stops and declarations in random
// order, while messages of some kinds are lost and disks are slow.
type leaveWalk struct {
	*world
	*rand.Rand
	rooms  []room.Settings
	limits []ticket.Amount // the most that there ever was to be
	ends   []ticket.Amount // what there is to be in the end
	begun  time.Time
	lost   map[*machine]bool // have no disk any more
	left   map[*machine]bool
	events []string
	wrong  string // the first thing that was
	forget bool   // nodes look often for what they may forget
	wild   bool   // who has left may be declared dead where that is not known; nodes may not hear, or not be heard
}

// TestLeaveWalks: at no moment more is held than the limits, and in the end all of it is, and who leaves
// has got away.
func TestLeaveWalks(t *testing.T) {
	walkAll(t, 60, false)
}

// TestWildLeaveWalks: the same, where operators declare dead who has left, and what one node says, or hears,
// is lost.
func TestWildLeaveWalks(t *testing.T) {
	walkAll(t, 40, true)
}

func walkAll(t *testing.T, walks uint64, wild bool) {
	if testing.Short() {
		walks /= 4
	}
	for seed := range walks {
		w := &leaveWalk{Rand: rand.New(rand.NewPCG(seed+1, 77)), lost: map[*machine]bool{}, left: map[*machine]bool{}, wild: wild}
		if w.walk(t); w.wrong != "" {
			t.Errorf("seed %d: %s\n%s", seed+1, w.wrong, strings.Join(w.events, "\n"))
		}
	}
}

// walk takes one walk to its end.
func (w *leaveWalk) walk(t *testing.T) {
	other := escrowSettings(60)
	other.ID, other.Path = crdt.RoomID{8}, "/other"
	w.rooms = []room.Settings{escrowSettings(90), other}
	if w.wild {
		third := escrowSettings(30)
		third.ID, third.Path = crdt.RoomID{9}, "/third"
		w.rooms = append(w.rooms, third)
	}
	for _, s := range w.rooms {
		w.ends = append(w.ends, ticket.Amount{Places: int64(s.TotalActiveUsers), Rate: int64(s.NewUsersPerMinute)})
		w.limits = append(w.limits, ticket.Amount{Places: int64(s.TotalActiveUsers), Rate: int64(s.NewUsersPerMinute)})
	}
	w.world = newStoppedWorld(t)
	w.world.more, w.world.keys = w.rooms[1:], w.forget
	w.world.begin(w.rooms[0], []string{"a", "a", "a", "a", "a"}[:3+w.IntN(3)]...)
	w.world.run(5 * time.Second)
	w.begun = w.now
	steps := 30
	if w.wild {
		steps = 45
	}
	for range steps {
		if w.wild && w.IntN(8) == 0 {
			w.setLimit()
		}
		w.step()
		w.wait(time.Duration(1+w.IntN(30)) * 100 * time.Millisecond)
		if w.wrong != "" {
			return
		}
	}
	w.settle()
}

// setLimit has an operator change the limit of a room.
func (w *leaveWalk) setLimit() {
	s := w.staying()
	if len(s) == 0 {
		return
	}
	i, m := w.IntN(len(w.rooms)), w.pick(s)
	a := ticket.Amount{Places: 20 + w.Int64N(120), Rate: 5000 + w.Int64N(10000)}
	m.core.setFact(roomKey(factLimits, w.rooms[i].ID), encodeAmount(a), w.now)
	w.limits[i] = w.limits[i].Max(a)
	w.note("%d sets the limit of room %d to %v", w.number(m), i, a)
}

func (w *leaveWalk) note(format string, a ...any) {
	w.events = append(w.events, fmt.Sprintf("%6.2f ", w.now.Sub(w.begun).Seconds())+fmt.Sprintf(format, a...))
}

func (w *leaveWalk) number(m *machine) int { return slices.Index(w.nodes, m) }

func (w *leaveWalk) pick(of []*machine) *machine { return of[w.IntN(len(of))] }

// up are the machines that run.
func (w *leaveWalk) up() (all []*machine) {
	for _, m := range w.nodes {
		if m.core != nil {
			all = append(all, m)
		}
	}
	return all
}

// staying run, are ready and neither leave nor look for somebody to leave to.
func (w *leaveWalk) staying() (all []*machine) {
	for _, m := range w.up() {
		if m.core.Ready() && !m.core.leave.on && !m.core.leave.seeking.on {
			all = append(all, m)
		}
	}
	return all
}

// wait runs the world, ends who has left, and looks whether no more is held than the limits.
func (w *leaveWalk) wait(d time.Duration) {
	for end := w.now.Add(d); w.now.Before(end) && w.wrong == ""; {
		w.world.run(50 * time.Millisecond)
		if w.forget {
			w.look()
		}
		for _, m := range w.up() {
			if m.core.Left() {
				w.note("%d has left to %d", w.number(m), w.number(w.machine(m.core.leave.heir)))
				w.kill(m)
				w.left[m] = true
			}
		}
		for i, limit := range w.limits {
			if sum := w.heldAll(w.rooms[i].ID); sum.Max(limit) != limit {
				w.wrong = fmt.Sprintf("room %d: %v are held, of %v", i, sum, limit)
			}
		}
	}
}

// step has one thing happen.
func (w *leaveWalk) step() {
	switch x := w.IntN(100); {
	case x < 20:
		w.give()
	case x < 32:
		w.leaveHalfWay()
	case x < 40:
		w.leave()
	case x < 55:
		w.loseMessages()
	case x < 63:
		w.lose = nil
		w.note("no messages are lost any more")
	case x < 70:
		m := w.pick(w.nodes)
		m.disk.delay = []time.Duration{0, 300 * time.Millisecond, 3 * time.Second}[w.IntN(3)]
		w.note("the disk of %d takes %v", w.number(m), m.disk.delay)
	case x < 76:
		if up := w.up(); len(up) > 1 {
			m := w.pick(up)
			w.kill(m)
			if w.wild {
				m.snapshot = nil // the last one is older
			}
			w.note("%d is killed", w.number(m))
		}
	case x < 82:
		w.startAll()
	case x < 90:
		if s := w.staying(); len(s) > 1 {
			if m := w.pick(w.up()); len(s) > 2 || !slices.Contains(s, m) {
				w.loseDisk(m)
			}
		}
	case x < 96:
		w.declare()
	case len(w.nodes) < 7:
		m := &machine{id: crdt.NodeID{byte(1 + w.IntN(200)), 0xbb, byte(len(w.nodes))}, site: "a"}
		w.nodes = append(w.nodes, m)
		w.start(m, w.rooms[0])
		w.note("%d joins", w.number(m))
	}
}

func (w *leaveWalk) give() {
	s := w.staying()
	if len(s) == 0 {
		return
	}
	from, to, i := w.pick(s), w.pick(w.nodes), w.IntN(len(w.rooms))
	if from == to || w.lost[to] || w.left[to] {
		return
	}
	from.core.rooms[w.rooms[i].ID].give(to.id, ticket.Amount{Places: 1 + w.Int64N(9), Rate: 50}, w.now)
	w.post(from, nil)
	w.note("%d gives to %d in room %d", w.number(from), w.number(to), i)
}

func (w *leaveWalk) leave() {
	if s := w.staying(); len(s) > 2 {
		if m := w.pick(s); m.core.Leave(w.now) == nil {
			w.note("%d leaves", w.number(m))
		}
	}
}

// leaveHalfWay has a node leave of which the heir gets one room or none for a while, and then the heir
// leave or be lost, or the node itself.
func (w *leaveWalk) leaveHalfWay() {
	s := w.staying()
	if len(s) < 3 {
		return
	}
	m, late, none, unheard := w.pick(s), w.rooms[w.IntN(len(w.rooms))].ID, w.IntN(3) == 0, w.IntN(3) == 0
	w.lose = func(l letter) bool {
		h, err := ticket.DecodeHandover(l.m.Payload)
		return l.m.Kind == kindHandover && (err != nil || none || h.Room == late) || unheard && l.m.Kind == kindReceived
	}
	if m.core.Leave(w.now) != nil {
		return
	}
	for n := 0; n < 40 && m.core != nil && !m.core.leave.on; n++ {
		w.wait(50 * time.Millisecond)
	}
	if m.core == nil || !m.core.leave.on {
		return
	}
	heir := w.machine(m.core.leave.heir)
	w.note("%d leaves to %d; late are all rooms: %v, or room %s", w.number(m), w.number(heir), none, late)
	w.wait(time.Duration(w.IntN(40)) * 100 * time.Millisecond)
	switch x := w.IntN(5); {
	case heir.core == nil:
		return
	case x == 0 && heir.core.Leave(w.now) == nil:
		w.note("%d leaves", w.number(heir))
	case (x == 1 || x == 2) && len(w.staying()) > 1:
		w.loseDisk(heir)
	case x == 3 && m.core != nil:
		w.loseDisk(m)
	}
	w.wait(time.Duration(w.IntN(20)) * 100 * time.Millisecond)
	if w.IntN(2) == 0 {
		w.declare()
	}
}

func (w *leaveWalk) loseMessages() {
	kind := []uint8{kindTransfer, kindHandover, kindReceived, kindReplica}[w.IntN(4)]
	late, part, who := w.rooms[w.IntN(len(w.rooms))].ID, w.IntN(3), w.pick(w.nodes).id
	w.note("messages of kind %d are lost: part %d, room %s, node %s", kind, part, late, who)
	w.lose = func(l letter) bool {
		if l.m.Kind != kind {
			return false
		}
		if kind == kindHandover && part > 0 {
			h, err := ticket.DecodeHandover(l.m.Payload)
			return err != nil || h.Room == late
		}
		if w.wild && kind == kindReplica {
			return l.from == who && part != 1 || l.to == who && part != 2
		}
		return part == 0 || l.from == who || l.to == who
	}
}

func (w *leaveWalk) loseDisk(m *machine) {
	w.lostFor(m)
	w.lost[m] = true
	w.note("%d is lost", w.number(m))
}

// declare has all that are lost declared dead at one node that runs.
func (w *leaveWalk) declare() {
	up := w.up()
	if len(up) == 0 {
		return
	}
	by := w.pick(up)
	for _, m := range w.nodes {
		if (w.lost[m] || w.wild && w.left[m]) && by.core.DeclareDead(m.id, w.now) == nil {
			w.note("%d is declared dead at %d", w.number(m), w.number(by))
		}
	}
}

func (w *leaveWalk) startAll() {
	for _, m := range w.nodes {
		if m.core == nil && !w.lost[m] && !w.left[m] {
			w.start(m, w.rooms[0])
			w.note("%d starts", w.number(m))
		}
	}
}

// settle lets everything arrive, starts who may be, and has the lost declared dead.
func (w *leaveWalk) settle() {
	w.lose = nil
	w.note("all is well from now on")
	for n := range 60 {
		if s := w.staying(); w.wild && n > 5 && n < 20 && len(s) > 0 {
			for i := range w.rooms {
				s[0].core.setFact(roomKey(factLimits, w.rooms[i].ID), encodeAmount(w.ends[i]), w.now)
			}
		}
		for _, m := range w.nodes {
			m.disk.delay = 0
		}
		w.startAll()
		if w.wait(5 * time.Second); w.wrong != "" {
			return
		}
		if s := w.staying(); len(s) > 0 {
			for _, m := range w.nodes {
				if w.lost[m] {
					_ = s[0].core.DeclareDead(m.id, w.now) // it may be declared dead, or have left
				}
			}
		}
	}
	for i, limit := range w.ends {
		if sum := w.heldAll(w.rooms[i].ID); sum != limit {
			w.wrong = fmt.Sprintf("room %d: %v are held in the end, want %v", i, sum, limit)
		}
	}
	for _, m := range w.up() {
		if m.core.leave.on && len(w.staying()) > 0 {
			w.wrong = fmt.Sprintf("%d does not get away", w.number(m))
		}
	}
}
