package httpfront

import (
	"context"
	"encoding/binary"
	"hash/maphash"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// A pass of somebody who is on the site lets in whoever shows it. Those who hand copies
// round are told by the addresses: people have few within a minute, also where they are
// on the way from one network to the next.

// sharing is what is kept of the addresses that passes are used from.
type sharing struct {
	seed   maphash.Seed
	passes passTable
	told   rate.Sometimes // keeps it from filling the log
}

func newSharing() *sharing {
	return &sharing{seed: maphash.MakeSeed(), told: rate.Sometimes{Interval: warnEvery}}
}

// turnsBack reports whether the pass of somebody on the site is shared, and the room wants
// the client of r to queue instead. Whoever else has the pass goes on.
func (f *Front) turnsBack(r *request, p *node.Pass, decider Room, made *roomFront, now time.Time) bool {
	sh := &made.sharing
	return sh.Looks() && f.isShared(r, p, decider, decider.Settings().Name, sh.Addresses, now) && sh.Queues()
}

// isShared reports whether a pass that is used by the client of r is in use by as many
// other addresses as may use it, or more. That is in the status and, now and then, in the
// log.
func (f *Front) isShared(r *request, p *node.Pass, decider Room, name string, limit int, now time.Time) bool {
	client := r.via.client
	if !client.IsValid() || isUnlimited(client, f.cfg.TrustedProxies) {
		return false
	}
	sh := f.sharing
	if sh.passes.use(binary.LittleEndian.Uint64(p.Visitor[:]), sh.hash(addressOf(client)), limit, now.Unix()) {
		return false
	}
	decider.CountShared()
	sh.told.Do(func() {
		f.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn, "a pass is used from more addresses than addresses-per-pass",
			slog.String("room", name), slog.Any("network", networkOf(client)), slog.Int("limit", limit))
	})
	return true
}

// hash tells an address from others; never 0.
func (sh *sharing) hash(p netip.Prefix) uint32 {
	a := p.Addr().As16()
	return max(1, uint32(maphash.Bytes(sh.seed, a[:])))
}

// passTable remembers for each pass the addresses that have used it within a minute. It
// takes no more memory than it has from the beginning: of passes that fall together, the
// one that was not used for longest gives way, and those that many share are used all the
// time. The zero value is ready.
type passTable struct {
	locks [passLocks]struct {
		sync.Mutex
		_ [56]byte // keeps neighbours apart
	}
	sets [passSets][passWays]passSlot
}

const (
	passWays  = 4
	passSets  = 1 << 14 // 2^16 slots of 64 bytes: 4 MiB
	passLocks = 256
)

// passSlot is one pass, in one line of memory.
type passSlot struct {
	key    uint64 // the beginning of the visitor's id, which is random
	newest int64  // when it was used last, in Unix seconds
	seen   [room.MaxSharedAddresses]struct {
		address uint32 // hash; 0: none
		at      uint32 // when it was used last, the low bits of Unix seconds
	}
}

// use notes that a pass is used from an address, and reports whether that is one of the
// first limit addresses that have used it and go on to, at least once a minute. Others
// are not noted, so those that were there first keep the pass to themselves. now is in
// Unix seconds.
func (t *passTable) use(key uint64, address uint32, limit int, now int64) bool {
	i := key % passSets
	lock := &t.locks[i%passLocks]
	lock.Lock()
	defer lock.Unlock()
	s := findPass(&t.sets[i], key)
	s.newest = now
	free := -1
	for i := range s.seen[:limit] {
		a := &s.seen[i]
		switch {
		case a.address == address:
			a.at = uint32(now)
			return true
		case free < 0 && (a.address == 0 || uint32(now)-a.at >= uint32(time.Minute/time.Second)):
			free = i
		}
	}
	if free < 0 {
		return false
	}
	s.seen[free].address, s.seen[free].at = address, uint32(now)
	return true
}

// findPass returns the slot of a pass; where there is none, that of the pass that was not
// used for longest, which is forgotten.
func findPass(set *[passWays]passSlot, key uint64) *passSlot {
	oldest := &set[0]
	for i := range set {
		s := &set[i]
		if s.key == key {
			return s
		}
		if s.newest < oldest.newest {
			oldest = s
		}
	}
	*oldest = passSlot{key: key}
	return oldest
}
