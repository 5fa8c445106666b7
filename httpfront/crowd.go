package httpfront

import (
	"context"
	"hash/maphash"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/time/rate"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/conn/address"
	"github.com/ropeline/ropeline/httpfront/gate/setassoc"
	"github.com/ropeline/ropeline/httpfront/page"
	"github.com/ropeline/ropeline/httpfront/page/lang"
	"github.com/ropeline/ropeline/node/room"
)

// A crowd of machines that keep no cookie is new with each request, and would make a line
// as long as it likes. So an address, and all together, may add only so many visitors to
// the line of a room within a minute. Nobody else is asked: who has a pass that counts, or
// finds a place free, is not new in the line.

// warnEvery is between two warnings of one kind, so that a flood does not fill the log.
const warnEvery = time.Minute

// crowd is what is kept of addresses. The zero value is not ready; see newCrowd.
type crowd struct {
	seed      maphash.Seed
	addresses addressTable

	crowded, full rate.Sometimes // keep a flood from filling the log
}

func newCrowd() *crowd {
	c := &crowd{seed: maphash.MakeSeed(), addresses: newAddressTable()}
	c.crowded.Interval, c.full.Interval = warnEvery, warnEvery
	return c
}

// key names an address in a room. Two have the same one by chance only, once in 2^64,
// and nobody can tell from outside which.
func (c *crowd) key(id crdt.RoomID, p netip.Prefix) uint64 {
	var buf [len(id) + 16]byte
	copy(buf[:], id[:])
	a := p.Addr().As16()
	copy(buf[len(id):], a[:])
	return maphash.Bytes(c.seed, buf[:])
}

// newVisitors is the part of a room's limits that lasts as long as the limits.
type newVisitors struct {
	perAddress int           // a minute; 0: no limit
	all        *rate.Limiter // nil: no limit
}

// newNewVisitors returns the limits of a room; what old has counted goes on to count
// where the limit is the same.
func newNewVisitors(n room.NewVisitors, old *newVisitors) newVisitors {
	made := newVisitors{perAddress: n.PerAddress}
	switch {
	case n.All == 0:
	case old != nil && old.all != nil && old.all.Burst() == n.All:
		made.all = old.all
	default:
		made.all = rate.NewLimiter(rate.Limit(float64(n.All)/time.Minute.Seconds()), n.All)
	}
	return made
}

// mayQueue reports whether somebody new may wait in a room, and counts it. If not, that is
// in the status and, now and then, in the log.
func (f *Front) mayQueue(r *request, decider Room, s *room.Settings, limits *newVisitors, now time.Time) bool {
	c, client := f.crowd, r.via.Client
	if n := limits.perAddress; n > 0 && client.IsValid() && !address.IsUnlimited(client, f.cfg.TrustedProxies) &&
		!c.addresses.take(c.key(s.ID, address.Counted(client)), n, now.UnixNano()) {
		decider.CountCrowded()
		c.crowded.Do(func() {
			f.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn, "an address brings too many new visitors, and more have to wait for the next minute; if it is a proxy, name it in trusted-proxies",
				slog.String("room", s.Name), slog.Any("network", address.Network(client)), slog.Int("limit", n))
		})
		return false
	}
	if limits.all != nil && !limits.all.AllowN(now, 1) {
		decider.CountCrowded()
		c.full.Do(func() {
			f.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn, "too many new visitors come for the line of a room, and more have to wait for the next minute",
				slog.String("room", s.Name), slog.Int("limit", limits.all.Burst()))
		})
		return false
	}
	return true
}

// Somebody new who may not wait may ask again after so many seconds, and a part of as many
// again: not all at once.
const crowdRetry = 15

// answerCrowded answers somebody new who may not wait. There is no pass in it. Programs,
// the script of the built-in page among them, are told what those are told who wait, with
// no place; browsers get a page of a few words, as a flood is not worth a large one.
func answerCrowded(w *answer, a *queueAnswer) {
	of := &a.waiting
	of.verdict.Refresh = time.Duration(crowdRetry+rand.IntN(crowdRetry)) * time.Second
	p := of.made.page
	p.Fill(&a.state, page.Input{
		Settings: of.settings, Verdict: &of.verdict, Now: of.now,
		AcceptLanguage: of.req.AcceptLanguage, Unsafe: !of.req.IsSafe(), Crowded: true,
	})
	h := w.begin(of.status())
	a.describeAll(h)
	h.Set(stateField, stateCrowded)
	if p.JSON() && page.PrefersJSON(of.req.Accept) {
		h.Set("Content-Type", "application/json")
		h.Set("Content-Language", a.state.Language())
		w.buf = p.AppendJSON(w.buf, &a.state)
		return
	}
	l := lang.Of(a.state.Language())
	w.notice(page.Notice{
		Lang: l, Title: l.Text(lang.TitleTurnedAway), Text: l.Text(lang.MessageCrowded),
		Code: strconv.Itoa(http.StatusTooManyRequests), Frames: p.FrameAncestors(), Reloads: of.req.IsSafe() && a.state.Refresh() > 0,
	})
}

// The table of addresses never grows. Of the addresses that compete for a slot, the one whose
// bucket is the emptiest is forgotten, so a flood of addresses makes it forget those that have
// hardly come.
const (
	addressWays  = 8
	addressSets  = 1 << 13 // 2^16 slots of 16 bytes: 1 MiB
	addressLocks = 64
)

// addressTable holds a bucket for each address in a room, as in the generic cell rate algorithm
// (ITU-T I.371): one number says both how full it is and when that was. It is when the bucket
// will be empty, in Unix nanoseconds, if nothing more comes, and it is the priority of the slot,
// which needs no value beside it.
type addressTable struct {
	*setassoc.Table[struct{}]
}

func newAddressTable() addressTable {
	return addressTable{setassoc.New[struct{}](addressSets, addressWays, addressLocks)}
}

// take counts one more for a key, and reports whether that was within a limit, perMinute
// at once and perMinute more over each minute; if not, nothing is counted. now is in Unix
// nanoseconds.
func (t addressTable) take(key uint64, perMinute int, now int64) bool {
	step := max(1, int64(time.Minute)/int64(perMinute))
	bucket, mu := t.Lock(key)
	defer mu.Unlock()
	empty := max(bucket.Priority, now) + step
	if empty-now > int64(time.Minute) {
		return false
	}
	bucket.Priority = empty
	return true
}
