package node

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/transport"
)

const (
	tickInterval    = 50 * time.Millisecond
	memberInterval  = time.Second // events are hints; the list is the truth
	persistInterval = time.Second
	persistShare    = 20 // the loop spends at most one part in so many on writing its state down

	// furnishPatience is how long a node that has the state of its site keeps
	// visitors out because that has no rights yet. Those of a new mesh take a moment
	// to be written and to get there, on a busy machine or a slow disk seconds, and
	// whoever came in it would have to queue.
	furnishPatience = 5 * time.Second
)

// loop is the one goroutine that calls a node's core, all but the functions that any may call.
type loop struct {
	*Node
	to    Mesh
	saver *saver
	past  *pastFile
	pace  *pacer

	await    awaiting
	awaiting bool // whom to ask is not known yet

	started  time.Time
	opened   time.Time // when visitors could come in as far as the core goes; zero: they cannot
	conflict time.Time // when it was first seen that the node has to end; zero: it has not been
	members  time.Time // when they were last looked at
	persist  time.Time // when counts are due to be written down
}

func newLoop(n *Node, mesh Mesh, saver *saver, past *pastFile) *loop {
	now := n.Now()
	return &loop{
		Node: n, to: mesh, saver: saver, past: past,
		await:    awaiting{site: n.cfg.Site, patience: n.patience(), since: now},
		awaiting: true,
		started:  now,
	}
}

// run works until ctx ends, or the node has to.
func (l *loop) run(ctx context.Context) error {
	l.pace = newPacer()
	defer l.pace.Stop()
	defer l.moved.Store(0)
	for {
		l.moved.Store(l.Now().UnixNano())
		l.pace.woken(l.core)
		refresh := false
		select {
		case <-ctx.Done():
			return nil
		case err := <-l.bootEnds():
			return err
		case in := <-l.inbox:
			l.receive(l.to, in)
			continue
		case <-l.core.Wake():
			now := l.Now()
			l.send(l.to, l.core.Flush(now))
			l.journal.step(l.core, now)
			continue
		case o := <-l.journal.outcomes:
			l.send(l.to, l.journal.settle(l.core, o, l.Now()))
			continue
		case o := <-l.orders:
			now := l.Now()
			o.done <- o.do(l.core, now)
			l.journal.step(l.core, now)
			continue
		case <-l.changed:
			refresh = true
		case <-l.pace.C:
		}
		if err := l.tick(refresh, l.Now()); err != nil {
			return err
		}
	}
}

// tick does what is due with time; refresh says that members may have changed.
func (l *loop) tick(refresh bool, now time.Time) error {
	if refresh || l.awaiting || now.Sub(l.members) >= memberInterval {
		if l.look(now); l.awaiting {
			return nil // to be told of nobody is to have nobody to ask
		}
	}
	if err := l.core.Conflict(); err != nil {
		return l.stepDown(err, now)
	}
	l.send(l.to, l.core.Tick(now))
	l.send(l.to, l.journal.overdue(l.core, now))
	l.journal.step(l.core, now)
	l.open(now)
	l.watchFacts()
	l.past.keep(l.core.TakeHistory())
	if !now.Before(l.persist) {
		l.sayUnkept(l.saver.step(l.core.replica, now))
		l.persist = now.Add(max(persistInterval, persistShare*l.Now().Sub(now)))
	}
	l.pace.ticked(l.core, l.serves.Load())
	return nil
}

// look tells the core of the members that there are.
func (l *loop) look(now time.Time) {
	l.members = now
	all := slices.DeleteFunc(l.to.Members(), func(p transport.Peer) bool { return p.Pending })
	if l.awaiting = l.awaiting && l.await.on(all, l.to, now); l.awaiting {
		l.noteUnfit(now.Sub(l.started))
		return
	}
	l.meet(all, now)
	l.lookForNamed(all, now)
	l.compareClocks(l.to, all, now)
	l.sayRefusals(now)
}

// stepDown ends the node because of err; nil as long as it has last words to tell.
func (l *loop) stepDown(err error, now time.Time) error {
	if l.conflict.IsZero() {
		l.conflict = now
		if err := l.cfg.Data.Refuse(err); err != nil { // at once: requests under way may keep the process for long
			return err
		}
	}
	if !errors.Is(err, ErrDeclaredDead) || now.Sub(l.conflict) >= toldFor {
		return err
	}
	l.send(l.to, l.core.lastWords(now)) // whoever starts here next does not know what operators have set at this node
	l.journal.step(l.core, now)
	return nil
}

// open lets visitors in once all is there that they need.
func (l *loop) open(now time.Time) {
	if l.opened.IsZero() {
		l.noteUnfit(now.Sub(l.started))
	}
	if l.opened.IsZero() && l.core.Ready() {
		l.opened = now
		l.to.SetReady(true)
		if k := l.core.catalog; k != nil && len(k.left) > 0 {
			l.log.Warn("rooms are not in this node's file any more, and go on: they are the mesh's", "rooms", k.left)
		}
	}
	if l.opened.IsZero() {
		return
	}
	after := now.Sub(l.opened)
	if after >= minterPatience {
		l.warnOfMinter(now)
	}
	if l.serves.Load() || l.GoesOnLeaving() || !l.bootstrapped() {
		return
	}
	if (l.core.Furnished(now) || after >= furnishPatience) && l.hasLimits(after) {
		l.serves.Store(true)
		l.log.Info("ready", "peers", len(l.core.peers), "after", now.Sub(l.started).Round(time.Millisecond))
	}
}

// limitsPatience is how long a node that starts waits to be told what others have counted for rate limits.
const limitsPatience = 3 * time.Second

// hasLimits reports whether this node may count for rate limits, after so long: others have told what they know.
func (n *Node) hasLimits(after time.Duration) bool {
	from := n.core.awaitsLimits()
	if len(from) > 0 && after >= limitsPatience {
		n.log.Warn("this node begins without all that others have counted for rate limits: up to a limit may pass once more", "from", from)
		return true
	}
	return len(from) == 0
}

// factsNear is the part of the facts there is room for from which on the log warns.
const factsNear = 0.75

// compareClocks finds out whether this node's clock is right.
func (n *Node) compareClocks(mesh Mesh, members []transport.Peer, now time.Time) {
	is, looked := n.watch.look(mesh, members, n.serves.Load(), now, n.log)
	if !looked {
		return
	}
	if !is.right {
		n.clockOff.Store(&clockOff{is})
	} else {
		n.clockOff.Store(nil)
	}
	n.send(mesh, n.core.SetClock(is.right, is.ahead, now))
}

// watchFacts says, once each, that facts are many and that some had no room.
func (n *Node) watchFacts() {
	known, refused := n.core.factsKnown.Load(), n.core.factsFull.Load()
	if !n.factsMany && float64(known) >= factsNear*crdt.MaxKeys {
		n.factsMany = true
		n.log.Warn("this mesh knows nearly as many facts of rooms and nodes as there is room for, and they stay: see how many rooms and nodes a mesh may have", "facts", known, "most", crdt.MaxKeys)
	}
	if !n.factsLost && refused > 0 {
		n.factsLost = true
		n.log.Error("there is no room for what this node has to tell of its rooms: rooms that are new get no rights, and those of nodes that go may be lost; the limits hold", "facts", known, "most", crdt.MaxFacts)
	}
}
