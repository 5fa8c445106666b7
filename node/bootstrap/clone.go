package bootstrap

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// Clone returns a copy that shares nothing that changes, for searches that go on from one
// state in several ways. Both take random bytes from the same source.
func (m *Machine) Clone() *Machine {
	c := *m
	c.said, c.before, c.conflict = maps.Clone(m.said), maps.Clone(m.before), maps.Clone(m.conflict)
	return &c
}

// AppendState appends all by which this machine goes on at now to dst, with times counted from
// now: two of the same Config that append the same do the same from then on. What Waits says is
// for people only, and left out.
func (m *Machine) AppendState(dst []byte, now time.Time) []byte {
	s := state{dst}
	s.disk(m.disk)
	s.flag(m.next != nil)
	if m.next != nil {
		s.disk(*m.next)
	}
	s.flag(m.known)
	s.id(m.came)
	s.id(m.returned)
	s.flag(m.lost != nil)
	if m.lost != nil || m.Done() {
		return s.out // it answers at most
	}
	s.out = binary.BigEndian.AppendUint64(s.out, m.nonce)
	s.since(m.asked, now, askEvery)
	if !m.proposes() && !m.mints() {
		return s.out // it takes what it is told, whenever that is and whoever else there is
	}
	s.since(m.began, now, Quiet)
	s.since(m.round, now, Round)
	s.flag(m.round.Sub(m.began) >= Quiet)
	s.num(len(m.said))
	for _, id := range ordered(m.said) {
		s.id(id)
		s.text(m.said[id].name)
		s.id(crdt.NodeID(m.said[id].mesh))
	}
	s.num(len(m.peers))
	for _, p := range slices.SortedFunc(slices.Values(m.peers), func(a, b Peer) int { return a.ID.Compare(b.ID) }) {
		s.id(p.ID)
		s.text(p.Name)
	}
	if m.proposes() { // to all others what stands against them is for people, too
		s.num(len(m.conflict))
		for _, id := range ordered(m.conflict) {
			s.id(id)
		}
	}
	return s.out
}

// state writes what a machine is at one moment.
type state struct{ out []byte }

func (s *state) num(n int)         { s.out = binary.AppendVarint(s.out, int64(n)) }
func (s *state) id(id crdt.NodeID) { s.out = append(s.out, id[:]...) }
func (s *state) text(t string)     { s.num(len(t)); s.out = append(s.out, t...) }

func (s *state) flag(on bool) {
	if on {
		s.num(1)
	} else {
		s.num(0)
	}
}

// since writes how long ago t was, as far as that makes a difference.
func (s *state) since(t, now time.Time, most time.Duration) {
	if t.IsZero() {
		s.num(-1)
		return
	}
	s.num(int(min(now.Sub(t), most)))
}

func (s *state) disk(d Disk) {
	s.out = AppendRecord(s.out, d.Record) // which says how long it is
	s.flag(d.Minted)
}

func ordered[V any](of map[crdt.NodeID]V) []crdt.NodeID {
	return slices.SortedFunc(maps.Keys(of), crdt.NodeID.Compare)
}
