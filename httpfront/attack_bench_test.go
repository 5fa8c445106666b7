package httpfront

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// attackRate is how often one source comes in BenchmarkAttack, in a second.
const attackRate = 400_000

// BenchmarkAttack measures how long it takes to decide about a visitor who is on the site,
// while nobody else comes and while one source comes 400,000 times a second, beyond a rate
// limit. Rounds of both alternate. It reports the 99th percentile of each, and how far the
// attack got: with less than two cores it does not get as far.
func BenchmarkAttack(b *testing.B) {
	rule := fiveAMinute(func(r *limit.Rule) { r.Expression, r.RequestsPerPeriod = `http.user_agent eq "attack"`, 1000 })
	o := newOnSite(b, room.Escrow, rule, manyRequests()[1])
	var attacks atomic.Int64
	hit := o.attacker()
	var calm, attacked []time.Duration
	var under time.Duration
	for b.Loop() {
		calm = append(calm, o.visits()...)
		stop, done := make(chan struct{}), make(chan struct{})
		from := time.Now()
		go func() {
			defer close(done)
			n := int64(0)
			for begun := time.Now(); ; {
				select {
				case <-stop:
					attacks.Add(n)
					return
				default:
				}
				for due := int64(time.Since(begun).Seconds() * attackRate); n < due; n++ {
					hit()
				}
			}
		}()
		attacked = append(attacked, o.visits()...)
		close(stop)
		<-done
		under += time.Since(from)
	}
	b.ReportMetric(p99(calm), "calm-p99-ns")
	b.ReportMetric(p99(attacked), "attacked-p99-ns")
	b.ReportMetric(p99(attacked)/p99(calm), "ratio")
	b.ReportMetric(float64(attacks.Load())/under.Seconds(), "attacks/s")
}

// visits asks for the visitor 5,000 times, every tenth of a millisecond, and returns how
// long each took.
func (o *onSite) visits() []time.Duration {
	all := make([]time.Duration, 0, 5000)
	next := time.Now()
	for range cap(all) {
		next = next.Add(100 * time.Microsecond)
		for time.Now().Before(next) {
		}
		from := time.Now()
		o.ask()
		all = append(all, time.Since(from))
	}
	return all
}

// attacker returns what decides about a request of a source that comes too often.
func (o *onSite) attacker() func() {
	bad := *o
	bad.req = newRequest()
	bad.peer = o.peer.Next()
	no := bad.req.Parse(http1.RawHead{
		Method: []byte("GET"), Target: []byte("/shop/item?id=7"), Protocol: []byte("HTTP/1.1"),
		Fields: []byte("Host: shop.example\r\nUser-Agent: attack\r\n\r\n"),
	})
	if no.Code != 0 {
		o.tb.Fatal(no)
	}
	bad.req.via.Locate(&bad.req.Request, bad.peer, true, &bad.front.trust)
	bad.front.describe(bad.req)
	for l := bad.front.limits.Load().rules[0]; !l.ask(bad.req, node.VisitorID{}, o.now).verdict.Limited; {
	}
	return func() {
		a := admitted{req: bad.req}
		bad.req.limits = bad.req.limits[:0]
		bad.req.via.Locate(&bad.req.Request, bad.peer, true, &bad.front.trust)
		var w waiting
		bad.front.judge(bad.front.roomOf(bad.req), &a, &w)
	}
}

func p99(all []time.Duration) float64 {
	slices.Sort(all)
	return float64(all[len(all)*99/100])
}
