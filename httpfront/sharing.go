package httpfront

import (
	"context"
	"encoding/binary"
	"hash/maphash"
	"log/slog"
	"net/netip"
	"time"

	"golang.org/x/time/rate"

	"github.com/ropeline/ropeline/httpfront/conn/address"
	"github.com/ropeline/ropeline/httpfront/gate/setassoc"
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
	return &sharing{seed: maphash.MakeSeed(), passes: newPassTable(), told: rate.Sometimes{Interval: warnEvery}}
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
	client := r.via.Client
	if !client.IsValid() || address.IsUnlimited(client, f.cfg.TrustedProxies) {
		return false
	}
	sh := f.sharing
	if sh.passes.use(binary.LittleEndian.Uint64(p.Visitor[:]), sh.hash(address.Counted(client)), limit, now.Unix()) {
		return false
	}
	decider.CountShared()
	sh.told.Do(func() {
		f.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn, "a pass is used from more addresses than addresses-per-pass",
			slog.String("room", name), slog.Any("network", address.Network(client)), slog.Int("limit", limit))
	})
	return true
}

// hash tells an address from others; never 0.
func (sh *sharing) hash(p netip.Prefix) uint32 {
	a := p.Addr().As16()
	return max(1, uint32(maphash.Bytes(sh.seed, a[:])))
}

// The table of passes never grows. Of the passes that compete for a slot, the one that was not
// used for longest is forgotten, and those that many share are used all the time.
const (
	passWays  = 4
	passSets  = 1 << 14 // 2^16 slots of 64 bytes, a line of memory: 4 MiB
	passLocks = 256
)

// passTable remembers for each pass the addresses that have used it within a minute. Its keys
// are the beginnings of visitors' ids, which are random, and the priority of a pass is when it
// was used last, in Unix seconds.
type passTable struct {
	*setassoc.Table[passUses]
}

func newPassTable() passTable {
	return passTable{setassoc.New[passUses](passSets, passWays, passLocks)}
}

// passUses are the addresses that have used a pass.
type passUses [room.MaxSharedAddresses]struct {
	address uint32 // hash; 0: none
	at      uint32 // when it was used last, the low bits of Unix seconds
}

// use notes that a pass is used from an address, and reports whether that is one of the
// first limit addresses that have used it and go on to, at least once a minute. Others
// are not noted, so those that were there first keep the pass to themselves. now is in
// Unix seconds.
func (t passTable) use(key uint64, address uint32, limit int, now int64) bool {
	pass, mu := t.Lock(key)
	defer mu.Unlock()
	pass.Priority = now
	free := -1
	for i := range pass.Value[:limit] {
		u := &pass.Value[i]
		switch {
		case u.address == address:
			u.at = uint32(now)
			return true
		case free < 0 && (u.address == 0 || uint32(now)-u.at >= uint32(time.Minute/time.Second)):
			free = i
		}
	}
	if free < 0 {
		return false
	}
	pass.Value[free].address, pass.Value[free].at = address, uint32(now)
	return true
}
