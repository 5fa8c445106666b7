package adminserver

import (
	"net/netip"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// How often an address may ask that presents no good token, and whoever presents one.
const (
	askRate  = 300 // in a second, on the average
	askBurst = 600

	// Requests without a token that is good, so that nobody finds one by trying.
	missRate  = rate.Limit(0.5)
	missBurst = 20

	askersMax = 4096
)

// asker is who is limited as one: a token that is good, wherever it comes from, or else what counts as one address. So
// strangers who share an address with an operator use up nothing of what the operator may.
type asker struct {
	token string
	from  netip.Prefix
}

// limits bounds how often each asker may ask. The zero value is not ready.
type limits struct {
	mu  sync.Mutex // guards the following
	all *lru.Cache[asker, *limit]
}

// limit is that of one asker.
type limit struct{ asks, misses *rate.Limiter }

func newLimits() (*limits, error) {
	all, err := lru.New[asker, *limit](askersMax)
	return &limits{all: all}, err
}

func (l *limits) of(who asker) *limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	one, ok := l.all.Get(who)
	if !ok {
		one = &limit{rate.NewLimiter(askRate, askBurst), rate.NewLimiter(missRate, missBurst)}
		l.all.Add(who, one)
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
