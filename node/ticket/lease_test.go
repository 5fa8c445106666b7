package ticket

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

var (
	epoch = time.Unix(1_767_268_800, 0)
	self  = crdt.Incarnation{Node: crdt.NodeID{1}, Boot: 3}
	other = crdt.NodeID{2}
)

const session = time.Minute

func at(seconds float64) time.Time {
	return epoch.Add(time.Duration(seconds * float64(time.Second)))
}

func mine(seq uint64) Ticket    { return Ticket{Anchor: self.Node, Boot: self.Boot, Seq: seq} }
func earlyOf(seq uint64) Ticket { return Ticket{Anchor: self.Node, Boot: self.Boot - 1, Seq: seq} }

// anchor is a table and the count that its deltas add up to.
type anchor struct {
	*Leases
	t     *testing.T
	count int
}

func newAnchor(t *testing.T, block int) *anchor {
	l, d := leasesAfter(self, session, block, at(0))
	a := &anchor{Leases: l, t: t}
	a.book(d)
	return a
}

func (a *anchor) book(d Delta) {
	a.t.Helper()
	a.count += int(d.P) - int(d.N)
	if a.count != a.InUse() {
		a.t.Errorf("deltas add up to %d, in use are %d", a.count, a.InUse())
	}
}

func (a *anchor) open(seq uint64, s float64) time.Time {
	a.t.Helper()
	end, d, err := a.Open(mine(seq), at(s), at(s))
	if err != nil {
		a.t.Fatal(err)
	}
	a.book(d)
	return end
}

func (a *anchor) checkIn(t Ticket, passEnd, when, now float64) (time.Time, error) {
	a.t.Helper()
	end, d, err := a.CheckIn(t, at(passEnd), at(when), at(now))
	a.book(d)
	return end, err
}

func (a *anchor) wantInUse(n int) {
	a.t.Helper()
	if a.InUse() != n {
		a.t.Errorf("got %d in use, want %d", a.InUse(), n)
	}
}

func wantEnd(t *testing.T, got time.Time, err error, s float64) {
	t.Helper()
	if err != nil || !got.Equal(at(s)) {
		t.Errorf("got end %v (%v), want %v", got.Sub(epoch), err, at(s).Sub(epoch))
	}
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}

func TestLeaseEndsAGuardLate(t *testing.T) {
	a := newAnchor(t, 0)
	wantEnd(t, a.open(1, 0), nil, 60)
	a.book(a.Expire(at(60.4)))
	a.wantInUse(1)
	a.book(a.Expire(at(60.401)))
	a.wantInUse(0)
	_, err := a.checkIn(mine(1), 60, 59, 60.5)
	wantErr(t, err, ErrEnded)
}

// TestCheckInWithinTheGuard: the visitor's node has a clock that is behind, and
// the lease still counts.
func TestCheckInWithinTheGuard(t *testing.T) {
	a := newAnchor(t, 0)
	a.open(1, 0)
	end, err := a.checkIn(mine(1), 60, 60.4, 60.4)
	wantEnd(t, end, err, 120.4)
	a.wantInUse(1)
}

// TestNumbersOutOfOrder: a ticket has one lease, whether or not higher numbers had theirs
// before, and however often it is opened.
func TestNumbersOutOfOrder(t *testing.T) {
	a := newAnchor(t, 0)
	for _, seq := range []uint64{5, 3, 5, 4, 3, 9, 5} {
		a.open(seq, 0)
	}
	a.wantInUse(4)
	a.book(a.End(mine(9), at(1)))
	a.open(3, 30) // lasts longer than the others
	a.open(9, 30)
	a.book(a.Expire(at(61)))
	a.wantInUse(2)
}

func TestCheckInNeverShortens(t *testing.T) {
	a := newAnchor(t, 0)
	a.open(1, 0)
	end, err := a.checkIn(mine(1), 60, 30, 30)
	wantEnd(t, end, err, 90)
	end, err = a.checkIn(mine(1), 60, 10, 31) // overtaken on the way
	wantEnd(t, end, err, 90)
	end, err = a.checkIn(mine(1), 60, 45, 40) // from a clock ahead of ours
	wantEnd(t, end, err, 100)
	wantEnd(t, a.open(1, 35), nil, 100) // opened twice
	a.wantInUse(1)
	a.book(a.Expire(at(100)))
	a.wantInUse(1)
	a.book(a.Expire(at(101)))
	a.wantInUse(0)
}

func TestExpiredLeaseIsEndedBeforeItIsSwept(t *testing.T) {
	a := newAnchor(t, 0)
	a.open(1, 0)
	_, err := a.checkIn(mine(1), 60, 61, 61)
	wantErr(t, err, ErrEnded)
	a.wantInUse(1) // still counted: the sweep gives it back, once
	a.book(a.Expire(at(61)))
	a.wantInUse(0)
}

func TestEndIsOnce(t *testing.T) {
	a := newAnchor(t, 0)
	a.open(1, 0)
	a.book(a.End(mine(1), at(1)))
	a.book(a.End(mine(1), at(1)))
	a.book(a.End(Ticket{Anchor: other, Seq: 1}, at(1)))
	a.wantInUse(0)
	a.book(a.Expire(at(100)))
	a.wantInUse(0)
}

func TestForeignTickets(t *testing.T) {
	a := newAnchor(t, 0)
	_, err := a.checkIn(Ticket{Anchor: other, Boot: 3, Seq: 1}, 60, 1, 1)
	wantErr(t, err, ErrNotMine)
	_, err = a.checkIn(Ticket{Anchor: self.Node, Boot: 4, Seq: 1}, 60, 1, 1)
	wantErr(t, err, ErrFuture)
	_, err = a.checkIn(mine(77), 60, 1, 1)
	wantErr(t, err, ErrEnded)
	if _, _, err := a.Open(Ticket{Anchor: self.Node, Boot: 2, Seq: 1}, at(0), at(0)); !errors.Is(err, ErrNotMine) {
		t.Errorf("opened a ticket of an earlier start: %v", err)
	}
	a.wantInUse(0)
}

func TestRestartBlock(t *testing.T) {
	a := newAnchor(t, 3)
	a.wantInUse(3)
	end, err := a.checkIn(earlyOf(1), 50, 10, 10)
	wantEnd(t, end, err, 70)
	end, err = a.checkIn(earlyOf(1), 50, 20, 20)
	wantEnd(t, end, err, 80)
	a.wantInUse(3) // counted in the block
	a.open(1, 20)
	a.wantInUse(4) // new ones come on top

	// A second claim ends within the block: it stays counted, and its ticket is
	// used up.
	_, err = a.checkIn(earlyOf(2), 1, 0.5, 0.9)
	wantEnd(t, at(60.5), err, 60.5)
	a.book(a.Expire(at(61)))
	a.wantInUse(4)
	_, err = a.checkIn(earlyOf(2), 80, 61, 61)
	wantErr(t, err, ErrEnded)

	// The block closes after a session and three guards: the claim that lives
	// stands for itself now, and what nobody claimed is free.
	a.book(a.Expire(at(61.2)))
	a.wantInUse(4)
	a.book(a.Expire(at(61.201)))
	a.wantInUse(2)
	_, err = a.checkIn(earlyOf(3), 120, 61.3, 61.3)
	wantErr(t, err, ErrEnded)
	end, err = a.checkIn(earlyOf(1), 80, 62, 62)
	wantEnd(t, end, err, 122)
	a.book(a.Expire(at(122.401)))
	a.wantInUse(0)
}

func TestRestartBlockRefusesPastPasses(t *testing.T) {
	a := newAnchor(t, 2)
	_, err := a.checkIn(earlyOf(1), 4, 5, 5)
	wantErr(t, err, ErrEnded)
	end, err := a.checkIn(earlyOf(2), 4.7, 5, 5) // within the guard
	wantEnd(t, end, err, 65)
	// However far ahead a pass claims to last, the lease is a session at most.
	end, err = a.checkIn(earlyOf(3), 9999, 5, 5)
	wantEnd(t, end, err, 65.4)
	a.wantInUse(2)
}

// TestRestartBlockEndsByTheClock: not only by the sweep that follows.
func TestRestartBlockEndsByTheClock(t *testing.T) {
	a := newAnchor(t, 2)
	if _, err := a.checkIn(earlyOf(1), 120, 61.2, 61.2); err != nil {
		t.Error(err)
	}
	_, err := a.checkIn(earlyOf(2), 120, 61.201, 61.201)
	wantErr(t, err, ErrEnded)
}

// TestRestartBlockTooSmall: what the anchor had forgotten is let in and counted
// on top.
func TestRestartBlockTooSmall(t *testing.T) {
	a := newAnchor(t, 1)
	for seq := range uint64(3) {
		if _, err := a.checkIn(earlyOf(seq), 50, 10, 10); err != nil {
			t.Fatal(err)
		}
	}
	a.wantInUse(3)
	a.book(a.End(earlyOf(0), at(11)))
	a.wantInUse(3)
	a.book(a.Expire(at(62)))
	a.wantInUse(2)
	a.book(a.End(earlyOf(1), at(11)))
	a.wantInUse(1)
	a.book(a.Expire(at(100)))
	a.wantInUse(0)
	if len(a.claims) != 0 {
		t.Errorf("%d claims are kept for ever", len(a.claims))
	}
}

func TestSessionChanges(t *testing.T) {
	a := newAnchor(t, 0)
	a.open(1, 0)
	a.SetSession(10 * time.Second)
	a.open(2, 1)
	a.book(a.Expire(at(12)))
	a.wantInUse(1)
	end, err := a.checkIn(mine(1), 60, 20, 20)
	wantEnd(t, end, err, 60) // never shorter
}

const benchLeases = 1_000_000

func benchmarkLeases() *Leases {
	l, _ := leasesAfter(self, session, 0, at(0))
	for seq := range uint64(benchLeases) {
		now := at(float64(seq) / benchLeases * 60)
		l.Open(mine(seq), now, now)
	}
	return l
}

func BenchmarkLeasesCheckIn(b *testing.B) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	l := benchmarkLeases()
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportAllocs()
	seq := uint64(0)
	for b.Loop() {
		seq = (seq + 1) % benchLeases
		l.CheckIn(mine(seq), at(60), at(59), at(59))
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/benchLeases, "B/lease")
}

func BenchmarkLeasesOpen(b *testing.B) {
	l := benchmarkLeases()
	b.ReportAllocs()
	seq := uint64(benchLeases)
	for b.Loop() {
		seq++
		l.Open(mine(seq), at(59), at(59))
	}
}

// BenchmarkLeasesExpire ends a million leases that began over a minute.
func BenchmarkLeasesExpire(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		l := benchmarkLeases()
		b.StartTimer()
		for now := 60.0; now < 121; now += 0.05 {
			l.Expire(at(now))
		}
		if l.InUse() != 0 {
			b.Fatalf("%d left", l.InUse())
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchLeases, "ns/lease")
}

// leasesAfter returns the table of an anchor that starts at now. restartBlock is
// how many leases it may have had before, as far as its last confirmed state
// tells; 0 for a node that never ran. They count as in use from the start.
func leasesAfter(self crdt.Incarnation, session time.Duration, restartBlock int, now time.Time) (*Leases, Delta) {
	l := newLeases(&self, session)
	// The block opens at size 0 too: a visitor whose lease was missed in the
	// reckoning is let in and counted on top rather than refused.
	l.openBlock(max(0, restartBlock), l.earlier(), now.Add(session+blockGuards*Guard).UnixMilli())
	return l, l.take()
}

// TestNumbersSpreadOverBuckets has numbers of leases that stay, in a row or with gaps, share
// buckets: few as they come, and not many more than lie side by side whatever gaps they have.
func TestNumbersSpreadOverBuckets(t *testing.T) {
	const n = 1 << 12
	for _, c := range []struct{ gap, most uint64 }{{1, 12}, {3, 16}, {sideBySide, 4 * sideBySide}, {1000, 4 * sideBySide}, {1 << 10, 4 * sideBySide}, {1 << 20, 4 * sideBySide}} {
		var in [n]uint64
		most := uint64(0)
		for i := range uint64(n) {
			b := &in[seqKey(1+i*c.gap).Hash()%n]
			*b++
			most = max(most, *b)
		}
		if most > c.most {
			t.Errorf("every number in %d stays: %d of %d in one bucket, want %d at most", c.gap, most, n, c.most)
		}
	}
}
