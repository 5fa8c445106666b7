package node

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/ticket"
)

// States of a node that does not run.
const (
	StateDown       = "down"       // its capacity comes back when it is started
	StateWaiting    = "waiting"    // declared dead; not all nodes have said what they dealt with it
	StateRecovering = "recovering" // another node has its capacity, and cannot use it yet
)

// DownStatus is a node whose capacity cannot be used, as all nodes know it together.
type DownStatus struct {
	Node    string           `json:"node"` // id
	Name    string           `json:"name"`
	Site    string           `json:"site"`
	State   string           `json:"state"` // down, waiting or recovering
	Since   time.Time        `json:"since"` // its last sign of life, or when it was missed
	Rooms   []DownRoomStatus `json:"rooms"`
	Message string           `json:"message"` // all this in words, with what to do

	// WaitsFor are names of the nodes whose word is missing, if it is waiting.
	WaitsFor []string `json:"waits_for,omitempty"`
	// UsableAt is when the last of its capacity can be used, if that is known: when it is
	// recovering, exactly; when it is waiting, no sooner than that.
	UsableAt *time.Time `json:"usable_at,omitempty"`
	// Order is what to give the command declare-dead: the name, or the id if the name is another's, too.
	Order string `json:"declare_dead"`
}

// DownRoomStatus is what such a node has of one room.
type DownRoomStatus struct {
	Room        string       `json:"room"` // id
	Name        string       `json:"name"`
	Capacity    AmountStatus `json:"capacity"`
	Minted      AmountStatus `json:"minted"`      // by all nodes
	Approximate bool         `json:"approximate"` // of the places: not all nodes have said what they know, or several are down and dealt with each other
	// Sessions of it are still counted as active. Whoever of them has gone on at another node is
	// counted twice until they are not.
	Sessions int64 `json:"sessions"`
}

// DownView is what DownStatuses puts together.
type DownView struct {
	Self    crdt.NodeID
	Reports map[crdt.NodeID][]Down // what each node says that runs, this one's among them
	Running []crdt.NodeID          // all that run
	Names   map[crdt.NodeID]string // as membership has them
}

// DownStatuses returns the nodes whose capacity cannot be used, by site and name.
func (v *DownView) DownStatuses(now time.Time) []DownStatus {
	by := map[crdt.NodeID]*downSum{}
	for _, from := range v.Running {
		for i := range v.Reports[from] {
			d := &v.Reports[from][i]
			if _, runs := slices.BinarySearchFunc(v.sortedRunning(), d.Node, compareNodes); runs {
				continue // it is back, and not all have noticed
			}
			s := by[d.Node]
			if s == nil {
				s = &downSum{rooms: map[crdt.RoomID]*downRoomSum{}}
				by[d.Node] = s
			}
			s.take(from, d, now)
		}
	}
	v.settle(by)
	all := []DownStatus{}
	for id, s := range by {
		if st, matters := v.status(id, s, now); matters {
			all = append(all, st)
		}
	}
	slices.SortFunc(all, func(a, b DownStatus) int {
		return cmp.Or(strings.Compare(a.Site, b.Site), strings.Compare(a.Name, b.Name), strings.Compare(a.Node, b.Node))
	})
	return all
}

func (v *DownView) sortedRunning() []crdt.NodeID {
	if !slices.IsSortedFunc(v.Running, compareNodes) {
		v.Running = slices.SortedFunc(slices.Values(v.Running), compareNodes)
	}
	return v.Running
}

// downSum is what all nodes say of one that is down.
type downSum struct {
	Down  // the names, and so on, as far as any node knows them
	told  int
	rooms map[crdt.RoomID]*downRoomSum
}

type downRoomSum struct {
	DownRoom
	exact bool
	heard bool // of who has recovered it
	is    ticket.Amount
}

// usable reports whether another node has the capacity and can use it.
func (r *downRoomSum) usable() bool { return r.By != (crdt.NodeID{}) && r.Until.IsZero() && r.heard }

func (s *downSum) take(from crdt.NodeID, d *Down, now time.Time) {
	s.told++
	s.Node, s.Declared = d.Node, s.Declared || d.Declared
	s.Name, s.Site = cmp.Or(s.Name, d.Name), cmp.Or(s.Site, d.Site)
	if s.Since.IsZero() || d.Since.Before(s.Since) {
		s.Since = d.Since
	}
	for i := range d.Rooms {
		of := &d.Rooms[i]
		r := s.rooms[of.Room]
		if r == nil {
			r = &downRoomSum{DownRoom: DownRoom{Room: of.Room, Papers: of.Papers}}
			s.rooms[of.Room] = r
		}
		r.Name, r.Minted = cmp.Or(r.Name, of.Name), r.Minted.Max(of.Minted)
		r.Dealt = r.Dealt.Add(of.Dealt)
		if of.HeldKnown && !r.HeldKnown {
			r.Held, r.HeldKnown = of.Held, true
		}
		r.Sessions = max(r.Sessions, of.Sessions)
		if of.By != (crdt.NodeID{}) {
			r.By, r.heard = of.By, r.heard || of.By == from
		}
		if of.Until.After(now) {
			r.Until = of.Until
		}
		r.LockSpan = max(r.LockSpan, of.LockSpan)
		if of.By == from || len(of.WaitsFor) > 0 && (len(r.WaitsFor) == 0 || len(of.WaitsFor) < len(r.WaitsFor)) {
			r.WaitsFor = of.WaitsFor
		}
	}
}

// downTotal is what all nodes that are down have of one room.
type downTotal struct {
	n, unknown int // nodes; of them, those whose rows nobody knows
	sum, held  ticket.Amount
}

// settle works out what each node has of each room. What nodes that are down have dealt with
// each other nobody else knows, so that only their sum is exact: each has what its row said last,
// and those whose rows nobody knows, since their whole site is down, the same part of the rest.
func (v *DownView) settle(by map[crdt.NodeID]*downSum) {
	totals := map[crdt.RoomID]downTotal{}
	order := slices.SortedFunc(maps.Keys(by), compareNodes)
	for _, node := range order {
		for id, r := range by[node].rooms {
			r.is = r.Papers.Add(r.Dealt)
			if r.usable() {
				continue
			}
			t := totals[id]
			t.n, t.sum, t.held = t.n+1, t.sum.Add(r.is), t.held.Add(r.Held)
			if !r.HeldKnown {
				t.unknown++
			}
			totals[id] = t
		}
	}
	rest := map[crdt.RoomID]downTotal{}
	maps.Copy(rest, totals)
	for _, node := range order {
		s := by[node]
		for id, r := range s.rooms {
			t := totals[id]
			r.exact = s.told >= len(v.Running) && (t.n == 1 || t.unknown == 0 && t.held.Places == t.sum.Places)
			switch left := rest[id]; {
			case r.usable() || t.n == 1:
			case r.HeldKnown:
				r.is = r.Held
			default:
				over := left.sum.Sub(left.held)
				r.is = ticket.Amount{Places: over.Places / int64(left.unknown), Rate: over.Rate / int64(left.unknown)}
				left.sum, left.unknown = left.sum.Sub(r.is), left.unknown-1
				rest[id] = left
			}
			r.is = r.is.Max(ticket.Amount{})
		}
	}
}

// status returns the state of one node that is down; false if nothing of it is unusable.
func (v *DownView) status(id crdt.NodeID, s *downSum, now time.Time) (st DownStatus, matters bool) {
	st = DownStatus{Node: id.String(), Name: cmp.Or(v.Names[id], s.Name), Site: s.Site, Since: s.Since.UTC(), Rooms: []DownRoomStatus{}}
	recovered, until, waits := true, time.Time{}, map[string]bool{}
	for _, r := range s.rooms {
		if r.usable() || r.is.IsZero() && r.Sessions == 0 {
			continue
		}
		st.Rooms = append(st.Rooms, DownRoomStatus{
			Room: r.Room.String(), Name: r.Name, Capacity: amountStatus(r.is), Minted: amountStatus(r.Minted),
			Approximate: !r.exact, Sessions: r.Sessions,
		})
		matters = matters || !r.is.IsZero()
		at := r.Until
		if r.By == (crdt.NodeID{}) {
			recovered, at = false, now.Add(r.LockSpan)
			for _, w := range r.WaitsFor {
				waits[v.name(w)] = true
			}
		}
		if at.After(until) {
			until = at
		}
	}
	slices.SortFunc(st.Rooms, func(a, b DownRoomStatus) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Room, b.Room))
	})
	switch {
	case !s.Declared:
		st.State = StateDown
	case !recovered:
		st.State = StateWaiting
	default:
		st.State = StateRecovering
	}
	if until.IsZero() {
		until = now
	}
	if s.Declared {
		st.UsableAt = new(until.UTC())
		for name := range waits {
			st.WaitsFor = append(st.WaitsFor, name)
		}
		slices.Sort(st.WaitsFor)
	}
	st.Order = v.order(id, st.Name)
	st.Message = st.say(now)
	return st, matters
}

func (v *DownView) name(id crdt.NodeID) string {
	return cmp.Or(v.Names[id], id.String()[:8])
}

// order returns what names a node to a command.
func (v *DownView) order(id crdt.NodeID, name string) string {
	if name == "" {
		return id.String()
	}
	for other, is := range v.Names {
		if is == name && other != id {
			return id.String()
		}
	}
	for _, all := range v.Reports {
		for i := range all {
			if all[i].Name == name && all[i].Node != id {
				return id.String()
			}
		}
	}
	return name
}

// capacity says how much it is: of one room "102 of 240 capacity", of several by their names.
func (st *DownStatus) capacity() string {
	var all []string
	for _, r := range st.Rooms {
		about := ""
		if r.Approximate {
			about = "about "
		}
		of := fmt.Sprintf("%s%d of %d capacity", about, r.Capacity.Places, r.Minted.Places)
		if len(st.Rooms) > 1 {
			of += " of " + r.Name
		}
		all = append(all, of)
	}
	const most = 3
	if n := len(all) - most; n > 0 {
		all = append(all[:most], fmt.Sprintf("and more in %d other rooms", n))
	}
	return strings.Join(all, ", ")
}

// say puts it into words.
func (st *DownStatus) say(now time.Time) string {
	name := cmp.Or(st.Name, st.Node)
	switch st.State {
	case StateDown:
		return fmt.Sprintf("%s is down: %s unusable; start it again, or declare it dead: ropeline node declare-dead %s --gone-for-good", name, st.capacity(), st.Order)
	case StateWaiting:
		if len(st.WaitsFor) == 0 {
			return fmt.Sprintf("recovering %s's %s: usable in about %s", name, st.capacity(), inSeconds(*st.UsableAt, now))
		}
		return fmt.Sprintf("recovering %s's %s: waiting for %s to confirm; then usable in about %s", name, st.capacity(), strings.Join(st.WaitsFor, ", "), inSeconds(*st.UsableAt, now))
	}
	return fmt.Sprintf("recovering %s's %s: usable in %s", name, st.capacity(), inSeconds(*st.UsableAt, now))
}

// inSeconds says how long it is until a moment, in whole seconds.
func inSeconds(at, now time.Time) string {
	d := max(0, at.Sub(now))
	whole := d.Truncate(time.Second)
	if whole < d {
		whole += time.Second
	}
	if whole < time.Minute {
		return fmt.Sprintf("%d s", whole/time.Second)
	}
	if whole < 2*time.Hour {
		return fmt.Sprintf("%d min %d s", whole/time.Minute, whole%time.Minute/time.Second)
	}
	return fmt.Sprintf("%d h %d min", whole/time.Hour, whole%time.Hour/time.Minute)
}
