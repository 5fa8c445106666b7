package adminserver

import (
	"net/netip"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// How often an address may ask.
const (
	askRate  = 300 // in a second, on the average
	askBurst = 600

	// Requests without a token that is good, so that nobody finds one by trying.
	missRate  = rate.Limit(0.5)
	missBurst = 20

	addressesMax = 4096
)

// limits bounds how often each address may ask. The zero value is not ready.
type limits struct {
	mu  sync.Mutex // guards the following
	all *lru.Cache[netip.Addr, *limit]
}

// limit is that of one address.
type limit struct{ asks, misses *rate.Limiter }

func newLimits() (*limits, error) {
	all, err := lru.New[netip.Addr, *limit](addressesMax)
	return &limits{all: all}, err
}

func (l *limits) of(a netip.Addr) *limit {
	if a.Is6() && !a.Is4In6() {
		if p, err := a.Prefix(64); err == nil {
			a = p.Addr()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	one, ok := l.all.Get(a)
	if !ok {
		one = &limit{rate.NewLimiter(askRate, askBurst), rate.NewLimiter(missRate, missBurst)}
		l.all.Add(a, one)
	}
	return one
}

// wait returns how long somebody is to wait before the next request; 0: they need not, and
// this one is counted.
func wait(l *rate.Limiter, now time.Time) time.Duration {
	r := l.ReserveN(now, 1)
	d := r.DelayFrom(now)
	if d > 0 {
		r.CancelAt(now)
	}
	return d
}
