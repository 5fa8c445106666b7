package node

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/ticket"
)

// How long sessions with a node's tickets may last is a fact: whoever recovers its
// rights has to keep them aside for that long.

// said is what a node tells of a room that it keeps.
type said struct {
	limits  ticket.Amount // that its configuration said at its last start; zero: none
	session time.Duration // the longest one with a ticket of that node that runs, or may begin
}

const saidVersion = 2

// encode writes [version, places, rate, ms].
func (s said) encode() []byte {
	var buf bytes.Buffer
	e := msgpack.NewEncoder(&buf)
	e.UseCompactInts(true)
	e.EncodeArrayLen(4)
	e.EncodeUint(saidVersion)
	e.EncodeInt(s.limits.Places)
	e.EncodeInt(s.limits.Rate)
	e.EncodeInt(s.session.Milliseconds())
	return buf.Bytes()
}

func decodeSaid(value []byte) (s said, err error) {
	r := bytes.NewReader(value)
	d := msgpack.NewDecoder(r)
	if err := expectHeader(d, 4, saidVersion); err != nil {
		return s, err
	}
	var ms int64
	err = errors.Join(decodeInto(&s.limits.Places, d.DecodeInt64), decodeInto(&s.limits.Rate, d.DecodeInt64), decodeInto(&ms, d.DecodeInt64))
	a := s.limits
	if err != nil || r.Len() > 0 || max(a.Places, a.Rate) > maxAmount || min(a.Places, a.Rate, ms) < 0 || ms > maxSession.Milliseconds() {
		return said{}, fmt.Errorf("%w: what a node says of a room", errMalformed)
	}
	s.session = time.Duration(ms) * time.Millisecond
	return s, nil
}

// lasting returns the longest session with a ticket of this node that runs, or that
// may begin by what it has been told, now or for events. r.mu is held.
func (r *Room) lasting() (longest time.Duration) {
	s := r.settings.Load()
	longest = s.SessionDuration
	if r.rights != nil {
		longest = max(longest, r.rights.Longest())
	}
	for i := range s.Events {
		if d := s.Events[i].SessionDuration; d != nil {
			longest = max(longest, *d)
		}
	}
	return longest
}

// tell has it be known what this node says of the room.
func (r *Room) tell(now time.Time) {
	kind, says := factTold, said{r.configured, r.lasts}
	if r.resting.Load() {
		kind, says.limits = factRests, ticket.Amount{}
	}
	r.core.setFact(roomNodeKey(kind, r.id, r.core.self.Node), says.encode(), now)
	r.saidLasts = r.lasts
}

// tellLedger is tell in a room that rights do not limit here at the moment: this node has a ledger of it from before,
// or gets one. That has to be known, or others take it for one that never had the room, and so has how long sessions
// with its tickets last. What its configuration says counts once rights limit the room.
func (r *Room) tellLedger(now time.Time) {
	c := r.core
	key, says := roomNodeKey(factTold, r.id, c.self.Node), said{r.configured, r.lasts}
	last, _, ok := c.facts.replica.Get(key)
	if before, err := decodeSaid(last); ok && err == nil {
		says.limits = before.limits
	}
	if c.facts.sites[c.self.Node] != c.site {
		c.setFact(nodeKey(factNode, c.self.Node), []byte(c.site), now)
	}
	c.setFact(key, says.encode(), now)
	r.saidLasts = r.lasts
	c.leave.seeking.rooms = nil // who agrees to take over now may not have heard of it
}

// longestSession returns how long sessions with tickets of lost nodes last at most: as
// those have said, as the mesh was told last, or as this node has been.
func (r *Room) longestSession(f *roomFacts, dead []crdt.NodeID) time.Duration {
	longest := max(f.session, r.lasting())
	for _, id := range dead {
		longest = max(longest, f.kept.of(id))
	}
	return longest
}
