package node

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/crypto/blake2b"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/replica"
)

// DefaultLimitMemory is what counting for rate limits may take if nothing else is said, in
// bytes.
const DefaultLimitMemory = 64 << 20

// limiter counts for rate limit rules. Requests count on any goroutine; the loop does the
// rest. Memory is taken when there is the first rule.
type limiter struct {
	memory   int // bytes; 0: no rule counts
	room     int // for so many keys; good once there are tables
	rules    *limit.Rules
	exchange *limit.Exchange
	peers    []limit.Peer // as the exchange shall know them, once there is something to count

	tables atomic.Pointer[limitTables] // nil: there is no rule
	meters atomic.Pointer[meters]      // of the rules that count
	self   crdt.Incarnation
	site   string
	secret []byte
	sweep  limitSweep
	still  standstill
	seen   atomic.Pointer[map[limit.ID]limit.Tally]
	health limitHealth
}

// limitHealth is what of the limiter is in the status.
type limitHealth struct {
	replaced, lost, refused atomic.Uint64

	awaits atomic.Pointer[[]crdt.NodeID] // nil: nobody
}

// limitStripes is how many tables there are: far more than cores, so that two requests
// seldom meet at a lock.
const limitStripes = 64

// limitTables are the tables of a node. They are limit.Tables.
type limitTables [limitStripes]limitStripe

type limitStripe struct {
	mu    sync.Mutex  // guards the following
	table limit.Table // what it reads for each request is in the lock's line of memory

	_ [lineSize - (unsafe.Sizeof(sync.Mutex{})+unsafe.Sizeof(limit.Table{}))%lineSize]byte // keeps neighbours apart
}

const lineSize = 64 // bytes of a line of memory, what a processor reads at a time

// newLimiter returns a limiter that has no rule.
func newLimiter(memory int, self crdt.Incarnation, site string, owner []byte) *limiter {
	l := &limiter{memory: memory, self: self, site: site}
	h, err := blake2b.New256(nil)
	if err != nil {
		panic("node: a hash without a key: " + err.Error())
	}
	h.Write([]byte("ropeline rate limits\x00"))
	h.Write(owner)
	l.secret = h.Sum(nil)
	l.meters.Store(&meters{})
	l.seen.Store(&map[limit.ID]limit.Tally{})
	return l
}

// Each calls f with every table.
func (t *limitTables) Each(f func(*limit.Table)) {
	for i := range t {
		t[i].do(f)
	}
}

// Nth calls f with a table, and reports whether there are so many.
func (t *limitTables) Nth(n int, f func(*limit.Table)) bool {
	if n >= len(t) {
		return false
	}
	t[n].do(f)
	return true
}

// Of calls f with the table of a key.
func (t *limitTables) Of(k limit.Key, f func(*limit.Table)) { t.of(k).do(f) }

// of takes the lowest bits of a key; tables go by the highest.
func (t *limitTables) of(k limit.Key) *limitStripe { return &t[k%limitStripes] }

func (s *limitStripe) do(f func(*limit.Table)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.table)
}

// follow has the rules be those that are given.
func (l *limiter) follow(rules []limit.Rule, now time.Time) {
	if l.memory == 0 {
		return
	}
	if l.tables.Load() == nil {
		if len(rules) == 0 {
			return
		}
		l.start()
	}
	tables := l.tables.Load()
	l.rules.Follow(rules, tables, limit.MillisOf(now))
	all := &meters{byID: map[limit.ID]*Meter{}}
	for _, r := range rules {
		if c := l.rules.Counter(r.ID); c != nil {
			m := &Meter{c, tables, &l.still}
			all.byID[r.ID], all.order = m, append(all.order, m)
		}
	}
	l.meters.Store(all)
}

// meters are those of the rules that count, in the order of the rules.
type meters struct {
	byID  map[limit.ID]*Meter
	order []*Meter
}

func (l *limiter) start() {
	tables := new(limitTables)
	for i, t := range limit.NewTables(limitStripes, l.memory-int(unsafe.Sizeof(*tables))) {
		tables[i].table = t
		l.room += t.Len()
	}
	l.rules = limit.NewRules(l.secret)
	l.exchange = limit.NewExchange(l.self, l.site, l.rules, tables)
	l.tables.Store(tables)
}

// know says which other nodes live.
func (l *limiter) know(peers replica.Members) {
	l.peers = make([]limit.Peer, len(peers))
	for i, p := range peers {
		l.peers[i] = limit.Peer{ID: p.ID, Boot: p.Boot, Site: p.Site, Ready: p.Ready}
	}
}

// tick does what is due, and returns what shall be sent.
func (l *limiter) tick(now time.Time) []limit.Message {
	if l.exchange == nil {
		return nil
	}
	at := limit.MillisOf(now)
	l.still.run(at)
	out := l.exchange.SetPeers(l.peers, at)
	out = append(out, l.exchange.Tick(at)...)
	l.sweepSome(at)
	l.health.lost.Store(l.exchange.Lost)
	l.health.refused.Store(l.exchange.Refused)
	if ids := l.exchange.Awaits(); len(ids) > 0 {
		l.health.awaits.Store(&ids)
	} else {
		l.health.awaits.Store(nil)
	}
	return out
}

// limitSweep is how far a look at all keys has come.
type limitSweep struct {
	stripe   int
	tallies  []limit.Tally // by slot
	replaced uint64
}

// sweepKeys is how many keys are looked at in one tick.
const sweepKeys = 1 << 14

// sweepSome forgets keys that do not matter any more, and counts the others.
func (l *limiter) sweepSome(now limit.Millis) {
	s := &l.sweep
	if s.tallies == nil {
		s.tallies = make([]limit.Tally, limit.MaxSlots)
	}
	done := false
	l.tables.Load()[s.stripe].do(func(t *limit.Table) {
		if done = t.Sweep(sweepKeys, now, s.tallies); done {
			s.replaced += t.Replaced
		}
	})
	if !done {
		return
	}
	if s.stripe++; s.stripe < limitStripes {
		return
	}
	seen := map[limit.ID]limit.Tally{}
	for id, m := range l.meters.Load().byID {
		seen[id] = s.tallies[m.counter.Slot]
	}
	l.seen.Store(&seen)
	l.health.replaced.Store(s.replaced)
	*s = limitSweep{}
}

// tickLimits does what is due for rate limits.
func (c *Core) tickLimits(now time.Time) []Message { return limitMessages(c, c.limiter.tick(now)) }

// limitKinds are the kinds of messages by what they are about.
var limitKinds = [...]uint8{limit.Counted: kindLimitCounted, limit.Known: kindLimitKnown, limit.Asked: kindLimitAsked}

func limitMessages(c *Core, in []limit.Message) []Message {
	out := make([]Message, len(in))
	for i, m := range in {
		out[i] = c.message(m.To, limitKinds[m.Kind], m.Payload)
	}
	return out
}

// takeLimits takes what another node says of counts. Where no rule counts here yet, it is
// of one that this node will hear of.
func (c *Core) takeLimits(from replica.Peer, kind uint8, payload []byte, now time.Time) ([]Message, error) {
	x := c.limiter.exchange
	if x == nil {
		return nil, nil
	}
	peer := limit.Peer{ID: from.ID, Boot: from.Boot, Site: from.Site, Ready: from.Ready}
	take := x.Counted
	switch kind {
	case kindLimitKnown:
		take = x.Known
	case kindLimitAsked:
		take = x.Asked
	}
	out, err := take(peer, payload, limit.MillisOf(now))
	return limitMessages(c, out), err
}

// lastLimits returns what others are to hear before this node ends.
func (c *Core) lastLimits(now time.Time) []Message {
	if c.limiter.exchange == nil {
		return nil
	}
	return limitMessages(c, c.limiter.exchange.Last(limit.MillisOf(now)))
}

// awaitsLimits returns the nodes that have not told what they know of keys.
func (c *Core) awaitsLimits() []crdt.NodeID {
	if c.limiter.exchange == nil {
		return nil
	}
	return c.limiter.exchange.Awaits()
}
