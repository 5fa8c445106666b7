package limit

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"

	"github.com/dchest/siphash"
	"golang.org/x/crypto/blake2b"
)

// Counter is a rule that counts at this node. It does not change.
type Counter struct {
	Terms
	Rule Rule

	sum    uint64    // by which nodes know what is counted
	terms  uint32    // by which they know what follows from it
	secret [2]uint64 // of keys
}

// Key returns what requests with some values of the characteristics count under. values
// is a form of them in which two that differ are never alike.
func (c *Counter) Key(values []byte) Key {
	return Key(max(siphash.Hash(c.secret[0], c.secret[1], values), 1)) // 0 is a free place
}

// outlasts reports whether keys may be limited in the whole mesh for longer than counts
// say, of which other sites hear anyway.
func (c *Counter) outlasts() bool { return c.Rule.Scope == Mesh && c.Timeout > 0 }

// newCounter returns what counts for a rule, at all nodes that have the same secret under
// the same keys. Whoever knows the secret can choose keys.
func newCounter(r Rule, slot uint16, secret []byte) *Counter {
	text, err := json.Marshal(r.Counting())
	if err != nil {
		panic("limit: a rule cannot be written: " + err.Error())
	}
	short := blake2b.Sum256(secret)
	h, err := blake2b.New256(short[:])
	if err != nil {
		panic("limit: a hash without its key: " + err.Error())
	}
	h.Write([]byte("ropeline rate limit\x00"))
	h.Write(text)
	words := h.Sum(nil)
	c := &Counter{Terms: *r.Terms(slot), Rule: r.Clone()}
	c.secret = [2]uint64{binary.LittleEndian.Uint64(words), binary.LittleEndian.Uint64(words[8:])}
	c.sum = binary.LittleEndian.Uint64(words[16:])
	f := fnv.New32a()
	fmt.Fprint(f, r.RequestsPerPeriod, r.MitigationTimeout)
	c.terms = f.Sum32()
	return c
}

// Tables are the tables of a node, each of which may have a lock.
type Tables interface {
	// Each calls f with every table.
	Each(f func(*Table))
	// Nth calls f with a table, counted from 0, and reports whether there are so many.
	Nth(n int, f func(*Table)) bool
	// Of calls f with the table of a key.
	Of(k Key, f func(*Table))
}

// Rules are those that count at a node.
type Rules struct {
	secret []byte
	bySlot [MaxSlots]*Counter
	bySum  map[uint64]*Counter
	byID   map[ID]*Counter
}

// NewRules returns none. secret is the same at all nodes of the mesh, and nobody else's.
func NewRules(secret []byte) *Rules {
	return &Rules{secret: secret, bySum: map[uint64]*Counter{}, byID: map[ID]*Counter{}}
}

// Follow has the rules be those that are given, but for disabled ones; there are at most
// MaxRules. A rule that counts what it did goes on with its counts; where its limit or what
// follows from it has changed, nobody is limited until there is a new reason.
func (s *Rules) Follow(rules []Rule, tables Tables, now Millis) {
	before := *s
	s.bySlot, s.bySum, s.byID = [MaxSlots]*Counter{}, map[uint64]*Counter{}, map[ID]*Counter{}
	var fresh []*Counter
	for _, r := range rules {
		if r.Disabled {
			continue
		}
		c := newCounter(r, 0, s.secret)
		was := before.bySum[c.sum]
		if was == nil {
			fresh = append(fresh, c)
			continue
		}
		c.Slot = was.Slot
		s.add(c)
		if was.terms != c.terms || was.Rule.Action != r.Action {
			tables.Each(func(t *Table) { t.Forgive(c.Slot, now) })
		}
	}
	// What a new rule counts must not be taken for what an old one has: where the slots
	// that are free had one, they are cleared.
	slot := uint16(0)
	for _, c := range fresh {
		for s.bySlot[slot] != nil {
			slot++
		}
		c.Slot = slot
		s.add(c)
		tables.Each(func(t *Table) { t.Use(&c.Terms) })
	}
}

func (s *Rules) add(c *Counter) {
	s.bySlot[c.Slot], s.bySum[c.sum], s.byID[c.Rule.ID] = c, c, c
}

// Counter returns what counts for a rule; nil if nothing does.
func (s *Rules) Counter(id ID) *Counter { return s.byID[id] }
