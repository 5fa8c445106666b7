package transport

import "time"

const (
	// pingRetry is how soon an unanswered ping is repeated; after
	// silenceLimit without an answer the peer is called directly.
	pingRetry    = 500 * time.Millisecond
	silenceLimit = 3 * pingRetry

	// pingsKept bounds the pings whose answer is still welcome: on a path
	// slower than pingRetry every answer comes after the next ping.
	pingsKept = 4
)

// pinger decides when to ping and which answers count. Times are on the
// mesh's monotonic clock. The zero value has sent nothing.
type pinger struct {
	kept [pingsKept]struct {
		t1 int64
		at time.Duration
	}
	n       int           // pings ever sent
	open    bool          // the last ping is unanswered
	first   time.Duration // when the first of the unanswered pings was sent; valid while open
	lastOut time.Duration // when the last ping was sent
}

// wait returns how long to wait before the next ping: nothing while one is
// unanswered, else until the next whole interval of the mesh's clock. So the
// pings of all links go together, and their answers come together: a node that
// nobody asks wakes once for all its peers, not for each of them.
func (p *pinger) wait(now, interval time.Duration) time.Duration {
	if p.n == 0 || p.open {
		return 0
	}
	return p.lastOut.Truncate(interval) + interval - now
}

func (p *pinger) sent(t1 int64, now time.Duration) {
	k := &p.kept[p.n%pingsKept]
	k.t1, k.at = t1, now
	if !p.open {
		p.open, p.first = true, now
	}
	p.n++
	p.lastOut = now
}

// answered returns how long the answer to the ping of t1 took, and reports
// whether it was waited for. Each ping is answered once.
func (p *pinger) answered(t1 int64, now time.Duration) (time.Duration, bool) {
	for i := range min(p.n, pingsKept) {
		k := &p.kept[i]
		if k.t1 == t1 && k.t1 != 0 {
			k.t1 = 0
			p.open = false
			return now - k.at, true
		}
	}
	return 0, false
}

// silence returns for how long pings have gone unanswered.
func (p *pinger) silence(now time.Duration) time.Duration {
	if !p.open {
		return 0
	}
	return now - p.first
}
