package httpfront

import (
	"time"

	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// Rooms finds the room of a request. It is asked on every request, from many
// goroutines at once, so it must neither block nor take a lock that is shared
// with slow work.
type Rooms interface {
	// Route returns the room for a host (lower case, no port, no trailing dot;
	// empty if the client named none) and a path (room.Path.Route), or nil if the
	// request goes to the origin without a room, be it because the room is suspended.
	// Rooms are compared with ==.
	Route(host, path string) Room
}

// Room decides about the requests of one room. Like Rooms it is called on every
// request, from many goroutines at once.
type Room interface {
	// Settings returns the settings that hold now, an event's included. The result
	// is shared and must not be modified by either side afterwards.
	Settings() *room.Settings

	// Decide answers one request. known reports whether the request carried a
	// pass of this room that could be opened; p is the zero Pass otherwise. For who
	// is on the site it answers from memory. For others it may ask another node, and
	// so wait for as long as a visitor may be kept waiting: a second or two.
	Decide(p node.Pass, known bool, now time.Time) node.Verdict

	// Standing says what a waiting pass of the room is worth, before anything is decided. asks
	// says that its visitor shows it now, for which it is remembered for longer what it was
	// exchanged for. It must not block.
	Standing(p node.Pass, asks bool, now time.Time) node.Standing

	// Hold returns the verdict on somebody who is to wait, also where a place is free: who
	// has the waiting pass p, or is new if p is zero. It is as of Decide, and so New, unless the
	// room has nobody wait. Who is not counted keeps the place, and nobody else has to leave
	// one free: such a verdict is not New.
	Hold(p node.Pass, counted bool, now time.Time) node.Verdict

	// Queue counts a visitor whose verdict was New as one who waits. Whoever is refused
	// instead was never there.
	Queue(p node.Pass)

	// CountCrowded notes such a visitor whom the front did not have queue.
	CountCrowded()

	// CountDryRun notes a request of somebody who would have queued and passes.
	CountDryRun()

	// CountShared notes a request with a pass that too many addresses use.
	CountShared()

	// CountBypass notes a request that passes the room because a rule says so.
	CountBypass()

	// End ends the session of p, because the origin says so, and reports whether there
	// is one. Whoever shows p again is new. It must not block.
	End(p node.Pass, now time.Time) bool
}
