package ticket

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// benchRights returns rights that are never short.
func benchRights(b *testing.B) *Rights {
	r, _, err := OpenRights(RightsConfig{Self: self, Session: session}, []Put{{keyMinted, appendAmount(nil, Amount{1 << 40, 1 << 40})}}, at(0))
	if err != nil {
		b.Fatal(err)
	}
	r.Expire(at(90))
	r.setSpan()
	r.setBound(Amount{1 << 40, 1 << 40})
	r.Writes()
	r.Confirmed(at(90))
	return r
}

func BenchmarkRightsEnter(b *testing.B) {
	r := benchRights(b)
	b.ReportAllocs()
	seq := uint64(0)
	for b.Loop() {
		now := at(90 + float64(seq)/200_000)
		if seq%10_000 == 0 {
			r.Open(10_000, now)
			r.Expire(now)
		}
		seq++
		if _, _, err := r.Enter(Ticket{Anchor: self.Node, Boot: self.Boot, Seq: seq}, now, now, now); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRightsIssueAndCheckIn(b *testing.B) {
	r := benchRights(b)
	b.ReportAllocs()
	var g []Range
	n := uint64(0)
	for b.Loop() {
		now := at(90 + float64(n)/200_000)
		if i := n % 1000; i == 0 {
			g, _ = r.Issue(1000, now)
			r.Expire(now)
		}
		t := g[0].Ticket(n % 1000)
		n++
		if _, _, err := r.CheckIn(t, now.Add(session), now, now); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRightsLendAndReport(b *testing.B) {
	r := benchRights(b)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		now := at(90 + float64(n)/200_000)
		if n%10_000 == 0 {
			r.Lend(crdt.Incarnation{Node: other, Boot: 1}, 10_000, now)
			l := r.LoansDue(now)[0]
			r.Reported(other, Report{Lender: l.Lender, Block: l.Block, Number: 1, Used: []Used{{l.First, l.N, time.Second}}, Final: true}, now)
			r.Expire(now)
		}
		n++
	}
}
