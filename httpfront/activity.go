package httpfront

import (
	"context"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/node"
)

// activity has a visitor count as active while bytes flow, in either direction. A
// request is judged when it comes, and an upload, an answer or a tunnel may go on for many
// sessions after that; so the pass is judged again, as that of a request is, once per
// activePart of a session at most. Who moves the bytes does not wait for it: another
// machine may have to be asked. Its methods may be called from many goroutines at once.
// Nil, and the zero value, do nothing. Its goroutines may outlast the request, so it is
// none of what is used again for another.
type activity struct {
	front      *Front
	room       Room // nil: nobody has to be active for this
	host, path string
	over       func() // is called once the session is over; nil: what was begun goes on

	first   int64        // the first due
	due     atomic.Int64 // ns since 1970, by Config.Clock: when bytes have the pass judged; or unwatched
	flowed  atomic.Bool  // bytes have flowed since the pass was judged
	judging atomic.Bool

	pass node.Pass // the newest that is known; belongs to who has set judging
}

const (
	// activePart is the part of a session after which bytes count again. Rooms make a
	// session longer in steps of the same size.
	activePart = 8

	unwatched = math.MaxInt64

	// wakeLeast is how long nobody is woken, should the clock be behind the machine's.
	wakeLeast = 10 * time.Millisecond
)

// watch returns what has the bytes of an admitted request count.
func (f *Front) watch(of *admitted) *activity {
	a := new(activity)
	if of.room == nil || !of.pass.Accepted() {
		return a
	}
	a.front, a.room, a.pass = f, of.room, of.pass
	a.host, a.path = of.req.Host, of.req.Path.Route
	a.first = of.judged.Add(a.step()).UnixNano()
	a.due.Store(a.first)
	return a
}

func (a *activity) step() time.Duration { return a.room.Settings().SessionDuration / activePart }

// Moved notes that bytes have flowed.
func (a *activity) Moved() {
	if a == nil || a.room == nil {
		return
	}
	if !a.flowed.Load() {
		a.flowed.Store(true)
	}
	if now := a.front.cfg.Clock(); now.UnixNano() >= a.due.Load() {
		a.again(now)
	}
}

// Wake returns quiet, or when the bytes that have flowed shall have the pass judged, if
// that is sooner. Where it is due already it is done.
func (a *activity) Wake(quiet time.Time) time.Time {
	if a == nil || a.room == nil || !a.flowed.Load() {
		return quiet
	}
	now := a.front.cfg.Clock()
	left := time.Duration(a.due.Load() - now.UnixNano())
	if left <= 0 {
		a.again(now)
		return quiet
	}
	if at := time.Now().Add(max(left, wakeLeast)); at.Before(quiet) {
		return at
	}
	return quiet
}

// finish says that no more bytes will flow. The last ones of what went on for long count;
// what was soon over has counted when it began.
func (a *activity) finish() {
	if a == nil || a.room == nil || !a.flowed.Load() {
		return
	}
	if due := a.due.Load(); due != a.first && due != unwatched {
		a.again(a.front.cfg.Clock())
	}
}

// stop ends the watch over the pass.
func (a *activity) stop() {
	if a != nil {
		a.due.Store(unwatched)
	}
}

// again has the pass judged, in a goroutine of its own that lasts for as long as
// Room.Decide does. Nothing happens if one is under way.
func (a *activity) again(now time.Time) {
	if !a.judging.CompareAndSwap(false, true) {
		return
	}
	a.flowed.Store(false)
	a.due.Store(now.Add(a.step()).UnixNano())
	go a.judge(now)
}

func (a *activity) judge(now time.Time) {
	defer a.judging.Store(false)
	defer func() {
		if p := recover(); p != nil {
			a.front.logPanic(p)
		}
	}()
	switch stands := a.front.cfg.Rooms.Route(a.host, a.path); {
	case stands == nil:
		return // suspended, or gone: nobody has to be active
	case stands == a.room && a.goesOn(now):
		return
	}
	a.stop()
	if a.over != nil {
		a.front.cfg.Logger.LogAttrs(context.Background(), slog.LevelDebug, "an upgraded connection is closed: its session is over",
			slog.String("room", a.room.Settings().Name))
		a.over()
	}
}

// goesOn reports whether the visitor is still on the site. Whose session has run out
// because nothing was said for long, and who gets a place as somebody new would, has that
// from now on; the browser has the old pass, so the next request may count for one more.
func (a *activity) goesOn(now time.Time) bool {
	ranOut := now.After(a.pass.LeaseEnd)
	if ranOut && a.room.Settings().DisableSessionRenewal {
		return false
	}
	v := a.room.Decide(a.pass, true, now) // who is new does not queue: nobody would come for the place
	switch {
	case !v.Admit:
		return false
	case v.Pass.Visitor == a.pass.Visitor, ranOut:
		a.pass = v.Pass
		return true
	}
	a.room.End(v.Pass, now) // the site has ended the session, and wants nobody to go on
	return false
}
