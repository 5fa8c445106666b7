package node

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/packed"
	"github.com/ropeline/ropeline/node/ticket"
)

// How facts are read: key by key, as they change. There may be a hundred thousand of them, and
// the loop waits for it.

// update reads what has changed in the map. What does not decode is nobody's fact: it is as if
// there was nothing.
func (f *facts) update() {
	now := f.replica.MapChanges()
	if f.reading > 0 && now == f.at {
		return
	}
	f.reading++
	if f.reading == 1 {
		f.nodes, f.catalog = 1, 1
	}
	f.news = true
	rooms := map[crdt.RoomID]struct{}{}
	for key := range f.replica.MapChanged(f.at) {
		if id, ok := f.take(key); ok {
			rooms[id] = struct{}{}
		}
	}
	f.at = now
	for id := range rooms {
		f.fresh[id] = struct{}{}
		r := f.rooms[id]
		if r == nil {
			continue
		}
		r.reading = f.reading
		r.takeFinals()
		if r.empty() {
			packed.Delete(&f.rooms, id)
			f.nodes = f.reading // nothing is left that could have the number
		}
	}
	f.hear()
}

// hear notes what is heard by now of whoever wrote it.
func (f *facts) hear() {
	for key, at := range f.unheard {
		if f.replica.HoldsUpTo(at) {
			packed.Delete(&f.unheard, key)
			if kind, _, _ := strings.Cut(key, "/"); kind != factMinted {
				f.nodes = f.reading
			}
		}
	}
}

// unheardRooms returns the rooms of which something minted is known from others than who minted it.
func (f *facts) unheardRooms() map[crdt.RoomID]bool {
	rooms := map[crdt.RoomID]bool{}
	for key := range f.unheard {
		if kind, rest, _ := strings.Cut(key, "/"); kind == factMinted {
			name, _, _ := strings.Cut(rest, "/")
			if id, err := crdt.ParseRoomID(name); err == nil {
				rooms[id] = true
			}
		}
	}
	return rooms
}

// take reads one fact, or that it is gone, and returns the room that it is of, if it is of one. Each
// fills a part of its own, so their order does not matter.
func (f *facts) take(key string) (room crdt.RoomID, ok bool) {
	if catalog.IsKey(key) {
		f.catalog = f.reading
		return room, false
	}
	value, at, there := f.replica.Get(key)
	kind, rest, _ := strings.Cut(key, "/")
	name, of, _ := strings.Cut(rest, "/")
	switch kind {
	case factMinted, factLeft, factOver:
		if packed.Delete(&f.unheard, key); there && !f.replica.HoldsUpTo(at) {
			f.unheard[key] = at
		}
	}
	switch kind {
	case factLimits, factSession, factMinter, factMinted, factTold, factRests, factRetired, factFinal, factKnew, factWord, factRecovered, factClosed:
		if room, err := crdt.ParseRoomID(name); err == nil && (there || f.rooms[room] != nil) {
			f.takeRoom(kind, room, of, value)
			return room, true
		}
		return room, false
	case factForgot:
		if id, err := crdt.ParseNodeID(name); err == nil && !f.takeForgot(id, value) {
			return room, false // it changes nothing for rooms
		}
	case factCame, factNode, factName, factLeft, factDead:
		if id, err := crdt.ParseNodeID(name); err == nil {
			f.takeNode(kind, id, of, value, there)
		}
	}
	f.nodes = f.reading
	return room, false
}

// takeForgot takes what a node has told of those that are gone, and reports whether rounds count otherwise by it.
func (f *facts) takeForgot(id crdt.NodeID, value []byte) bool {
	was := f.forgot[id].rounds
	is, err := decodeForgot(value)
	keepFact(&f.forgot, id, is, err == nil)
	return was != is.rounds
}

func (f *facts) takeNode(kind string, id crdt.NodeID, of string, value []byte, there bool) {
	switch kind {
	case factCame:
		keepFact(&f.came, id, string(value), there)
	case factNode:
		keepFact(&f.sites, id, string(value), there)
	case factName:
		keepFact(&f.names, id, string(value), there)
	case factLeft:
		heir, ok := nodeIn(value)
		keepFact(&f.left, id, heir, ok && heir != id)
	case factDead:
		heir, err := crdt.ParseNodeID(of)
		if err != nil || heir == id {
			return
		}
		named := slices.DeleteFunc(f.named[id], func(o crdt.NodeID) bool { return o == heir })
		if there {
			named = append(named, heir)
		}
		if keepFact(&f.named, id, named, len(named) > 0); len(named) > 0 {
			f.dead[id] = slices.MinFunc(named, compareNodes)
		} else {
			packed.Delete(&f.dead, id)
		}
	}
}

// keepFact has a map hold something, or nothing.
func keepFact[V any](m *map[crdt.NodeID]V, of crdt.NodeID, is V, there bool) {
	if there {
		(*m)[of] = is
	} else {
		packed.Delete(m, of)
	}
}

// takeRoom takes one fact about a room; a nil value: it is gone.
func (f *facts) takeRoom(kind string, id crdt.RoomID, of string, value []byte) {
	r := f.rooms[id]
	if r == nil {
		r = &roomFacts{}
		f.rooms[id] = r
	}
	switch kind {
	case factLimits:
		a, err := decodeAmount(value)
		if r.limits = a; err != nil || a.Places <= 0 || a.Rate <= 0 {
			r.limits = ticket.Amount{}
		}
	case factSession:
		ms, err := strconv.ParseInt(string(value), 10, 64)
		if r.session = time.Duration(ms) * time.Millisecond; err != nil || ms <= 0 || ms > maxSession.Milliseconds() {
			r.session = 0
		}
	case factMinter:
		node, ok := nodeIn(value)
		if r.minter = node; !ok {
			r.minter = crdt.NodeID{}
		}
	case factRetired:
		r.retired = value != nil
	case factWord:
		r.takeWord(of, value)
	default:
		if node, err := crdt.ParseNodeID(of); err == nil {
			f.takeOf(r, kind, id, node, value)
		}
	}
}

// takeOf takes one fact about a node in a room.
func (f *facts) takeOf(r *roomFacts, kind string, id crdt.RoomID, node crdt.NodeID, value []byte) {
	switch kind {
	case factMinted:
		a, err := decodeAmount(value)
		r.by.keep(node, a, err == nil)
	case factTold, factRests: // it may have come to rest, or to be configured
		longest, any := time.Duration(0), false
		for _, kind := range []string{factTold, factRests} {
			value, _, there := f.replica.Get(roomNodeKey(kind, id, node))
			any = any || there
			if s, err := decodeSaid(value); there && err == nil {
				longest = max(longest, s.session)
			}
		}
		r.kept.keep(node, longest, any)
	case factFinal:
		final, err := ticket.DecodeFinal(value)
		if packed.Delete(&r.finals, node); err == nil && final.Node == node {
			noteFact(&r.finals, node, final)
		}
	case factClosed:
		closings, err := ticket.DecodeClosings(value[:max(0, len(value)-codeSize)])
		r.closings.keep(node, closings, err == nil)
	case factKnew:
		told, err := ticket.DecodeTold(value)
		r.knew.keep(node, told, err == nil && value != nil)
	case factRecovered:
		packed.Delete(&r.took, node)
		if x, err := decodeRecovered(value); err == nil {
			noteFact(&r.took, node, x)
		}
	}
}

// takeWord takes what a node has said of a dead one.
func (r *roomFacts) takeWord(of string, value []byte) {
	is := func(w ticket.Word) bool { return of == w.Dead.String()+"/"+w.Node.String() }
	words := slices.DeleteFunc(slices.Clone(r.words), is)
	if w, err := ticket.DecodeWord(value); err == nil && is(w) {
		words = append(words, w)
		slices.SortFunc(words, func(a, b ticket.Word) int {
			return cmp.Or(compareNodes(a.Dead, b.Dead), compareNodes(a.Node, b.Node))
		})
	}
	r.words = words
}

// empty reports whether nothing is known of a room any more.
func (r *roomFacts) empty() bool {
	return !r.retired && r.bare()
}

// bare reports whether no more is known of a room than that it is gone for good, if that.
func (r *roomFacts) bare() bool {
	return r.limits.IsZero() && r.session == 0 && r.minter == crdt.NodeID{} && len(r.words) == 0 &&
		!r.by.any() && !r.kept.any() && !r.knew.any() && !r.closings.any() && len(r.finals)+len(r.took) == 0
}
