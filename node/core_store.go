package node

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/durable"
	"github.com/ropeline/ropeline/node/ticket"
)

// What of a node has to be on disk: the rights of each room, each room an object
// of its own, and the facts. Core says what to write, and waits for word of it;
// whoever runs it brings the disk.

const (
	rightsObject = "rights/" // and the room's id
	factsObject  = "facts"

	// factsPart is the size of the parts in which facts are stored. A change of
	// one costs the writing of all parts behind it.
	factsPart = 32 << 10
)

// storing is the state of a node's disk, as the loop knows it.
type storing struct {
	found map[crdt.RoomID][]ticket.Put // what the last start left, of rooms not open yet, or not kept
	facts [][]byte                     // as they are on disk, by part
	saved uint64                       // MapChanges of the replica at that time

	touched []*Room // may have something to write
	flying  bool    // a batch is under way
	rooms   []*Room // whose it is
	next    [][]byte
	nextAt  uint64
	failed  error // a write failed, and no new store has come; nil: all is well
}

// load takes what an earlier start has written.
func (s *storing) load(all []durable.Write) error {
	s.found = map[crdt.RoomID][]ticket.Put{}
	parts := map[int][]byte{}
	for _, w := range all {
		if w.Object == factsObject {
			n, err := strconv.Atoi(w.Key)
			if err != nil || n < 0 || n >= len(all) {
				return fmt.Errorf("stored facts: key %q", w.Key)
			}
			parts[n] = w.Value
			continue
		}
		id, ok := strings.CutPrefix(w.Object, rightsObject)
		room, err := crdt.ParseRoomID(id)
		if !ok || err != nil {
			return fmt.Errorf("stored object %q is none of a node's", w.Object)
		}
		s.found[room] = append(s.found[room], ticket.Put{Key: w.Key, Value: w.Value})
	}
	for n := range len(parts) {
		if parts[n] == nil {
			return fmt.Errorf("stored facts: part %d is missing", n)
		}
		s.facts = append(s.facts, parts[n])
	}
	return nil
}

// takeStored takes up what an earlier start has written. What cannot be read is an
// error here, and not later.
func (c *Core) takeStored(all []durable.Write) error {
	s := &c.storing
	if err := s.load(all); err != nil {
		return err
	}
	c.facts = newFacts(c.replica)
	if len(s.facts) > 0 {
		if err := c.replica.RestoreMap(bytes.Join(s.facts, nil)); err != nil {
			return fmt.Errorf("stored facts: %w", err)
		}
		s.saved = c.replica.MapChanges()
	}
	for _, r := range c.order {
		if _, _, err := ticket.OpenRights(r.rightsConfig(), s.found[r.id], time.Time{}); err != nil {
			return fmt.Errorf("stored rights of room %s: %w", r.id, err)
		}
	}
	return nil
}

func rightsOf(id crdt.RoomID) string { return rightsObject + hex.EncodeToString(id[:]) }

func (s *storing) touch(r *Room) {
	if !r.touched {
		r.touched = true
		s.touched = append(s.touched, r)
	}
}

// Writes returns the next batch for the store, which belongs together, or nil:
// there is nothing to write, or a batch is under way, or the store has failed.
// It is to be called after every Tick, Receive, Flush and Written. What waits for
// the batch leaves with Written.
func (c *Core) Writes() []durable.Write {
	s := &c.storing
	if s.flying || s.failed != nil {
		return nil
	}
	var out []durable.Write
	for _, r := range s.touched {
		r.touched = false
		r.mu.Lock()
		puts := r.rights.Writes()
		r.mu.Unlock()
		if len(puts) == 0 {
			continue
		}
		s.rooms = append(s.rooms, r)
		out = appendPuts(out, r.id, puts)
	}
	s.touched = s.touched[:0]
	out = append(out, c.factWrites()...)
	s.flying = len(out) > 0
	return out
}

func appendPuts(out []durable.Write, id crdt.RoomID, puts []ticket.Put) []durable.Write {
	object := rightsOf(id)
	for _, p := range puts {
		out = append(out, durable.Write{Object: object, Key: p.Key, Value: p.Value})
	}
	return out
}

// factWrites returns the parts of the facts that differ from those on disk.
func (c *Core) factWrites() []durable.Write {
	s := &c.storing
	at := c.replica.MapChanges()
	if at == s.saved {
		return nil
	}
	parts, err := c.factParts()
	if err != nil {
		panic("node: facts do not encode: " + err.Error())
	}
	s.next, s.nextAt = parts, at
	var out []durable.Write
	for i := range max(len(parts), len(s.facts)) {
		switch {
		case i >= len(parts):
			out = append(out, durable.Write{Object: factsObject, Key: strconv.Itoa(i)})
		case i >= len(s.facts) || !bytes.Equal(parts[i], s.facts[i]):
			out = append(out, durable.Write{Object: factsObject, Key: strconv.Itoa(i), Value: parts[i]})
		}
	}
	return out
}

func (c *Core) factParts() ([][]byte, error) {
	all, err := c.replica.AppendMap(nil)
	if err != nil {
		return nil, err
	}
	return slices.Collect(slices.Chunk(all, factsPart)), nil
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
	}
	if err != nil {
		return c.storeFailed(err, now)
	}
	if s.next != nil {
		s.facts, s.saved, s.next = s.next, s.nextAt, nil
	}
	var out []Message
	for _, r := range rooms {
		out = append(out, r.confirmed(now)...)
	}
	return out
}

// Stored returns all of this node that is known to be durable: the content of a
// new store in place of one that has failed.
func (c *Core) Stored() []durable.Write {
	s := &c.storing
	var out []durable.Write
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
	for i, part := range s.facts {
		out = append(out, durable.Write{Object: factsObject, Key: strconv.Itoa(i), Value: part})
	}
	return out
}

// StoreBack says that a new store holds what Stored returned, nothing less and
// nothing more, and that Writes may go on.
func (c *Core) StoreBack(now time.Time) {
	s := &c.storing
	s.failed, s.next = nil, nil
	for _, r := range c.order {
		r.mu.Lock()
		if r.rights != nil {
			r.rights.StoreBack(now)
			s.touch(r)
		}
		r.mu.Unlock()
		r.news = true
	}
	c.health.store.set(nil)
}
