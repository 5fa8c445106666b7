package httpfront

import (
	"hash/maphash"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/httpfront/conn/address"
)

// Who goes on although a rate limit says no shall not take the processor from others. After
// the first few in a second each limited answer to an address is held for a while, which
// costs little more than a connection that does nothing: the client either waits, or its requests
// pile up in its own machine. Limits.ConnsPerAddress bounds how many are held.
const (
	limitedAtOnce = 10 // to an address in a second
	limitedHeld   = 100 * time.Millisecond
)

// hold holds an answer that tells of a rate limit. Peers through whom many visitors come are
// not held up: others may be behind it on the same connection. It returns for how long.
func (f *Front) hold(peer netip.Addr) (held time.Duration) {
	if address.IsUnlimited(peer, f.cfg.TrustedProxies) {
		return 0
	}
	if f.limitedAnswers.add(address.Counted(peer), f.cfg.Clock()) > limitedAtOnce {
		f.cfg.sleep(limitedHeld)
		held = limitedHeld
	}
	return held
}

// limitedAnswers counts limited answers by address, in the second that runs. Addresses may
// share a counter, at random; then the few are fewer. Make one with newLimitedAnswers.
type limitedAnswers struct {
	seed  maphash.Seed
	slots [4096]atomic.Uint64 // the lower halves of second and count
}

func newLimitedAnswers() *limitedAnswers { return &limitedAnswers{seed: maphash.MakeSeed()} }

// add counts an answer, and returns how many there were in this second.
func (a *limitedAnswers) add(to netip.Prefix, now time.Time) uint32 {
	slot := &a.slots[maphash.Comparable(a.seed, to)%uint64(len(a.slots))]
	for {
		was, is := slot.Load(), uint64(uint32(now.Unix()))<<32|1
		if was>>32 == is>>32 {
			is = was + 1
		}
		if slot.CompareAndSwap(was, is) {
			return uint32(is)
		}
	}
}
