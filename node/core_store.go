package node

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/durable"
	"github.com/ropeline/ropeline/node/packed"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// What of a node has to be on disk: the rights of each room, each room an object
// of its own, and the facts. Core says what to write, and waits for word of it;
// whoever runs it brings the disk.

const rightsObject = "rights/" // and the room's id

// storing is the state of a node's disk, as the loop knows it.
type storing struct {
	found map[crdt.RoomID][]ticket.Put // what the last start left, of rooms not open yet, or not kept
	saved uint64                       // how far the facts on disk are, as MapParts has it

	over    []*Room         // are kept no longer: what is stored of them goes to found
	dropped []durable.Write // deletes what is stored of rooms that are gone, until it is durable

	forgotten []crdt.Part    // what is to be removed from the facts on disk, and what is to stand there in its place
	touched   []*Room        // may have something to write
	flying    bool           // a batch is under way
	drops     int            // how many of dropped are in it
	rooms     []*Room        // whose it is
	facts     factsBatches   // what is to be written of them; of the batch that is under way as well
	left      factsBatches   // what is left of it after that batch
	partsAt   uint64         // how far the facts on disk are then
	holds     crdt.LWWDigest // what is on disk then, as replica.Unkept has it

	renewAt    uint64         // partsAt of the facts that Stored has returned since a write failed; 0: it was not asked
	renewHolds crdt.LWWDigest // and what is on disk then
	failed     error          // a write failed, and no new store has come; nil: all is well
}

// load takes what an earlier start has written, and returns the facts of that, by the
// names of their parts.
func (s *storing) load(all []durable.Write) (facts map[string][]byte, err error) {
	s.found, facts = map[crdt.RoomID][]ticket.Put{}, map[string][]byte{}
	aside := map[string][]byte{}
	for _, w := range all {
		switch w.Object {
		case factsObject:
			facts[w.Key] = w.Value
			continue
		case asideObject:
			aside[w.Key] = w.Value
			continue
		}
		id, ok := strings.CutPrefix(w.Object, rightsObject)
		room, err := crdt.ParseRoomID(id)
		if !ok || err != nil {
			return nil, fmt.Errorf("stored object %q is none of a node's", w.Object)
		}
		s.found[room] = append(s.found[room], ticket.Put{Key: w.Key, Value: w.Value})
	}
	s.facts = goOn(facts, aside)
	return facts, nil
}

// restoreFacts reads the facts that are stored. A node that has written none has never been ready, and may have heard a part of
// what there is before somebody knew of it: it begins once more.
func (c *Core) restoreFacts(stored map[string][]byte) error {
	s := &c.storing
	var parts []crdt.Part
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		parts = append(parts, crdt.Part{Name: name, Value: stored[name]})
	}
	if _, wrote := stored[crdt.PartOfWriter(c.self.Node)]; !wrote && c.start.key != nil { // by which a node that is ready writes at once
		for _, p := range parts {
			s.forgotten = append(s.forgotten, crdt.Part{Name: p.Name})
		}
		s.facts.step = takeAside
		return nil
	}
	err := c.replica.RestoreMap(parts)
	_, s.saved = c.replica.MapParts(0)
	s.partsAt = s.saved
	return err
}

// takeStored takes up what an earlier start has written. What cannot be read is an
// error here, and not later.
func (c *Core) takeStored(all []durable.Write, configured []room.Settings) error {
	s := &c.storing
	facts, err := s.load(all)
	if err != nil {
		return err
	}
	c.facts = newFacts(c.replica, c.leaveOut)
	if err := c.restoreFacts(facts); err != nil {
		return fmt.Errorf("stored facts: %w", err)
	}
	s.holds = c.replica.Unkept()
	c.replica.Keep(s.holds)
	c.facts.update()
	rooms := map[crdt.RoomID]*Room{}
	if c.catalog != nil {
		configured = c.startRooms()
	}
	for _, s := range configured {
		id := c.facts.current(s.ID)
		again := id != s.ID
		if s.ID = id; rooms[id] != nil {
			return fmt.Errorf("room id %s is used twice", id)
		}
		rooms[id] = newRoom(c, s)
		rooms[id].again, rooms[id].cataloged = again, c.catalog != nil
	}
	c.setRooms(rooms)
	for _, r := range c.order {
		if _, _, err := ticket.OpenRights(r.rightsConfig(r.settings.Load().SessionDuration), s.found[r.id], time.Time{}); err != nil {
			return fmt.Errorf("stored rights of room %s: %w", r.id, err)
		}
	}
	return nil
}

func rightsOf(id crdt.RoomID) string { return rightsObject + hex.EncodeToString(id[:]) }

func (s *storing) touch(r *Room) {
	if !r.touched && !r.gone {
		r.touched = true
		s.touched = append(s.touched, r)
	}
}

// Writes returns the next batch for the store, or nil: there is nothing to write, or a
// batch is under way, or the store has failed. Each object's part of it belongs
// together: it is to be written as a whole, or not at all. It is to be called after
// every Tick, Receive, Flush and Written. What waits for the batch leaves with Written.
func (c *Core) Writes() []durable.Write {
	s := &c.storing
	if s.flying || s.failed != nil {
		return nil
	}
	s.putAside()
	behind := !s.facts.done()
	out, facts := append([]durable.Write(nil), s.dropped...), c.factWrites()
	s.drops, behind = len(out), behind || !s.left.done()
	var later []*Room
	for _, r := range s.touched {
		if r.touched = false; r.gone {
			continue
		}
		r.mu.Lock()
		if behind && r.rights.Receives() { // what came with it are facts, and may come later: they are not to be forgotten alone
			r.mu.Unlock()
			later = append(later, r)
			continue
		}
		puts := r.rights.Writes()
		r.mu.Unlock()
		if len(puts) == 0 {
			continue
		}
		s.rooms = append(s.rooms, r)
		out = appendPuts(out, r.id, puts)
	}
	s.touched = s.touched[:0]
	for _, r := range later {
		s.touch(r)
	}
	out = append(out, facts...)
	s.flying = len(out) > 0
	return out
}

// putAside has what is stored of rooms that are kept no longer be among what was found. It is called while no
// batch is under way: what a room has not written by then is of no use.
func (s *storing) putAside() {
	for _, r := range s.over {
		r.gone = true
		r.mu.Lock()
		if puts := r.rights.Stored(); len(puts) > 0 {
			s.found[r.id] = puts
		}
		r.mu.Unlock()
	}
	s.over = nil
}

// drop has what is stored of a room be deleted.
func (s *storing) drop(id crdt.RoomID) {
	for _, p := range s.found[id] {
		s.dropped = append(s.dropped, durable.Write{Object: rightsOf(id), Key: p.Key})
	}
	packed.Delete(&s.found, id)
}

func appendPuts(out []durable.Write, id crdt.RoomID, puts []ticket.Put) []durable.Write {
	object := rightsOf(id)
	for _, p := range puts {
		out = append(out, durable.Write{Object: object, Key: p.Key, Value: p.Value})
	}
	return out
}

// factWrites returns facts that have changed since those on disk, as many as go in a batch.
func (c *Core) factWrites() (batch []durable.Write) {
	s := &c.storing
	if s.facts.done() {
		var parts []crdt.Part
		parts, s.partsAt = c.changedFacts()
		s.facts = newFactsBatches(parts)
	}
	if batch, s.left = s.facts.next(); len(batch) == 0 {
		s.factsWritten(c)
	}
	return batch
}

// factsWritten notes that a batch of facts is on disk.
func (s *storing) factsWritten(c *Core) {
	s.facts, s.left = s.left, factsBatches{}
	if s.facts.done() {
		s.saved = s.partsAt
		c.replica.Keep(s.holds)
	}
}

// changedFacts returns the parts of the map that have changed since those on disk, and how far the disk is with them.
// What is on disk is nowhere kept beside the map itself: it would take as much again.
func (c *Core) changedFacts() ([]crdt.Part, uint64) {
	s := &c.storing
	parts, at := c.replica.MapParts(s.saved)
	parts, s.forgotten = append(s.forgotten, parts...), nil
	s.holds = c.replica.Unkept()
	return parts, at
}

// Written says what became of the batch that Writes returned last: err is nil once
// it is durable. After an error nobody knows what is on disk: this node gives no
// ticket, lends and gives nothing and leads nothing, and Writes returns nil, until
// all that Stored returns is in a new store and StoreBack has said so. Visitors
// who are in go on.
func (c *Core) Written(err error, now time.Time) []Message {
	s := &c.storing
	rooms := s.rooms
	s.flying, s.rooms = false, nil
	for _, r := range rooms {
		r.mu.Lock()
		if err == nil {
			r.rights.Confirmed(now)
		} else {
			r.rights.Failed(now)
		}
		r.mu.Unlock()
		s.touch(r)
		r.wake()
	}
	if err != nil {
		s.renewAt = 0
		return c.storeFailed(err, now)
	}
	if s.dropped = s.dropped[s.drops:]; len(s.dropped) == 0 {
		s.dropped = nil
	}
	s.factsWritten(c)
	var out []Message
	for _, r := range rooms {
		out = append(out, r.confirmed(now)...)
	}
	return append(out, c.sendSpreads(now)...)
}

// Given returns how many tickets requests were given here since the start.
func (c *Core) Given() (n uint64) {
	for _, r := range c.order {
		for i := range r.used {
			n += uint64(r.used[i].Load())
		}
	}
	return n
}

// Stored returns the content of a new store in place of one that has failed: what is known
// to be durable of the rights, and the facts as they are now. Facts may be durable before
// rights are; those that have to wait for these are not made before.
func (c *Core) Stored() []durable.Write {
	s := &c.storing
	var out []durable.Write
	s.putAside()
	for _, r := range c.order {
		r.mu.Lock()
		if r.rights != nil {
			out = appendPuts(out, r.id, r.rights.Stored())
		}
		r.mu.Unlock()
	}
	for _, id := range slices.SortedFunc(maps.Keys(s.found), crdt.RoomID.Compare) {
		out = appendPuts(out, id, s.found[id])
	}
	var parts []crdt.Part
	parts, s.renewAt = c.replica.MapParts(0)
	s.renewHolds = c.replica.Unkept()
	for _, p := range parts {
		out = append(out, durable.Write{Object: factsObject, Key: p.Name, Value: p.Value})
	}
	return out
}

// StoreBack says that a new store holds what Stored returned, nothing less and
// nothing more, and that Writes may go on. If Stored was not asked since the write that
// failed, it is the old store that goes on, with what was written to it before.
func (c *Core) StoreBack(now time.Time) {
	s := &c.storing
	s.failed = nil
	if s.renewAt > 0 {
		s.facts = factsBatches{}
		s.saved, s.partsAt, s.holds = s.renewAt, s.renewAt, s.renewHolds
		c.replica.Keep(s.holds)
	}
	for _, r := range c.order {
		r.mu.Lock()
		if r.rights != nil {
			r.rights.StoreBack(now)
			s.touch(r)
		}
		r.mu.Unlock()
		r.hasNews()
	}
	c.health.store.set(nil)
}

// AppendSnapshot appends all counts, which are worth keeping over a restart.
func (c *Core) AppendSnapshot(dst []byte) ([]byte, error) { return c.replica.AppendSnapshot(dst) }

// Restore takes up what an earlier start has kept, oldest first. It is called before anything
// else.
func (c *Core) Restore(kept [][]byte, now time.Time) error { return c.replica.Restore(kept, now) }
