package transport

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/hashicorp/serf/serf"
)

// asked is how many other members are asked whether they reach a peer that
// does not answer.
const asked = 3

// maxTrying bounds the checks of claims under way, so that a flood of false
// members does not become a flood of handshakes. Members that are listed are
// checked in any case.
const maxTrying = 32

// verdict is the outcome of a check.
type verdict struct {
	id     PeerID
	claim  claim // what was checked
	found  bool  // the peer answered
	failed bool  // neither it nor, where they were asked, others with news of it answered
	try    bool  // started by tryLocked
}

// candidates returns what gossip says about incarnations that may be there,
// the latest first.
func (mb *member) candidates() []claim {
	var cs []claim
	for _, c := range mb.claims {
		if c.status == serf.StatusAlive || c.status == serf.StatusFailed {
			cs = append(cs, c)
		}
	}
	slices.SortFunc(cs, func(a, b claim) int { return cmp.Compare(b.boot, a.boot) })
	return cs
}

// tryLocked tries to reach an incarnation that is claimed but not listed as
// alive: a new peer, one that failed, or a successor. Each claim has its turn,
// so that a false one cannot hide the true one.
func (ms *members) tryLocked(id PeerID, mb *member) {
	now := ms.m.now()
	if mb.checking || now < mb.nextTry || ms.trying >= maxTrying {
		return
	}
	cs := slices.DeleteFunc(mb.candidates(), func(c claim) bool {
		return mb.bye == c.boot+1 || c.boot < mb.peer.Boot || (mb.peer.State == Alive && c.boot == mb.peer.Boot)
	})
	if len(cs) == 0 {
		return
	}
	c := cs[mb.tries%len(cs)]
	mb.tries++
	mb.nextTry = now + ms.m.cfg.Timing.RetryInterval
	if ms.m.group.Go(func() { ms.examine(verdict{id: id, claim: c, try: true}, false) }) {
		mb.checking = true
		ms.trying++
	}
}

// checkLocked checks whether a living peer still is.
func (ms *members) checkLocked(id PeerID, mb *member) {
	now := ms.m.now()
	if mb.checking || now < mb.nextCheck {
		return
	}
	c, known := mb.claims[mb.peer.Boot]
	if !known {
		c = claim{id: id, boot: mb.peer.Boot, addr: mb.peer.Addr, status: serf.StatusFailed}
	}
	mb.nextCheck = now + ms.m.cfg.Timing.RetryInterval
	// When gossip says failed, others have been asked already.
	ask := c.status == serf.StatusAlive
	mb.checking = ms.m.group.Go(func() { ms.examine(verdict{id: id, claim: c}, ask) })
}

// examine finds out whether a peer is there, and completes v. With ask set
// others are asked before the peer counts as failed.
func (ms *members) examine(v verdict, ask bool) {
	l := ms.reach(ms.m.runCtx, v.id, v.claim.addr)
	v.found = l != nil
	if l != nil && v.claim.status == serf.StatusFailed {
		// It is there though gossip has given it up: an exchange tells
		// both sides, and everybody behind them.
		ms.heal(l)
	}
	v.failed = l == nil && (!ask || !ms.othersReach(v.id))
	if ms.m.runCtx.Err() != nil {
		return // it failed because this mesh stops
	}
	select {
	case ms.done <- v:
	case <-ms.m.runCtx.Done():
	}
}

// conclude acts on a check. It is called by run.
func (ms *members) conclude(v verdict) {
	ms.mu.Lock()
	if v.try {
		ms.trying--
	}
	mb := ms.byID[v.id]
	if mb == nil {
		ms.mu.Unlock()
		return
	}
	mb.checking = false
	if v.claim.boot == mb.peer.Boot || v.found {
		mb.suspected = false
	}
	var ev Event
	fail := v.failed && mb.peer.State == Alive && mb.peer.Boot == v.claim.boot
	if fail {
		ev = ms.becomeLocked(mb, Failed, Fail)
		mb.nextTry = ms.m.now() + ms.m.cfg.Timing.RetryInterval
	}
	ms.mu.Unlock()
	if fail {
		ms.tell(ev)
	}
}

// tell reports one change to the owner of the mesh. It is called by run, so
// that changes are told in order.
func (ms *members) tell(ev Event) {
	p := ev.Peer
	level := slog.LevelInfo
	if ev.Type == Fail {
		level = slog.LevelWarn
	}
	ms.m.log.Log(context.Background(), level, "peer "+ev.Type.String(), "peer", p.ID.String(), "name", p.Name, "site", p.Site, "boot", p.Boot, "addr", p.Addr.String(), "ready", p.Ready)
	if ev.Type == Fail || ev.Type == Leave {
		ms.m.post.drop(p.ID)
		if l := ms.m.links.get(p.ID); l != nil && l.hello.boot <= p.Boot {
			l.close(closeRefused, "gone")
		}
	}
	if ms.m.cfg.OnEvent == nil {
		return
	}
	defer func() {
		if r := recover(); r != nil {
			ms.m.panicked("event handler", r)
		}
	}()
	ms.m.cfg.OnEvent(ev)
}

// reach calls a peer directly and returns the link on which it answered, or
// nil. When there is a connection but it seems dead, or leads elsewhere than
// to addr, a new one is tried beside it.
func (ms *members) reach(ctx context.Context, id PeerID, addr netip.AddrPort) *link {
	ctx, cancel := context.WithTimeout(ctx, ms.m.cfg.Timing.CheckTimeout)
	defer cancel()
	old := ms.m.links.get(id)
	if old == nil {
		l, err := ms.m.links.open(ctx, id, addr)
		if err != nil {
			return nil
		}
		return l
	}
	answers := make(chan *link, 2)
	tries := 1
	ask := func(f func() (*link, error)) {
		if !ms.m.group.Go(func() {
			l, err := f()
			if err != nil {
				l = nil
			}
			answers <- l
		}) {
			answers <- nil
		}
	}
	ask(func() (*link, error) {
		_, err := old.call(ctx, streamControl, controlPing, nil)
		return old, err
	})
	if old.silentFor() > 0 || old.addr != addr {
		tries++
		ask(func() (*link, error) { return ms.m.links.redial(ctx, id, addr) })
	}
	var found *link
	for range tries {
		// A successor that answers at addr counts more than the old
		// connection; both are waited for.
		if l := <-answers; l != nil && (found == nil || l.hello.boot > found.hello.boot) {
			found = l
		}
	}
	return found
}

// reachable answers the question of another member.
func (ms *members) reachable(ctx context.Context, id PeerID) bool {
	addr, ok := ms.alive(id)
	return ok && ms.reach(ctx, id, addr) != nil
}

// othersReach asks a few living members whether they reach a peer, and
// reports whether one of them does.
func (ms *members) othersReach(id PeerID) bool {
	ctx, cancel := context.WithTimeout(ms.m.runCtx, ms.m.cfg.Timing.CheckTimeout+pingRetry)
	defer cancel()
	links := slices.DeleteFunc(ms.m.links.all(), func(l *link) bool {
		return l.id == id || l.silentFor() > pingRetry || !ms.lists(l.id, l.hello.boot)
	})
	rand.Shuffle(len(links), func(i, j int) { links[i], links[j] = links[j], links[i] })
	links = links[:min(len(links), asked)]
	answers := make(chan bool, len(links))
	for _, l := range links {
		if !ms.m.group.Go(func() {
			b, err := l.call(ctx, streamControl, controlReach, id[:])
			answers <- err == nil && len(b) == 1 && b[0] == 1
		}) {
			return false
		}
	}
	for range links {
		if <-answers {
			return true
		}
	}
	return false
}

// heal exchanges state with a peer.
func (ms *members) heal(l *link) {
	ctx, cancel := context.WithTimeout(ms.m.runCtx, ms.m.cfg.Timing.StreamTimeout)
	defer cancel()
	if err := ms.m.gossip.join(ctx, l); err != nil {
		ms.m.log.Debug("exchange with a returned peer", "peer", l.id.Short(), "error", err.Error())
	}
}

// adoptAfter is how long a peer may be connected before gossip must know it.
const adoptAfter = time.Second

// adopt exchanges state with peers that are connected though gossip does not
// speak of them. News is told a limited number of times, and when many nodes
// start at once some miss it; the next regular exchange can be a long way off.
// Each connection gets one try, so that a peer that does not want cannot keep
// this node busy.
func (ms *members) adopt() {
	for _, l := range ms.m.links.all() {
		if ms.m.now()-l.since < adoptAfter || ms.claimed(l.id, l.hello.boot) || l.adopted.Swap(true) {
			continue
		}
		ms.m.group.Go(func() { ms.heal(l) })
	}
}

// audit asks one living peer whether it lists this node as alive. Serf has
// been seen to let a node see everybody and be seen by nobody.
func (ms *members) audit() {
	links := slices.DeleteFunc(ms.m.links.all(), func(l *link) bool { return !ms.lists(l.id, l.hello.boot) })
	if len(links) == 0 {
		return
	}
	l := links[rand.IntN(len(links))]
	ms.m.group.Go(func() {
		for range 2 { // the first may have come before the news
			ctx, cancel := context.WithTimeout(ms.m.runCtx, ms.m.cfg.Timing.CheckTimeout)
			b, err := l.call(ctx, streamControl, controlPing, nil)
			cancel()
			if err != nil || (len(b) == 1 && b[0] == 1) {
				return
			}
			select {
			case <-time.After(ms.m.cfg.Timing.RetryInterval):
			case <-ms.m.runCtx.Done():
				return
			}
		}
		ms.m.log.Warn("a peer does not list this node as alive; joining it again", "peer", l.id.String())
		ms.heal(l)
	})
}
