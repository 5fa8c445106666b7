package node

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/tiers/single"
	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/ticket"
)

var noon = time.UnixMilli(1_700_000_000_000)

func someVisits(n int) []visit {
	items := make([]visit, n)
	for i := range items {
		items[i] = visit{
			visitor: VisitorID{byte(i), byte(i >> 8)}, room: roomID, arrival: noon,
			at: noon.Add(time.Duration(i) * time.Millisecond), refresh: 20 * time.Second,
		}
		if i%3 == 0 || n == maxVisits {
			items[i].admitted, items[i].end = true, noon.Add(time.Hour)
			items[i].ticket = ticket.Ticket{Anchor: crdt.NodeID{4}, Boot: 1 << 63, Block: 1<<32 - 1, Seq: 1 << 63}
		}
	}
	return items
}

func TestVisitsCodec(t *testing.T) {
	for _, n := range []int{0, 1, 17, maxVisits} {
		want := someVisits(n)
		msg := encodeVisits(9, want)
		if len(msg) > 256<<10 {
			t.Errorf("%d visits take %d bytes, more than a message may", n, len(msg))
		}
		batch, got, err := decodeVisits(msg)
		if err != nil || batch != 9 || len(got) != n || n > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("%d visits came back as %d in batch %d, error %v", n, len(got), batch, err)
		}
		for cut := 0; cut < min(len(msg), 400); cut++ {
			if _, _, err := decodeVisits(msg[:cut]); err == nil {
				t.Fatalf("%d visits cut to %d of %d bytes were accepted", n, cut, len(msg))
			}
		}
	}
}

func TestVisitsAreSentUntilAcknowledged(t *testing.T) {
	var o visits
	owner := crdt.NodeID{1}
	toOwner := func(visit) crdt.NodeID { return owner }
	now := noon
	o.add(someVisits(1)[0])
	first := o.flush(now, crdt.NodeID{0xff}, toOwner)
	if len(first) != 1 || first[0].To != owner {
		t.Fatalf("messages = %v, want one to the owner", first)
	}
	if again := o.flush(now.Add(visitsResend/2), crdt.NodeID{0xff}, toOwner); len(again) != 0 {
		t.Errorf("sent again before %v", visitsResend)
	}
	owner = crdt.NodeID{2} // the first one is gone
	now = now.Add(visitsResend)
	second := o.flush(now, crdt.NodeID{0xff}, toOwner)
	if len(second) != 1 || second[0].To != owner {
		t.Fatalf("messages = %v, want one to the new owner", second)
	}
	o.acked(crdt.NodeID{1}, second[0].Slot) // not from the owner
	o.acked(crdt.NodeID{}, 99)              // of nothing that was sent
	if len(o.flying) != 1 || o.unacked != 1 {
		t.Errorf("%d batches are on their way with %d visits, want 1 with 1", len(o.flying), o.unacked)
	}
	o.acked(owner, second[0].Slot)
	if left := o.flush(now.Add(visitsResend), crdt.NodeID{0xff}, toOwner); len(left) != 0 || len(o.flying) != 0 {
		t.Errorf("messages after the acknowledgement = %v", left)
	}
}

func TestVisitsGiveUp(t *testing.T) {
	var o visits
	o.add(someVisits(1)[0])
	to := func(visit) crdt.NodeID { return crdt.NodeID{1} }
	sent := 0
	for now := noon; now.Before(noon.Add(2 * visitsGiveUp)); now = now.Add(visitsResend) {
		sent += len(o.flush(now, crdt.NodeID{0xff}, to))
	}
	if want := int(visitsGiveUp / visitsResend); sent < want-1 || sent > want+1 {
		t.Errorf("sent %d times, want about %d", sent, want)
	}
	if len(o.pending)+len(o.flying) != 0 {
		t.Error("a visit that was given up is still kept")
	}
}

// TestVisitsKeepTheNewest adds what is said of one visitor in any order.
func TestVisitsKeepTheNewest(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	said := []visit{
		{visitor: VisitorID{1}, room: roomID, at: noon},
		{visitor: VisitorID{1}, room: roomID, at: noon.Add(time.Second)},
		{visitor: VisitorID{1}, room: roomID, at: noon.Add(time.Millisecond), admitted: true},
	}
	for range 50 {
		rng.Shuffle(len(said), func(i, j int) { said[i], said[j] = said[j], said[i] })
		var o visits
		for _, v := range said {
			o.add(v)
		}
		if got := o.pending; len(got) != 1 || !got[0].admitted {
			t.Fatalf("kept %+v of %+v, want only that the visitor was let in", got, said)
		}
	}
}

// TestPollsThatChangeNoCountWait has visitors poll who are counted already.
func TestPollsThatChangeNoCountWait(t *testing.T) {
	self := crdt.NodeID{9}
	to := func(v visit) crdt.NodeID { return crdt.NodeID{v.visitor[0]} }
	poll := func(owner byte, number byte, at time.Time, again bool) visit {
		return visit{visitor: VisitorID{owner, number}, room: roomID, arrival: noon, at: at, again: again}
	}
	said := func(out []Message) map[crdt.NodeID]int {
		n := map[crdt.NodeID]int{}
		for _, m := range out {
			_, items, err := decodeVisits(m.Payload)
			if err != nil {
				t.Fatal(err)
			}
			n[m.To] += len(items)
		}
		return n
	}
	var o visits
	for owner := byte(1); owner <= 2; owner++ {
		o.add(poll(owner, 1, noon, true))
	}
	o.add(poll(9, 1, noon, true))
	if got := said(o.flush(noon, self, to)); !maps.Equal(got, map[crdt.NodeID]int{{9}: 1}) {
		t.Errorf("told %v at once, want this node alone", got)
	}
	o.land(o.batch)
	o.add(poll(1, 2, noon, false))
	if got := said(o.flush(noon.Add(visitsEvery), self, to)); !maps.Equal(got, map[crdt.NodeID]int{{1}: 2}) {
		t.Errorf("told %v, want the owner of somebody new, of both", got)
	}
	o.add(poll(2, 1, noon.Add(visitsEvery), true))
	o.add(poll(2, 2, noon, true))
	if got := said(o.flush(noon.Add(againEvery), self, to)); !maps.Equal(got, map[crdt.NodeID]int{{2}: 2}) {
		t.Errorf("told %v after %v, want the other owner of both", got, againEvery)
	}
	o.add(poll(1, 1, noon.Add(time.Hour), true))
	if got := said(o.flush(noon.Add(againEvery), self, to)); got[crdt.NodeID{1}] != 1 {
		t.Errorf("told %v when the clock was put back, want what is of the future", got)
	}
	o.add(poll(1, 3, noon, false))
	o.add(poll(1, 3, noon.Add(1), true))
	if got := said(o.flush(noon.Add(2), self, to)); got[crdt.NodeID{1}] != 1 {
		t.Errorf("told %v: somebody new who polls again is not new to the owner", got)
	}
	o.add(poll(1, 4, noon.Add(1), true))
	o.add(poll(1, 4, noon, false)) // it was lost on the way
	if got := said(o.flush(noon.Add(2), self, to)); got[crdt.NodeID{1}] != 1 {
		t.Errorf("told %v: somebody of whom the owner has not heard, and who polls again, is new to it", got)
	}
	for i := range maxVisits {
		o.add(visit{visitor: VisitorID{1, byte(i), byte(i >> 8), 1}, room: roomID, arrival: noon, at: noon, again: true})
	}
	if got := said(o.flush(noon, self, to)); got[crdt.NodeID{1}] != maxVisits {
		t.Errorf("told %v of %d polls, want all: a message is full", got, maxVisits)
	}
}

func TestVisitsAreBounded(t *testing.T) {
	single.Goroutine(t)
	var o visits
	silent := func(visit) crdt.NodeID { return crdt.NodeID{1} }
	for i := range maxPending + 10 {
		o.add(visit{visitor: VisitorID{byte(i), byte(i >> 8), byte(i >> 16)}, room: roomID, at: noon})
		if i%1000 == 0 {
			o.flush(noon, crdt.NodeID{0xff}, silent) // what is under way counts too
		}
	}
	if kept := len(o.pending) + o.unacked; kept != maxPending || o.dropped != 10 {
		t.Errorf("kept %d and dropped %d, want %d and 10", kept, o.dropped, maxPending)
	}
	// Sent again, and at last given up, nothing is left or miscounted.
	o.flush(noon.Add(visitsResend), crdt.NodeID{0xff}, silent)
	o.flush(noon.Add(visitsGiveUp+visitsResend), crdt.NodeID{0xff}, silent)
	if o.unacked != 0 || len(o.flying) != 0 || len(o.pending) != 0 {
		t.Errorf("%d visits in %d batches are left under way, and %d to send", o.unacked, len(o.flying), len(o.pending))
	}
}

func TestAdmissionsAreHeld(t *testing.T) {
	var o visits
	to := func(visit) crdt.NodeID { return crdt.NodeID{1} }
	v := someVisits(1)[0]
	v.admitted = true
	o.hold(v, noon)
	if early := o.flush(noon.Add(admittedHeld-time.Millisecond), crdt.NodeID{0xff}, to); len(early) != 0 {
		t.Errorf("told before %v: %v", admittedHeld, early)
	}
	if got := o.flush(noon.Add(admittedHeld), crdt.NodeID{0xff}, to); len(got) != 1 || len(o.held) != 0 {
		t.Errorf("%d messages after %v and %d held, want 1 and 0", len(got), admittedHeld, len(o.held))
	}
}

// FuzzDecode feeds every decoder of this package. None may panic, or allocate
// more than a small multiple of what it was given.
func FuzzDecode(f *testing.F) {
	f.Add(encodeVisits(1, someVisits(3)))
	f.Add(encodeAck(7))
	f.Add(encodeQuestion(question{room: roomID, passEnd: noon}))
	f.Add(encodeReply(reply{end: noon}))
	f.Add([]byte{0x93, 1, 1, 0xdd, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, msg []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		decodeVisits(msg)
		decodeAck(msg)
		decodeQuestion(msg)
		decodeReply(msg)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 64<<10+32*uint64(len(msg)) {
			t.Errorf("%d bytes made the decoders allocate %d", len(msg), used)
		}
	})
}
