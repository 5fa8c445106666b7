package sim

import (
	"math"
	"slices"
	"time"

	"github.com/ropeline/ropeline/node/replica"
)

// Who reaches whom, and what membership makes of it. Membership itself is not
// run: each node hears of a change after a delay of its own, as was measured
// with the real one.
const (
	failSeenMin = 5 * time.Second // a node or a way is lost
	failSeenMax = 6500 * time.Millisecond
	joinSeenMin = 200 * time.Millisecond // it is there, or there again
	joinSeenMax = 700 * time.Millisecond

	// noticed is the grid of changes: those of one step are told together.
	noticed = int64(100 * time.Millisecond)

	longAgo = math.MinInt64 / 2
)

// standing is how a node stands in the eyes of the others.
type standing struct {
	up       bool
	left     bool  // went in good order: that is told, not found out
	since    int64 // up or not since
	fell     int64 // when it was lost last, and came back: where no way was open by then, nobody saw that
	came     int64
	booted   int64 // when the present start began
	conflict bool  // whether it has said that its disk is not its own
	readyAt  int64 // when it said that it is ready; math.MaxInt64: not yet

	fails, joins int64 // the delays after which this node hears of others
}

// mesh knows which ways are open. Nodes of one group always reach each other:
// groups are the sites, and each node that is cut off by itself.
type mesh struct {
	machines []*machine
	byID     []*machine
	group    []int32 // by machine
	sites    int
	ways     [][]way // from group, to group
}

// notice is what a node is told of last: the changes of one step, at one start.
type notice struct {
	at      int64
	started uint32
}

// way is from one group to another.
type way struct {
	cuts  int   // how many faults close it
	meets bool  // whether membership would find it open, there and back or by a third
	since int64 // meets or not since
}

func newMesh(sites int, machines []*machine) *mesh {
	n := sites + len(machines)
	m := &mesh{machines: machines, sites: sites}
	for _, node := range machines {
		m.group = append(m.group, node.siteNo)
	}
	m.sort()
	m.ways = make([][]way, 0, n)
	for range sites {
		m.grow()
	}
	return m
}

// grow adds a group that everybody reaches.
func (m *mesh) grow() int32 {
	n := len(m.ways)
	for g := range m.ways {
		m.ways[g] = append(m.ways[g], way{meets: true, since: longAgo})
	}
	row := make([]way, n+1)
	for g := range row {
		row[g] = way{meets: true, since: longAgo}
	}
	m.ways = append(m.ways, row)
	return int32(n)
}

// alone gives a node a group of its own, where it is as reachable as its site.
func (m *mesh) alone(node *machine) int32 {
	old := m.group[node.no]
	if int(old) >= m.sites {
		return old
	}
	g := m.grow()
	for o := range m.ways {
		m.ways[g][o], m.ways[o][g] = m.ways[old][o], m.ways[o][old]
	}
	m.ways[g][g] = way{meets: true, since: longAgo}
	m.group[node.no] = g
	return g
}

// cut closes a way (by is 1) or opens it again (by is −1), as far as this fault
// goes.
func (m *mesh) cut(from, to int32, by int) { m.ways[from][to].cuts += by }

// open reports whether a message gets from one node to another.
func (m *mesh) open(from, to *machine) bool {
	return m.ways[m.group[from.no]][m.group[to.no]].cuts == 0
}

// both reports whether two groups reach each other there and back.
func (m *mesh) both(a, b int) bool { return m.ways[a][b].cuts == 0 && m.ways[b][a].cuts == 0 }

// settle works out which groups membership would find alive from where: those
// that answer, be it by way of a third.
func (m *mesh) settle(now int64) {
	inhabited := m.inhabited()
	for a := range m.ways {
		for b := range m.ways {
			meets := m.both(a, b)
			for c := 0; c < len(m.ways) && !meets; c++ {
				meets = inhabited[c] && c != a && c != b && m.both(a, c) && m.both(c, b)
			}
			w := &m.ways[a][b]
			if meets == w.meets {
				continue
			}
			w.since = turned(w.since, now, meets)
			w.meets = meets
		}
	}
}

func (m *mesh) inhabited() []bool {
	lives := make([]bool, len(m.ways))
	for _, node := range m.machines {
		if node.seen.up {
			lives[m.group[node.no]] = true
		}
	}
	return lives
}

// turned returns since when something is as it is, after it changed. A failure
// that is over before anybody can have found it out has never been.
func turned(since, now int64, up bool) int64 {
	if up && now-since < int64(failSeenMin) {
		return longAgo
	}
	return now
}

// peers appends who lives, as one node has it by now, to dst. The node itself may
// be among them. They are in order of id.
func (m *mesh) peers(dst []replica.Peer, observer *machine, now int64) []replica.Peer {
	fails, joins := observer.seen.fails, observer.seen.joins
	from := m.group[observer.no]
	for _, o := range m.byID {
		w, st := &m.ways[from][m.group[o.no]], &o.seen
		since := w.since
		if !w.meets && st.came >= w.since {
			since = min(since, st.fell)
		}
		if !holds(w.meets, since, now, fails, joins) {
			continue
		}
		loss := fails
		if st.left {
			loss = joins
		}
		if !holds(st.up, st.since, now, loss, joins) {
			continue
		}
		boot := o.boot
		if now-st.booted < joins {
			if boot == 1 {
				continue // nobody has heard of it yet
			}
			boot-- // of the new start
		}
		dst = append(dst, replica.Peer{ID: o.id, Boot: boot, Site: o.site, Ready: st.readyAt <= now-joins})
	}
	return dst
}

// gone returns the sites whose nodes have all left in good order, as one node has
// it by now.
func (m *mesh) gone(observer *machine, now int64) []string {
	var sites []string
	for first := 0; first < len(m.machines); {
		site, all := m.machines[first].siteNo, true
		for ; first < len(m.machines) && m.machines[first].siteNo == site; first++ {
			st := &m.machines[first].seen
			all = all && st.left && !st.up && now-st.since >= observer.seen.joins
		}
		if all {
			sites = append(sites, siteName(site))
		}
	}
	return sites
}

// sort puts the nodes in order of their ids, which change when a disk is lost.
func (m *mesh) sort() {
	m.byID = slices.SortedFunc(slices.Values(m.machines), func(a, b *machine) int { return a.id.Compare(b.id) })
}

// holds reports whether something counts as up for one who hears of it late.
func holds(up bool, since, now, fails, joins int64) bool {
	if up {
		return now-since >= joins
	}
	return now-since < fails
}

// changed plans when each node hears of what is different from now on.
func (s *sim) changed() {
	s.mesh.settle(s.now)
	s.regroup()
	at := (s.now + noticed) / noticed * noticed
	for _, m := range s.machines {
		// A start that comes later in the same step has to be told by itself.
		n := notice{at, m.started}
		if m.notice == n {
			continue
		}
		if m.notice.started != n.started {
			s.hearsOfLosses(m)
		}
		m.notice = n
		for _, d := range []int64{m.seen.joins, m.seen.fails} {
			s.heap.add(at+d, members, m.no, m.started)
		}
	}
}

// hearsOfLosses plans when a node that has just started hears of who was lost shortly before:
// when it would have if it had run all the time.
func (s *sim) hearsOfLosses(m *machine) {
	lost := func(up bool, since int64) {
		if at := (since+noticed)/noticed*noticed + m.seen.fails; !up && at > s.now {
			s.heap.add(at, members, m.no, m.started)
		}
	}
	for _, o := range s.machines {
		lost(o.seen.up, o.seen.since)
	}
	for _, w := range s.mesh.ways[s.mesh.group[m.no]] {
		lost(w.meets, w.since)
	}
}

// meet tells a node who lives.
func (s *sim) meet(m *machine) {
	s.driven = m
	m.joined = true
	s.peers = s.mesh.peers(s.peers[:0], m, s.now)
	now := m.clock.at(s.now)
	m.brain.SetGone(s.mesh.gone(m, s.now))
	m.brain.SetPeers(s.lists.share(s.peers), now)
	s.store(m)
}

// lists are the lists of members that were told last. Most nodes see the same, and
// keep what they are told: thousands of copies would not fit into memory.
type lists struct {
	last [4][]replica.Peer
	next int
}

// share returns a list that says what peers says and that nobody changes.
func (l *lists) share(peers []replica.Peer) []replica.Peer {
	for _, known := range l.last {
		if slices.Equal(known, peers) {
			return known
		}
	}
	fresh := slices.Clone(peers)
	l.last[l.next] = fresh
	l.next = (l.next + 1) % len(l.last)
	return fresh
}
