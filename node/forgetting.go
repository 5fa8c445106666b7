package node

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/catalog"
)

// What is forgotten of the last-writer map: deletions, once every node that exists has them on its disk, and had all
// that was written before. Each node does so by itself, and nobody sees it. A node that exists and is down, or cut off,
// holds that up until it is back, or has left, or is declared dead.

const (
	// surveyEvery is the time between two looks at what is on all disks, while there is anything to forget.
	surveyEvery = 2 * time.Minute
	// forgetAfter is for how long a deletion has been on all disks before it is forgotten. A node that joins
	// has heard what there is in less: see replica.Forgotten.
	forgetAfter = 10 * time.Minute
	// forgetPause is the time between two steps, of so many keys.
	forgetPause = time.Second
	forgetMost  = 4000
)

// ErrForgotten says that the other nodes have forgotten this one.
var ErrForgotten = errors.New("the other nodes go on without this one, and have forgotten what it does not know of: it has left, or was declared dead, or its data directory is an old copy; move the data directory away, and start as a new node (with a certificate for a new id, if certificates are your own)")

// forgetting is how far this node is with that.
type forgetting struct {
	looked  time.Time
	next    time.Time
	seen    []seenSettling            // oldest first
	steps   []func(time.Time)         // that are due about nodes that are gone
	gone    []goneSeen                // looks at what is known of nodes that are gone, oldest first
	without map[crdt.NodeID]time.Time // since when nothing is left of nodes that closed accounts name
	settled crdt.LWWDigest            // deletions up to here may be forgotten, and some are left; nil: none is
	upTo    time.Time                 // all that was written by then, at whichever node, is known here
	writers writers
}

// seenSettling is what was on all disks at a time.
type seenSettling struct {
	at time.Time
	is crdt.Settling
}

// forgetDeleted looks what is on all disks, and forgets what may be, step by step.
func (c *Core) forgetDeleted(now time.Time) {
	f := &c.forgetting
	if now.Before(f.next) && f.next.Sub(now) <= forgetPause {
		return
	}
	f.next = now.Add(forgetPause)
	if now.Sub(f.looked) >= surveyEvery || now.Before(f.looked) {
		if now.Sub(f.looked) > 2*surveyEvery {
			f.seen = nil // this node was stopped: it has yet to read what came before
		}
		f.looked = now
		c.lookForWriters(now)
		c.lookForSettled(now)
	}
	c.adoptSome(now)
	c.stepGone(now)
	if f.settled != nil {
		parts := c.replica.Forget(f.settled, forgetMost)
		if c.storing.forgotten = append(c.storing.forgotten, parts...); len(parts) == 0 {
			f.settled = nil
		}
	}
}

// lookForSettled notes what is on all disks, asks again, and finds out what may be forgotten.
func (c *Core) lookForSettled(now time.Time) {
	f := &c.forgetting
	gone, spent := c.goneRooms()
	departed := c.departed()
	if c.replica.Deleted() == 0 && len(gone)+len(spent)+len(departed) == 0 && !c.anyGone() && (c.catalog == nil || !c.catalog.orphans) {
		f.seen, f.gone = nil, nil
		return
	}
	is := c.replica.Settling(slices.Collect(maps.Keys(c.existing())))
	c.replica.Survey()
	c.dropFacts(gone, is.All, now)
	c.dropDeparted(departed, is.All, now)
	c.forgetGone(is.All)
	f.seen = append(f.seen, seenSettling{now, is})
	for i := len(f.seen) - 1; i >= 0; i-- {
		if then := f.seen[i]; now.Sub(then.at) >= forgetAfter && is.Settles(then.is) {
			f.settled, f.upTo, f.seen = then.is.All, then.at, f.seen[i:]
			c.dropRetired(spent, f.settled, now)
			return
		}
	}
	f.seen = f.seen[max(0, len(f.seen)-int(2*forgetAfter/surveyEvery)):]
}

// goneRooms returns, in order, the rooms that are gone for good and of which more than that is known, and those of
// which no more is. The id of a room that came from a file comes again with that: the catalog says so for good.
func (c *Core) goneRooms() (gone, spent []crdt.RoomID) {
	for id, r := range c.facts.rooms {
		switch {
		case !r.retired || c.rooms[id] != nil:
		case !r.bare():
			gone = append(gone, id)
		case c.catalog != nil && !c.anyOther(id):
			spent = append(spent, id)
		}
	}
	slices.SortFunc(gone, crdt.RoomID.Compare)
	slices.SortFunc(spent, crdt.RoomID.Compare)
	return gone, spent
}

// anyOther reports whether there is any key of a room but that by which it is known to be gone.
func (c *Core) anyOther(id crdt.RoomID) bool {
	for key := range c.replica.KeysWith(id) {
		if !isRetired(key) {
			return true
		}
	}
	return false
}

// dropFacts deletes what this node has said of rooms that are gone for good, and what nodes had said that are gone as
// well, once all know that the room is: nobody says any more of it then, and nobody goes by what was said.
func (c *Core) dropFacts(gone []crdt.RoomID, settled crdt.LWWDigest, now time.Time) {
	var keys []string
	for _, id := range gone {
		if at, _ := c.replica.TellerOf(roomKey(factRetired, id)); !settled.Holds(at) || len(keys) >= forgetMost {
			continue
		}
		for key := range c.replica.KeysWith(id) {
			if !isRetired(key) && !catalog.IsKey(key) {
				keys = append(keys, key)
			}
		}
	}
	c.dropKeys(keys, now)
}

// dropRetired deletes that rooms are gone of which nothing else is left. Its id never comes again, and no node has
// anything of such a room under way: all have known for long that it is gone.
func (c *Core) dropRetired(spent []crdt.RoomID, settled crdt.LWWDigest, now time.Time) {
	var keys []string
	for _, id := range spent {
		key := roomKey(factRetired, id)
		if at, _ := c.replica.TellerOf(key); settled.Holds(at) && len(keys) < forgetMost {
			keys = append(keys, key)
		}
	}
	c.dropKeys(keys, now)
}

// dropKeys deletes those of some keys that this node has written, or one that exists no more.
func (c *Core) dropKeys(keys []string, now time.Time) {
	existing := c.existing()
	slices.Sort(keys)
	for _, key := range keys {
		_, at, _ := c.replica.Get(key)
		if _, exists := existing[at.Node]; exists && at.Node != c.self.Node {
			continue
		}
		if err := c.replica.Set(key, nil, now); err != nil {
			return // the rest later
		}
	}
}

func isRetired(key string) bool { return strings.HasPrefix(key, factRetired+"/") }

// Forgotten reports whether this node does not open since the others have forgotten it: ErrForgotten.
// Any goroutine may call it.
func (c *Core) Forgotten() bool { return c.health.forgotten.Load() }

// lookIfForgotten reports whether the others have forgotten this node, which has not opened its rooms yet.
func (c *Core) lookIfForgotten() bool {
	if c.replica.Forgotten() {
		c.health.forgotten.Store(true)
	}
	return c.health.forgotten.Load()
}
