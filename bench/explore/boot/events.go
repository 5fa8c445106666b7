package boot

import (
	"fmt"
	"slices"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/bootstrap"
)

// each calls yield for every world that follows from one, until it returns false. Events that
// change nothing are left out.
func (m *model) each(w world, yield func(e move, next world, broken string) bool) {
	for i := range m.hosts {
		for _, e := range m.events(w, i) {
			next := m.after(w, i, e)
			if next == w {
				continue
			}
			switch e.do {
			case restarts:
				next.restarts++
			case empties:
				next.losses++
			}
			broken := m.broken(next, i)
			if !yield(move{int8(i), e}, next, broken) {
				return
			}
		}
	}
}

// after returns what becomes of a world when a host does something. What nodes but the first one
// ask is sent at once: a question may arrive at any later time as well, and they go by no clock.
func (m *model) after(w world, i int, e event) world {
	before := m.states.All[w.hosts[i]]
	o := m.do(w.hosts[i], e)
	w.hosts[i] = o.to
	if h := m.states.All[o.to]; h.disk.Minted && !w.hasMinted() {
		w.minted = m.self(h)
	}
	for k := m.cfg.Named; k < len(m.hosts); k++ { // that only one of these has heard of it matters
		if minter := m.states.All[w.hosts[k]].disk.Record.Minter; w.hasMinted() && minter == w.minted {
			w.hosts[k] = m.do(w.hosts[k], event{do: learns}).to
		}
	}
	sent := o.sent
	for k := 1; k < len(m.hosts); k++ {
		if k == i || e.do == empties {
			sent = slices.Concat(sent, m.ask(&w, k))
		}
	}
	w.messages = m.mail(w, before, o.renewed, sent)
	return w
}

// ask has a host tick, and returns what it asks all others.
func (m *model) ask(w *world, i int) []int32 {
	o := m.do(w.hosts[i], event{ticks, m.reach(m.others(m.at(*w), i, most))})
	w.hosts[i] = o.to
	return o.sent
}

// events returns what may happen to a host.
func (m *model) events(w world, i int) (all []event) {
	h := m.states.All[w.hosts[i]]
	if int(w.losses) < m.cfg.Losses && m.spare(w, i) {
		all = append(all, event{do: empties})
	}
	if int(w.restarts) < m.cfg.Restarts {
		all = append(all, event{do: restarts})
	}
	if _, writes := h.m.Write(); writes {
		return append(all, event{do: saves}) // and says and hears nothing until then
	}
	for _, n := range m.sets.All[w.messages] {
		if x := m.messages.All[n]; x.to == m.self(h) && !m.plain(x) {
			all = append(all, event{receives, n})
		}
	}
	if i > 0 || h.m.Done() {
		return all
	}
	if m.unasked(w) {
		all = append(all, event{do: moment})
	}
	all = append(all, event{do: passes}, event{ticks, m.reach(m.others(m.at(w), i, most))})
	if m.cfg.Joins {
		all = append(all, event{misses, m.reach(m.others(m.at(w), i, m.cfg.Named))})
	}
	return all
}

// unasked reports whether the first node has asked only some others in this round: to ask again
// makes a difference only then.
func (m *model) unasked(w world) bool {
	first, asked := m.self(m.states.All[w.hosts[0]]), 0
	for _, n := range m.sets.All[w.messages] {
		if x := m.messages.All[n]; x.from == first && !x.answer && x.Nonce == fresh {
			asked++
		}
	}
	return asked > 0 && asked < len(m.hosts)-1
}

// spare reports whether a disk may be lost: of named nodes, the disk of one that was never lost,
// or that has joined since then, is left once anything is minted.
func (m *model) spare(w world, i int) bool {
	if i >= m.cfg.Named || !w.hasMinted() {
		return true
	}
	for k := range m.cfg.Named {
		if o := m.states.All[w.hosts[k]]; k != i && (o.lost == 0 || !o.empty()) {
			return true
		}
	}
	return false
}

// others returns all other hosts, up to a place.
func (m *model) others(now []*host, i, end int) (peers []bootstrap.Peer) {
	for k, o := range now {
		if k != i && k < end {
			peers = append(peers, bootstrap.Peer{ID: m.self(o), Name: m.hosts[k]})
		}
	}
	return peers
}

// reach returns the number of a list of peers.
func (m *model) reach(peers []bootstrap.Peer) int32 {
	var key []byte
	for _, p := range peers {
		key = append(key, p.ID[:]...)
	}
	return m.peers.Number(key, peers)
}

// at returns the hosts of a world.
func (m *model) at(w world) []*host {
	now := make([]*host, len(m.hosts))
	for i := range now {
		now[i] = m.states.All[w.hosts[i]]
	}
	return now
}

func (w world) hasMinted() bool { return w.minted != crdt.NodeID{} }

// broken says what is wrong since a host has done something; "": nothing.
func (m *model) broken(w world, i int) string {
	h := m.states.All[w.hosts[i]]
	if self := m.self(h); h.disk.Minted && w.minted != self {
		return fmt.Sprintf("%s mints as node %s in mesh %s, and another one has minted before", m.hosts[i], self, h.disk.Record.Mesh)
	}
	if h.m.Lost() != nil {
		return h.m.Lost().Error()
	}
	for k, n := range w.hosts[:len(m.hosts)] {
		o := m.states.All[n]
		if r := o.disk.Record; r.Mesh == h.disk.Record.Mesh && !r.Same(h.disk.Record) {
			return fmt.Sprintf("%s and %s hold other records of mesh %s", m.hosts[i], m.hosts[k], r.Mesh)
		} else if i < m.cfg.Named && k < m.cfg.Named && !h.empty() && !o.empty() && r.Mesh != h.disk.Record.Mesh {
			return fmt.Sprintf("%s holds %s, and %s holds %s: neither mesh will ever have all disks", m.hosts[i], m.held(h.disk.Record), m.hosts[k], m.held(r))
		}
		if h.m.Returned() != (crdt.NodeID{}) && m.self(o) == h.m.Disk().Record.Minter {
			return fmt.Sprintf("%s says that the disk of %s is gone, which is there", m.hosts[i], m.hosts[k])
		}
	}
	return ""
}

// text says what happened.
func (m *model) text(x move) string {
	say := m.hosts[x.at] + ": " + names[x.do]
	if x.do == receives {
		say += " " + m.said(m.messages.All[x.with])
	}
	return say
}

// said says what a message is. No two that are on their way at once are said alike.
func (m *model) said(x message) string {
	what, when := "question", ""
	if x.answer {
		what = "answer"
	}
	if x.answer && x.Echo == 0 || !x.answer && x.Nonce == 0 {
		when = "late "
	}
	return fmt.Sprintf("%s%s of %s, which holds %s", when, what, m.disk(x.from), m.held(x.Holds))
}

// held says of which mesh a record is, by who promised it.
func (m *model) held(r bootstrap.Record) string {
	if r.Mesh.IsZero() {
		return "nothing"
	}
	return "the mesh of " + m.disk(r.Minter)
}

// disk names a disk: the host, and after the first one which of its disks.
func (m *model) disk(id crdt.NodeID) string {
	if id[2] == 0 {
		return m.hosts[id[1]]
	}
	return fmt.Sprintf("%s's disk %d", m.hosts[id[1]], id[2]+1)
}
