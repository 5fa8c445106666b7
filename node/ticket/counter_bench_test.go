package ticket

import (
	"fmt"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// BenchmarkGrant measures how many tickets go through one counter: a desk asks, the
// counter takes tickets out of its stock, the grant goes over the wire and to the
// visitors, and the lender hears what was used.
func BenchmarkGrant(b *testing.B) {
	for _, size := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("call of %d", size), func(b *testing.B) { benchmarkGrant(b, size) })
	}
}

func benchmarkGrant(b *testing.B, size int) {
	var d Desk[int]
	var a Accounts
	s := NewStock(leads, aRoom)
	lenders := []crdt.Incarnation{aLender, otherLender}
	now, block, seq := at(0), uint32(0), uint64(1)
	lend := func() {
		for _, l := range lenders {
			block++
			s.Add(Loan{Room: aRoom, To: leads, Lender: l, Block: block, First: seq, N: 100_000, ValidUntil: now.Add(LoanValid)}, now)
			seq += 100_000
		}
	}
	give := func(want Places) Offer {
		n := int64(want.Sum())
		if s.Rest(now) < n {
			lend()
		}
		return Offer{Given: want, Tickets: takeFrom(s, n, aCaller.Node, now)}
	}
	tickets := 0
	b.ReportAllocs()
	for b.Loop() {
		for i := range size {
			d.Apply(Applicant[int]{Place: now, Reserved: true, Who: i})
		}
		call, _ := d.Next(theCounter, now)
		call, err := DecodeCall(AppendCall(nil, call))
		if err != nil {
			b.Fatal(err)
		}
		g, _ := a.Answer(aCaller, "a", call, give, now)
		if g, err = DecodeGrant(AppendGrant(nil, g)); err != nil {
			b.Fatal(err)
		}
		in, _, err := d.Granted(theCounter, g, now)
		if err != nil || len(in) != size {
			b.Fatalf("%d of %d visitors got a ticket: %v", len(in), size, err)
		}
		tickets += len(in)
		now = now.Add(time.Millisecond)
		if tickets/size%50 == 0 {
			for _, c := range s.Due(0, now) {
				c, err := DecodeLoanCall(AppendLoanCall(nil, c))
				if err != nil {
					b.Fatal(err)
				}
				for _, rep := range c.Reports {
					s.Acked(ReportAck{Room: aRoom, Lender: rep.Lender, Block: rep.Block, Number: rep.Number})
				}
			}
		}
	}
	b.ReportMetric(float64(tickets)/b.Elapsed().Seconds(), "tickets/s")
}
