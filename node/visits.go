package node

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/ticket"
)

// A visit is what a visitor's owner is told: somebody waits, or was let in.
type visit struct {
	visitor  VisitorID
	room     crdt.RoomID
	arrival  time.Time
	at       time.Time     // of the poll, or of the admission
	refresh  time.Duration // what a waiting visitor was told
	again    bool          // a poll of somebody who is counted for a while yet: no count waits for it
	admitted bool
	ticket   ticket.Ticket // of the session of who was let in
	end      time.Time     // of its lease
}

type visitKey struct {
	room    crdt.RoomID
	visitor VisitorID
}

// Hash is that of packed.Key. Ids of visitors are random, and made by nodes.
func (k visitKey) Hash() uint64 {
	h := binary.LittleEndian.Uint64(k.visitor[:8]) ^ bits.RotateLeft64(binary.LittleEndian.Uint64(k.visitor[8:]), 32)
	h = h*0x9e3779b97f4a7c15 ^ binary.LittleEndian.Uint64(k.room[:8])
	h *= 0x9e3779b97f4a7c15
	return h ^ h>>32
}

// admission returns the session of a visitor who was let in.
func (v visit) admission() admission { return admission{v.ticket, v.arrival, v.at, v.end} }

func (v visit) key() visitKey { return visitKey{v.room, v.visitor} }

// supersedes reports whether v says all that older says, and more. Being let in
// is final: a late poll cannot undo it.
func (v visit) supersedes(older visit) bool {
	if v.admitted != older.admitted {
		return v.admitted
	}
	return !v.at.Before(older.at)
}

const (
	// visitsEvery is how often other nodes are told at most. A node that hears of hundreds
	// of polls in a second would else send a message to every other with each tick; counts
	// of the waiting go on to the site as seldom as this.
	visitsEvery = 200 * time.Millisecond

	// againEvery is how often one of them is told at most if there is nothing but polls of
	// visitors who are counted as of the polls before, and are for againWithin: until the
	// owner has heard, if need be the second time, in a line that reckons in seconds.
	againEvery  = time.Second
	againWithin = againEvery + visitsEvery + tickInterval + visitsResend + time.Second

	visitsResend = time.Second      // without an acknowledgement
	visitsGiveUp = 30 * time.Second // the visitor has asked again long since
	maxVisits    = 2000             // in one message; keeps it below 256 KiB
	maxPending   = 200_000          // visits kept while owners are out of reach

	// admittedHeld is how long an owner is not told of an admission: longer than
	// it takes until every node of the site has heard of the lease, which rows
	// carry every 250 ms. Else some would see a visitor neither waiting nor
	// inside, and a place that is taken would seem free.
	admittedHeld = 400 * time.Millisecond

	visitsVersion = 2
)

// visits takes what owners shall know to them, each until it is acknowledged.
// It is a state machine; the zero value is ready.
type visits struct {
	held    []heldVisit       // in order of until
	pending []visit           // for the next flush, as they came
	newest  map[visitKey]int  // where in pending they stand
	flying  map[uint64]flight // by batch
	unacked int               // visits in flying
	batch   uint64
	flushed time.Time // when it was last looked whom to tell
	dropped uint64    // visits let go because maxPending was reached
}

type heldVisit struct {
	visit
	until time.Time
}

type flight struct {
	to    crdt.NodeID
	sent  time.Time
	items []visit
}

// hold is add, once admittedHeld has passed.
func (o *visits) hold(v visit, now time.Time) {
	o.held = append(o.held, heldVisit{v, now.Add(admittedHeld)})
}

// release adds what has been held long enough.
func (o *visits) release(now time.Time) {
	n := 0
	for ; n < len(o.held) && !now.Before(o.held[n].until); n++ {
		o.add(o.held[n].visit)
	}
	if n == len(o.held) {
		o.held = nil // the room for what came within a moment of a crowd
		return
	}
	o.held = slices.Delete(o.held, 0, n)
}

// add keeps the newest of what is said of one visitor.
func (o *visits) add(v visit) {
	if o.newest == nil {
		o.newest = map[visitKey]int{}
		o.flying = map[uint64]flight{}
	}
	i, known := o.newest[v.key()]
	switch {
	case known && v.supersedes(o.pending[i]):
		v.again = false // of whom there is this much to say, the older may be news
		o.pending[i] = v
	case known:
		o.pending[i].again = false
	case len(o.pending)+o.unacked >= maxPending:
		o.dropped++
	default:
		o.newest[v.key()] = len(o.pending)
		o.pending = append(o.pending, v)
	}
}

// presses reports whether an owner shall hear of v now.
func (v visit) presses(now time.Time) bool {
	waited := now.Sub(v.at)
	return !v.again || waited.Abs() >= againEvery // also if the clock was put back
}

// flush returns what shall be sent now. owner says who owns a visitor; what
// was sent to somebody who did not answer goes to whoever owns it by now. self owes
// nobody a message, and hears of all at once.
func (o *visits) flush(now time.Time, self crdt.NodeID, owner func(visit) crdt.NodeID) []Message {
	o.release(now)
	if len(o.flying)+len(o.pending) == 0 {
		return nil // nearly always, and there may be thousands of nodes
	}
	for _, batch := range slices.Sorted(maps.Keys(o.flying)) {
		f := o.flying[batch]
		if now.Sub(f.sent) < visitsResend {
			continue
		}
		o.land(batch)
		for _, v := range f.items {
			if now.Sub(v.at) < visitsGiveUp {
				o.add(v)
			}
		}
	}
	if len(o.pending) == 0 {
		return nil
	}
	groups, due := map[crdt.NodeID][]visit{}, map[crdt.NodeID]bool{self: true}
	all := len(o.pending) >= maxVisits
	for _, v := range o.pending {
		to := owner(v)
		groups[to] = append(groups[to], v)
		if all || v.presses(now) {
			due[to] = true
		}
	}
	if len(o.pending) > 8*maxVisits { // owners were away, or the loop was
		o.pending, o.newest = nil, map[visitKey]int{}
	}
	o.pending = o.pending[:0]
	clear(o.newest)
	var out []Message
	for _, to := range slices.SortedFunc(maps.Keys(groups), compareNodes) {
		if !due[to] {
			for _, v := range groups[to] {
				o.add(v)
			}
			continue
		}
		for items := groups[to]; len(items) > 0; {
			n := min(len(items), maxVisits)
			o.batch++
			o.flying[o.batch] = flight{to: to, sent: now, items: items[:n:n]}
			o.unacked += n
			out = append(out, Message{To: to, Kind: kindVisits, Slot: o.batch, Payload: encodeVisits(o.batch, items[:n])})
			items = items[n:]
		}
	}
	return out
}

// acked forgets a batch that its owner has taken.
func (o *visits) acked(from crdt.NodeID, batch uint64) {
	if f, ok := o.flying[batch]; ok && f.to == from {
		o.land(batch)
	}
}

// land removes a batch and returns what was in it.
func (o *visits) land(batch uint64) []visit {
	items := o.flying[batch].items
	delete(o.flying, batch)
	o.unacked -= len(items)
	return items
}

func compareNodes(a, b crdt.NodeID) int { return bytes.Compare(a[:], b[:]) }

// encodeVisits writes [version, batch, n, then per visit: visitor, room, refresh s; of
// who waits also arrival ms, at ms; of who was let in what encodeAdmission writes].
func encodeVisits(batch uint64, items []visit) []byte {
	var buf bytes.Buffer
	buf.Grow(16 + 112*len(items))
	e := msgpack.NewEncoder(&buf)
	e.UseCompactInts(true)
	// A bytes.Buffer never fails to take what is written.
	e.EncodeArrayLen(3)
	e.EncodeUint(visitsVersion)
	e.EncodeUint(batch)
	e.EncodeArrayLen(len(items))
	for _, v := range items {
		fields := waitingFields
		if v.admitted {
			fields = admittedFields
		}
		e.EncodeArrayLen(fields)
		e.EncodeBytes(v.visitor[:])
		e.EncodeBytes(v.room[:])
		e.EncodeInt(int64(v.refresh / time.Second))
		if v.admitted {
			encodeAdmission(e, v.admission())
			continue
		}
		e.EncodeInt(v.arrival.UnixMilli())
		e.EncodeInt(v.at.UnixMilli())
	}
	return buf.Bytes()
}

var errMalformed = errors.New("malformed message")

const (
	waitingFields  = 5
	admittedFields = 3 + admissionFields

	// minVisitBytes is the least that one encoded visit takes.
	minVisitBytes = 1 + 2*18 + 3
)

func decodeVisits(msg []byte) (batch uint64, items []visit, err error) {
	r := bytes.NewReader(msg)
	d := msgpack.NewDecoder(r)
	if err := expectHeader(d, 3, visitsVersion); err != nil {
		return 0, nil, err
	}
	if batch, err = d.DecodeUint64(); err != nil {
		return 0, nil, fmt.Errorf("%w: batch: %w", errMalformed, err)
	}
	n, err := d.DecodeArrayLen()
	if err != nil || n < 0 || n > maxVisits || n > r.Len()/minVisitBytes {
		return 0, nil, fmt.Errorf("%w: %d visits", errMalformed, n)
	}
	items = make([]visit, n)
	for i := range items {
		if err := decodeVisit(d, &items[i]); err != nil {
			return 0, nil, fmt.Errorf("%w: visit %d: %w", errMalformed, i, err)
		}
	}
	if r.Len() > 0 {
		return 0, nil, fmt.Errorf("%w: %d bytes behind the end", errMalformed, r.Len())
	}
	return batch, items, nil
}

func decodeVisit(d *msgpack.Decoder, v *visit) error {
	n, err := d.DecodeArrayLen()
	if err != nil || n != waitingFields && n != admittedFields {
		return fmt.Errorf("%d fields: %w", n, err)
	}
	if err := decodeID(d, v.visitor[:]); err != nil {
		return err
	}
	if err := decodeID(d, v.room[:]); err != nil {
		return err
	}
	seconds, err := d.DecodeInt64()
	if err != nil {
		return err
	}
	if seconds < 0 || seconds > maxRefresh {
		return fmt.Errorf("refresh of %d s is out of range", seconds)
	}
	v.refresh = time.Duration(seconds) * time.Second
	if v.admitted = n == admittedFields; v.admitted {
		var a admission
		err = decodeAdmission(d, &a)
		v.ticket, v.arrival, v.at, v.end = a.ticket, a.arrival, a.accepted, a.end
		return err
	}
	return errors.Join(
		decodeInto(&v.arrival, func() (time.Time, error) { return decodeMillis(d) }),
		decodeInto(&v.at, func() (time.Time, error) { return decodeMillis(d) }),
	)
}

// expectHeader reads an array of n elements whose first is the version.
func expectHeader(d *msgpack.Decoder, n int, version uint64) error {
	got, err := d.DecodeArrayLen()
	if err != nil || got != n {
		return fmt.Errorf("%w: %d elements instead of %d", errMalformed, got, n)
	}
	v, err := d.DecodeUint64()
	if err != nil || v != version {
		return fmt.Errorf("%w: version %d instead of %d", errMalformed, v, version)
	}
	return nil
}

// decodeID fills dst, and takes only that many bytes.
func decodeID(d *msgpack.Decoder, dst []byte) error {
	n, err := d.DecodeBytesLen()
	if err != nil {
		return err
	}
	if n != len(dst) {
		return fmt.Errorf("id of %d bytes", n)
	}
	return d.ReadFull(dst)
}

// maxRefresh is more seconds than any room lets visitors pause.
const maxRefresh = 1 << 16

// maxMillis is the year 9999; a later time is nobody's clock.
const maxMillis = 253_402_300_799_999

func decodeMillis(d *msgpack.Decoder) (time.Time, error) {
	ms, err := d.DecodeInt64()
	if err != nil {
		return time.Time{}, err
	}
	if ms < 0 || ms > maxMillis {
		return time.Time{}, fmt.Errorf("time %d ms is out of range", ms)
	}
	return time.UnixMilli(ms), nil
}

func encodeAck(batch uint64) []byte {
	var buf bytes.Buffer
	e := msgpack.NewEncoder(&buf)
	e.UseCompactInts(true)
	e.EncodeArrayLen(2)
	e.EncodeUint(visitsVersion)
	e.EncodeUint(batch)
	return buf.Bytes()
}

func decodeAck(msg []byte) (uint64, error) {
	r := bytes.NewReader(msg)
	d := msgpack.NewDecoder(r)
	if err := expectHeader(d, 2, visitsVersion); err != nil {
		return 0, err
	}
	batch, err := d.DecodeUint64()
	if err != nil || r.Len() > 0 {
		return 0, errMalformed
	}
	return batch, nil
}
