package ticket

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ropeline/ropeline/crdt"
)

// Keys of what is durable. Node ids are hexadecimal.
const (
	keyGave      = "gave/"      // + node: Amount, all in all
	keyRcv       = "rcv/"       // + node: Amount, all in all, and the Code of it
	keyMinted    = "minted"     // Amount, signed
	keyBound     = "bound"      // Amount: never more is in use
	keySpan      = "span"       // longest session of a lease, ms
	keyDead      = "dead/"      // + node: its heir, and since and until which round
	keyTaken     = "taken/"     // + leaver whose heir this node is: what that had minted
	keyInherited = "inherited/" // + leaver / node: base and received Amount, and the Code of that
	keyRecovered = "recovered/" // + dead node: rights and what it minted
	keyClosed    = "closed/"    // + node that has left: closing
	keySums      = "sums"       // sums
	keyLeaving   = "leaving"    // heir, places in use
	keyRetired   = "retired"
)

// errStored is wrapped by errors about what a store holds.
var errStored = errors.New("stored rights are not understood")

// dealings are what one node has given another and received from it, all in all.
type dealings struct {
	gave, rcv Amount
	code      Code // of rcv
}

// leaving says to whom a node passes on its rights, with how many in use.
type leaving struct {
	heir  crdt.NodeID
	inUse int64
}

// recovery is what was found of a dead node's rights, those of others who were
// recovered with it included, what it had minted, and when that was; see Recovery.
type recovery struct {
	rights, minted Amount
	turn           int64
}

// fence says who recovers the rights of a dead node, as this node has had it since
// after a round, the last in which it was somebody else, until round.
type fence struct {
	heir         crdt.NodeID
	round, after int64
}

// ledger is the durable part of rights. There are two of each: what is confirmed,
// and what it will be once everything is written. One that is empty has noDealt.
type ledger struct {
	minted  Amount
	bound   Amount
	span    int64
	retired bool
	*dealt
}

// dealt is what a ledger says of other nodes. The zero value is nothing, as in most rooms
// that nobody visits.
type dealt struct {
	accounts  map[crdt.NodeID]dealings
	dead      map[crdt.NodeID]fence
	taken     map[crdt.NodeID]Minting
	inherited map[crdt.NodeID]map[crdt.NodeID]Receipt
	recovered map[crdt.NodeID]recovery
	closed    map[crdt.NodeID]closing
	sums      sums
	leaving   *leaving
}

// noDealt is shared by all ledgers that say nothing of other nodes. It is for reading.
var noDealt = &dealt{}

// own returns what is to be written to, which is made with its first use.
func (l *ledger) own() *dealt {
	if l.dealt == noDealt {
		l.dealt = new(dealt)
	}
	return l.dealt
}

// clone copies a ledger.
func (l *ledger) clone() ledger {
	c := *l
	if l.dealt == noDealt {
		return c
	}
	c.dealt = &dealt{
		accounts: maps.Clone(l.accounts), dead: maps.Clone(l.dead), taken: maps.Clone(l.taken),
		recovered: maps.Clone(l.recovered), closed: maps.Clone(l.closed), sums: l.sums, leaving: l.leaving,
	}
	for leaver, m := range l.inherited {
		set(&c.inherited, leaver, maps.Clone(m))
	}
	return c
}

// set puts a value into a map, which is made with the first: most rooms never have one.
func set[K comparable, V any](m *map[K]V, key K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = v
}

// received returns all that came from others, and gave all that went to them.
func (l *ledger) received() (sum Amount) {
	for _, a := range l.accounts {
		sum = sum.Add(a.rcv)
	}
	for _, m := range l.inherited {
		for _, x := range m {
			sum = sum.Add(x.Rcv.Sub(x.Base))
		}
	}
	for _, x := range l.recovered {
		sum = sum.Add(x.rights)
	}
	for _, c := range l.closed {
		sum = sum.Add(c.rcv)
	}
	return sum.Add(l.sums.rcv)
}

func (l *ledger) gave() (sum Amount) {
	for _, a := range l.accounts {
		sum = sum.Add(a.gave)
	}
	for _, c := range l.closed {
		sum = sum.Add(c.gave)
	}
	return sum.Add(l.sums.gave)
}

// value returns what stands under a key; nil: nothing.
func (l *ledger) value(key string) []byte {
	switch key {
	case keySums:
		return appendSums(l.sums)
	case keyMinted:
		return appendAmount(nil, l.minted)
	case keyBound:
		return appendAmount(nil, l.bound)
	case keySpan:
		return binary.AppendVarint(nil, l.span)
	case keyRetired:
		return markIf(l.retired)
	case keyLeaving:
		if l.leaving == nil {
			return nil
		}
		return binary.AppendVarint(slices.Clone(l.leaving.heir[:]), l.leaving.inUse)
	}
	kind, ids, err := splitKey(key)
	if err != nil {
		panic("ticket: " + err.Error())
	}
	switch kind {
	case keyGave:
		return valueIn(l.accounts, ids[0], func(a dealings) []byte { return appendAmount(nil, a.gave) })
	case keyRcv:
		return valueIn(l.accounts, ids[0], func(a dealings) []byte { return appendCode(appendAmount(nil, a.rcv), a.code) })
	case keyClosed:
		return valueIn(l.closed, ids[0], appendClosing)
	case keyDead:
		return valueIn(l.dead, ids[0], func(x fence) []byte {
			return binary.AppendVarint(binary.AppendVarint(slices.Clone(x.heir[:]), x.round), x.after)
		})
	case keyTaken:
		return valueIn(l.taken, ids[0], appendTaken)
	case keyRecovered:
		return valueIn(l.recovered, ids[0], func(x recovery) []byte {
			return binary.AppendVarint(appendAmount(appendAmount(nil, x.rights), x.minted), x.turn)
		})
	default: // keyInherited
		return valueIn(l.inherited[ids[0]], ids[1], func(x Receipt) []byte {
			return appendCode(appendAmount(appendAmount(nil, x.Base), x.Rcv), x.Code)
		})
	}
}

// valueIn returns what is written of an entry; nil if there is none.
func valueIn[V any](m map[crdt.NodeID]V, id crdt.NodeID, write func(V) []byte) []byte {
	v, there := m[id]
	if !there {
		return nil
	}
	return write(v)
}

func appendTaken(x Minting) []byte {
	if !x.Known {
		return markIf(true)
	}
	return appendAmount(markIf(true), x.Minted)
}

func markIf(on bool) []byte {
	if !on {
		return nil
	}
	return []byte{1}
}

// apply takes what stands under a key.
func (l *ledger) apply(p Put) error {
	in := cursor{left: p.Value}
	switch p.Key {
	case keyMinted:
		l.minted = in.amount()
	case keyBound:
		l.bound = in.bound()
	case keySpan:
		l.span = in.number()
	case keyRetired:
		l.retired = in.flag()
	case keySums:
		l.own().sums = sums{in.amount(), in.amount(), in.amount(), in.number()}
	case keyLeaving:
		l.own().leaving = &leaving{heir: in.id(), inUse: in.number()}
	default:
		kind, ids, err := splitKey(p.Key)
		if err != nil {
			return err
		}
		l.applyTo(kind, ids, &in)
	}
	if in.bad || len(in.left) > 0 {
		return fmt.Errorf("%w: %d bytes under %s", errStored, len(p.Value), p.Key)
	}
	return nil
}

func (l *ledger) applyTo(kind string, ids []crdt.NodeID, in *cursor) {
	id := ids[0]
	a := l.accounts[id]
	switch kind {
	case keyGave:
		a.gave = in.amount()
		set(&l.own().accounts, id, a)
	case keyRcv:
		a.rcv, a.code = in.amount(), in.code()
		set(&l.own().accounts, id, a)
	case keyDead:
		set(&l.own().dead, id, in.fence())
	case keyTaken:
		set(&l.own().taken, id, in.minting())
	case keyClosed:
		set(&l.own().closed, id, in.closing())
	case keyRecovered:
		set(&l.own().recovered, id, recovery{in.amount(), in.amount(), in.number()})
	case keyInherited:
		l.inherit(id, Receipt{From: ids[1], Base: in.amount(), Rcv: in.amount(), Code: in.code()})
	}
}

func (l *ledger) inherit(leaver crdt.NodeID, x Receipt) {
	of := l.inherited[leaver]
	if of == nil {
		of = map[crdt.NodeID]Receipt{}
		set(&l.own().inherited, leaver, of)
	}
	of[x.From] = x
}

// keys returns all keys that have a value, in order.
func (l *ledger) keys() []string {
	var out []string
	add := func(on bool, key string) {
		if on {
			out = append(out, key)
		}
	}
	for id, a := range l.accounts {
		add(!a.gave.IsZero(), keyOf(keyGave, id))
		add(!a.rcv.IsZero(), keyOf(keyRcv, id))
	}
	for id := range l.dead {
		add(true, keyOf(keyDead, id))
	}
	for id := range l.taken {
		add(true, keyOf(keyTaken, id))
	}
	for id := range l.recovered {
		add(true, keyOf(keyRecovered, id))
	}
	for id := range l.closed {
		add(true, keyOf(keyClosed, id))
	}
	add(l.sums != sums{}, keySums)
	for leaver, m := range l.inherited {
		for from := range m {
			add(true, keyOf(keyInherited, leaver, from))
		}
	}
	add(!l.minted.IsZero(), keyMinted)
	add(!l.bound.IsZero(), keyBound)
	add(l.span != 0, keySpan)
	add(l.leaving != nil, keyLeaving)
	add(l.retired, keyRetired)
	slices.Sort(out)
	return out
}

func keyOf(kind string, ids ...crdt.NodeID) string {
	parts := make([]string, len(ids))
	for i, id := range ids {
		parts[i] = id.String()
	}
	return kind + strings.Join(parts, "/")
}

func splitKey(key string) (kind string, ids []crdt.NodeID, err error) {
	kind, rest, _ := strings.Cut(key, "/")
	kind += "/"
	want := 1
	switch kind {
	case keyInherited:
		want = 2
	case keyGave, keyRcv, keyDead, keyTaken, keyRecovered, keyClosed:
	default:
		return "", nil, fmt.Errorf("%w: key %q", errStored, key)
	}
	for part := range strings.SplitSeq(rest, "/") {
		var id crdt.NodeID
		if len(part) != 2*len(id) {
			return "", nil, fmt.Errorf("%w: key %q", errStored, key)
		}
		if _, err := hex.Decode(id[:], []byte(part)); err != nil {
			return "", nil, fmt.Errorf("%w: key %q", errStored, key)
		}
		ids = append(ids, id)
	}
	if len(ids) != want {
		return "", nil, fmt.Errorf("%w: key %q", errStored, key)
	}
	return kind, ids, nil
}

func appendAmount(dst []byte, a Amount) []byte {
	return binary.AppendVarint(binary.AppendVarint(dst, a.Places), a.Rate)
}

func appendCode(dst []byte, c Code) []byte { return binary.BigEndian.AppendUint64(dst, uint64(c)) }

// cursor takes a value apart. After the first thing that is missing or too large
// all others are zero, and bad is set.
type cursor struct {
	left []byte
	bad  bool
}

// maxRights bounds every number of rights, here as in messages.
const maxRights = maxCounted

func (c *cursor) code() Code {
	const size = 8
	if c.bad || len(c.left) < size {
		c.bad = true
		return 0
	}
	defer func() { c.left = c.left[size:] }()
	return Code(binary.BigEndian.Uint64(c.left))
}

func (c *cursor) number() int64 {
	n, size := binary.Varint(c.left)
	if c.bad || size <= 0 || n > maxRights || n < -maxRights {
		c.bad = true
		return 0
	}
	c.left = c.left[size:]
	return n
}

// bound reads what is in use at most. Of stores that say nothing of rate rights,
// all of those may be.
func (c *cursor) bound() Amount {
	a := Amount{Places: c.number(), Rate: maxRights}
	if len(c.left) > 0 {
		a.Rate = c.number()
	}
	return a
}

// fence reads who recovers a dead node's rights. In stores that say nothing of rounds
// it is the one before all others.
func (c *cursor) fence() fence {
	x := fence{heir: c.id()}
	if len(c.left) > 0 {
		x.round, x.after = c.number(), c.number()
	}
	return x
}

// minting reads what a leaver had minted. Where that is not known, there is only that its rights are here.
func (c *cursor) minting() Minting {
	if c.flag(); len(c.left) == 0 {
		return Minting{}
	}
	return Minting{true, c.amount()}
}

func (c *cursor) amount() Amount { return Amount{Places: c.number(), Rate: c.number()} }

func (c *cursor) flag() bool { return len(c.bytes(1)) == 1 }

func (c *cursor) id() (id crdt.NodeID) {
	copy(id[:], c.bytes(len(id)))
	return id
}

func (c *cursor) bytes(n int) []byte {
	if c.bad || len(c.left) < n {
		c.bad = true
		return nil
	}
	out := c.left[:n]
	c.left = c.left[n:]
	return out
}
