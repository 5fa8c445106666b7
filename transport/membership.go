package transport

import (
	"time"

	"github.com/hashicorp/serf/serf"
)

// run follows the gossip until the mesh stops.
func (ms *members) run() {
	t := ms.m.cfg.Timing
	retry := time.NewTicker(t.RetryInterval)
	defer retry.Stop()
	reconcile := time.NewTicker(t.ReconcileInterval)
	defer reconcile.Stop()
	for {
		select {
		case <-ms.m.runCtx.Done():
			return
		case <-ms.kick:
		case <-retry.C:
			ms.adopt()
		case <-reconcile.C:
			ms.audit()
		case v := <-ms.done:
			ms.conclude(v)
		}
		ms.step()
	}
}

// step compares the list with gossip and with the links, tells of changes and
// starts the checks that are due.
func (ms *members) step() {
	claims := ms.m.gossip.claims() // before the lock: serf calls superseded under its own
	var events []Event
	ms.mu.Lock()
	ms.takeClaimsLocked(claims)
	for id, mb := range ms.byID {
		if ev, ok := ms.decideLocked(id, mb); ok {
			events = append(events, ev)
		}
		if len(mb.claims) == 0 && mb.peer.State != Alive && !mb.checking {
			delete(ms.byID, id)
			if ms.m.links.get(id) == nil {
				ms.m.post.forget(id)
			}
		}
	}
	ms.mu.Unlock()
	for _, ev := range events {
		ms.tell(ev)
	}
}

func (ms *members) takeClaimsLocked(claims []claim) {
	for _, mb := range ms.byID {
		clear(mb.claims)
	}
	for _, c := range claims {
		if c.id == ms.m.cfg.ID {
			continue // earlier incarnations of this node
		}
		mb := ms.byID[c.id]
		if mb == nil {
			mb = &member{claims: map[uint64]claim{}}
			ms.byID[c.id] = mb
		}
		mb.claims[c.boot] = c
	}
	for _, mb := range ms.byID {
		ms.sameAddressLocked(mb)
	}
}

// sameAddressAfter is how long a peer has to claim this node's address until that is told of:
// a node that took the place of another one has its address while that one is found out to be
// gone.
const sameAddressAfter = 30 * time.Second

// sameAddressLocked tells of a peer that lives, as others say, where this node is.
func (ms *members) sameAddressLocked(mb *member) {
	for _, c := range mb.claims {
		if c.addr != ms.m.advertise || c.status != serf.StatusAlive {
			continue
		}
		if mb.sameAddress == 0 {
			mb.sameAddress = ms.m.now()
		} else if ms.m.now()-mb.sameAddress > sameAddressAfter {
			ms.m.addressTaken(c)
		}
		return
	}
	mb.sameAddress = 0
}

// decideLocked looks at one member. It returns the event that follows, if any.
func (ms *members) decideLocked(id PeerID, mb *member) (Event, bool) {
	if ev, ok := ms.proveLocked(id, mb); ok {
		return ev, true
	}
	if mb.peer.State != Alive {
		ms.tryLocked(id, mb)
		return Event{}, false
	}
	c, known := mb.claims[mb.peer.Boot]
	status := c.status
	if !known {
		status = serf.StatusFailed
	}
	if status != serf.StatusLeaving {
		mb.leaving = 0
	}
	switch {
	case mb.bye == mb.peer.Boot+1, status == serf.StatusLeft:
		return ms.becomeLocked(mb, Left, Leave), true
	case status == serf.StatusLeaving:
		// Serf has been seen to leave members in this state for ever.
		if mb.leaving == 0 {
			mb.leaving = ms.m.now()
		} else if ms.m.now()-mb.leaving > leavingLimit {
			ms.checkLocked(id, mb)
		}
	case status == serf.StatusFailed, status == serf.StatusNone, mb.suspected:
		ms.checkLocked(id, mb)
	default:
		ms.tryLocked(id, mb) // it may have been restarted
		return updateLocked(mb, c)
	}
	return Event{}, false
}

// leavingLimit is how long a member may take to leave before it is checked
// like one that failed.
const leavingLimit = time.Minute

// proveLocked makes a peer Alive that is claimed to be and that has proven the
// claim on a connection.
func (ms *members) proveLocked(id PeerID, mb *member) (Event, bool) {
	l := ms.m.links.get(id)
	if l == nil || l.dead() || l.silentFor() >= silenceLimit {
		return Event{}, false
	}
	c, ok := mb.claims[l.hello.boot]
	if !ok || c.status != serf.StatusAlive || mb.bye == c.boot+1 {
		return Event{}, false
	}
	if mb.peer.State == Alive && c.boot <= mb.peer.Boot || mb.peer.State != 0 && c.boot < mb.peer.Boot {
		return Event{}, false
	}
	if c.tags.site != l.site {
		if ms.m.now() >= mb.nextCheck {
			mb.nextCheck = ms.m.now() + strikeSpan
			ms.m.count.refusedPeers.Add(1)
			ms.m.log.Warn("peer refused: it claims another site than its certificate", "peer", id.String(), "claimed", c.tags.site, "certified", l.site)
		}
		return Event{}, false
	}
	typ := Join
	if mb.peer.State == Alive || mb.peer.State == Failed {
		typ = Rejoin
	}
	mb.peer = Peer{ID: id, Name: c.tags.name, Site: l.site, Boot: c.boot, Ready: c.tags.ready, Pending: c.tags.pending, Addr: c.addr}
	return ms.becomeLocked(mb, Alive, typ), true
}

// becomeLocked changes the state of a member.
func (ms *members) becomeLocked(mb *member, s State, typ EventType) Event {
	mb.peer.State = s
	mb.suspected, mb.leaving, mb.nextCheck = false, 0, 0
	return Event{Type: typ, Peer: mb.peer}
}

// updateLocked takes over what a living peer says about itself.
func updateLocked(mb *member, c claim) (Event, bool) {
	p := mb.peer
	p.Name, p.Ready, p.Pending, p.Addr = c.tags.name, c.tags.ready, c.tags.pending, c.addr
	if p == mb.peer {
		return Event{}, false
	}
	mb.peer = p
	return Event{Type: Update, Peer: p}, true
}
