package room

import (
	"fmt"
	"math"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// oracle knows the truth of a mesh, and what the rules promise of it. A promise
// that is broken is a violation.
//
// The limits. A node admits only while its picture has slots, so by itself it
// keeps the limits together with all that it knows of. What it cannot know is
// who was let in elsewhere since the moment from which on its news is not
// complete. So right after an admission
//
//	active ≤ total_active_users + unknown
//	admitted in 60 s ≤ new_users_per_minute + unknown
//
// where unknown counts those. Where news takes no time and all goes well, the
// policies even and counter keep both limits to the letter, although views are a
// moment old: their parts add up. Where news is late and nothing else is wrong,
// even exceeds them by at most a place per node. Who was let in beyond a cut does
// not excuse anything once the cut has been noticed: shares are frozen.
//
// The order. When somebody is let in under fifo, everybody of the same site in
// an older bucket has a place, and is let in at the next request, unless under
// Escrow the right that counts promise is not there yet. The other exceptions
// are those that follow from what news takes: somebody was let in meanwhile by a
// node that did not know, or an older visitor came back or, having changed site,
// still counts at the other one.
type oracle struct {
	exact      bool // nothing is late or fails: limits hold to the letter
	gentle     bool // news takes a while, and that is all
	violations []string

	visitors  []*meshVisitor
	waiting   int
	active    int
	copies    int            // copies of passes that were let in
	leases    []admission    // sessions, in order
	admitted  []*meshVisitor // in order
	joined    []join
	settling  time.Time // until then counts are off because of a fault
	crashes   int
	healed    time.Time // when the last cut ended
	lost      int       // leases that died with their node, untold
	lostUntil time.Time
	short     bool           // the last one in turn found no right
	grantedBy *meshNode      // the counter that granted the last place
	members   []*meshVisitor // who waited
	requests  int
	minutes   int           // how often somebody was told more than one
	overtaken int           // how often the order was at stake
	backBy    time.Time     // who is away comes back
	skew      time.Duration // most by which two clocks differ

	peak     int     // of active
	peakRate int     // of leases in any 60 s
	used     float64 // active visitors × time while enough wait
	busy     float64 // limit × the same time
}

type admission struct {
	at    time.Time
	node  *meshNode
	by    *meshNode // who granted the place: the node, or a counter
	blind int       // who was let in before without by knowing
}

// join is the moment from which on somebody counts in the queue.
type join struct {
	at     time.Time
	bucket int64
}

// witness is what the oracle remembers of one visitor.
type witness struct {
	counted time.Time // since when, in the site where it polled last
	lastOK  time.Time // last poll that counted; zero: none
	told    time.Duration
	behind  overtaking
	lowest  Estimate // that was told under terms
	terms   uint32
}

// overtaking is that somebody a bucket behind was let in.
type overtaking struct {
	at, seen time.Time // seen: what the one who let in knew everything up to
	terms    uint32
	by       int // visitor
}

func (o *oracle) fail(format string, args ...any) {
	if len(o.violations) < 5 {
		o.violations = append(o.violations, fmt.Sprintf(format, args...))
	}
}

func (m *mesh) failAt(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	m.trace("VIOLATION: %s", what)
	m.fail("at %.3f s: %s", m.now.Sub(m.start).Seconds(), what)
}

func (o *oracle) measure(s Settings, d time.Duration, nodes int) {
	if o.waiting >= 2*nodes {
		o.used += float64(o.active) * d.Seconds()
		o.busy += float64(s.TotalActiveUsers) * d.Seconds()
	}
}

// faulted says that counts will be off for a while: those whose owner changed
// count twice until the old one has missed them, or not until they ask again.
func (m *mesh) faulted() {
	absent := absentAfter(m.settings.RefreshInterval * 5 / 4)
	m.settling = m.now.Add(max(absent, rowKept) + m.far + 5*time.Second)
}

// unseen returns since when n may miss news.
func (m *mesh) unseen(n *meshNode) time.Time {
	since := m.now
	for i, s := range m.sites {
		p := &n.site.outside[i]
		if s == n.site {
			p = &n.own
		}
		if t, missing := oldestUnread(p, s); missing {
			since = earlier(since, t)
		}
	}
	return since
}

// checkLimits is called when a place is about to be taken at n.
func (m *mesh) checkLimits(n *meshNode) {
	by := n
	if m.grantedBy != nil {
		by = m.grantedBy
	}
	s := by.view.Settings
	unknown := m.unknownTo(by)
	m.leases = append(m.leases, admission{m.now, n, by, max(unknown, m.unknownTo(n))})
	m.active++
	inMinute := m.countMinute(time.Minute - 2*m.skew)
	m.peak, m.peakRate = max(m.peak, m.active), max(m.peakRate, inMinute)
	if s.Policy == Open || s.Policy == Escrow || s.QueueingMethod == Passthrough {
		return // under Escrow the rights are the limit: see checkHeld
	}
	slack := unknown
	if m.crashes == 0 && m.copies == 0 && s.Policy != Curve {
		slack -= m.acrossCut(by)
	}
	if m.exact && m.copies == 0 && s.Policy != Curve {
		slack = 0
	}
	if m.gentle && m.copies == 0 && s.Policy == Even {
		slack = min(slack, len(m.nodes))
	}
	if m.now.Before(m.lostUntil) {
		slack += m.lost
	}
	if most := s.TotalActiveUsers + slack; m.active > most {
		m.failAt("node %d lets in one more: %d are in, limit %d, %d of them unknown to it", by.index, m.active, s.TotalActiveUsers, slack)
	}
	if most := s.NewUsersPerMinute + slack; inMinute > most {
		m.failAt("node %d lets in one more: %d in 60 s, limit %d, %d of them unknown to it", by.index, inMinute, s.NewUsersPerMinute, slack)
	}
}

// unknownTo returns how many were let in that the view of n cannot know of.
func (m *mesh) unknownTo(n *meshNode) int {
	unknown := 0
	for i := len(m.leases) - 1; i >= 0 && !m.leases[i].at.Before(n.seen); i-- {
		if a := &m.leases[i]; a.node != n && a.by != n {
			unknown++
		}
	}
	return unknown
}

// noticed is how long after a cut both sides know of it.
const noticed = silentAfter + crdt.TickSpan + 5*time.Second

// acrossCut returns how many of those unknown to n were let in beyond a cut when
// both sides had known of it for some time. Each side keeps the other's share, so
// that they add up without a word. Shares thaw a while after the last closed tick,
// which was there before the cut.
func (m *mesh) acrossCut(n *meshNode) int {
	if !n.settings.freezes() || m.now.Before(m.healed.Add(m.far+time.Minute)) {
		return 0
	}
	held := 0
	for i := len(m.leases) - 1; i >= 0 && !m.leases[i].at.Before(n.seen); i-- {
		a := &m.leases[i]
		for _, s := range [2]*meshSite{n.site, a.node.site} {
			if a.node.site != n.site && s.cut && a.at.Sub(s.cutAt) > noticed && m.now.Sub(s.cutAt)+silentAfter < n.settings.ShareFreeze {
				held++
				break
			}
		}
	}
	return held
}

// countMinute returns how many were let in during the last d.
func (m *mesh) countMinute(d time.Duration) int {
	n := 0
	for i := len(m.leases) - 1; i >= 0 && m.now.Sub(m.leases[i].at) < d; i-- {
		n++
	}
	return n
}

// checkDecision looks at what Decide says to somebody who waits.
func (m *mesh) checkDecision(n *meshNode, v *meshVisitor, d Decision) {
	s, now := n.view.Settings, m.clock(n)
	at, event := n.settings.At(now) // to the moment, however old the view is
	admits := d.Action == Apply || d.Action == Compete
	open := s.Policy == Open || s.QueueingMethod == Passthrough
	if admits && (at.QueueAll || at.QueueingMethod == Reject) {
		m.failAt("visitor %d may enter: %v, although nobody may", v.number, d.Action)
	}
	arrival := v.vis.Arrival
	if d.New || arrival.IsZero() {
		arrival = now
	}
	if admits && event.Prequeueing && !arrival.Before(event.PrequeueStart) {
		m.failAt("visitor %d may enter: %v, before the event starts", v.number, d.Action)
	}
	if d.Action == Enter || d.Action == Ask {
		m.failAt("visitor %d waits, and gets %v", v.number, d.Action)
	}
	if v.lastOK.IsZero() {
		return
	}
	age, slack := m.now.Sub(v.lastOK), 2*m.skew
	if d.New && age < v.told+s.PlaceKept-slack {
		m.failAt("visitor %d loses the place after %v", v.number, age)
	}
	early := time.Duration(0)
	if s.QueueingMethod != Random {
		early = tolerance(v.told)
	} else {
		early = time.Millisecond // to which times in passes are rounded
	}
	switch {
	case d.Action != TooEarly && !open && age < v.told-early-slack:
		m.failAt("visitor %d asks %v after the last time, was told %v, and gets %v", v.number, age, v.told, d.Action)
	case d.Action == TooEarly && age >= v.told+slack:
		m.failAt("visitor %d asks %v after the last time, was told %v, and is too early", v.number, age, v.told)
	case d.Action == TooEarly && d.New:
		m.failAt("visitor %d asks too early and loses the place", v.number)
	}
}

// checkInside looks at what Decide says to somebody who has been let in.
func (m *mesh) checkInside(n *meshNode, v *meshVisitor, d Decision, l *lease) {
	s, now := n.view.Settings, m.clock(n)
	ended := now.After(v.vis.LeaseEnd)
	switch {
	case !ended && d.Action != Enter:
		m.failAt("visitor %d is inside until %v from now, and gets %v", v.number, v.vis.LeaseEnd.Sub(now), d.Action)
	case ended && d.Action == Enter,
		ended && d.Action == Ask && s.DisableSessionRenewal:
		m.failAt("the session of visitor %d ended %v ago, and it gets %v", v.number, now.Sub(v.vis.LeaseEnd), d.Action)
	case !l.ended && m.now.Sub(l.end) < 0 && ended && !s.DisableSessionRenewal && d.Action != Ask:
		m.failAt("the session of visitor %d was extended, and it gets %v", v.number, d.Action)
	}
}

// checkEntry is called when a visitor is let in at n: who of the same site is in
// an older bucket has a place from now on.
func (m *mesh) checkEntry(n *meshNode, v *meshVisitor, before Visitor) {
	s := n.view.Settings
	if s.QueueingMethod != FIFO || s.Policy == Open || m.now.Before(m.settling) {
		return
	}
	by := n
	if m.grantedBy != nil {
		by = m.grantedBy
	}
	bucket := int64(math.MaxInt64) // who is new comes after all
	if !before.Arrival.IsZero() {
		bucket = BucketOf(before.Place, s.BucketSpan)
	}
	seen := by.seen
	if n.seen.Before(seen) {
		seen = n.seen
	}
	if v.site != nil && v.site != n.site && !before.Arrival.IsZero() {
		// Where it asked last it counts as waiting until it is missed there.
		m.joined = append(m.joined, join{m.now, BucketOf(before.Place, s.BucketSpan)})
	}
	for _, a := range m.visitors {
		if a.state != waiting || a == v || a.site != n.site || a.counted.IsZero() || !a.behind.at.IsZero() ||
			!a.counted.Before(seen) || BucketOf(a.vis.Place, s.BucketSpan) >= bucket ||
			m.now.Sub(a.lastOK) > absentAfter(a.told)-time.Second || m.justCame(a) {
			continue
		}
		m.overtaken++
		a.behind = overtaking{at: m.now, seen: seen, terms: n.view.Terms, by: v.number}
	}
}

// justCame reports whether other sites may not reckon with a visitor yet. Beyond the part of
// its own site such a one has no place, and when that part shrinks as news comes, somebody who
// was let in a moment before may be a bucket behind.
func (m *mesh) justCame(v *meshVisitor) bool {
	const known = silentAfter + 13*time.Second // a cut, and how long it has to be over
	return m.settings.Policy != Escrow && len(m.sites) > 1 && m.now.Sub(v.vis.Arrival) < known
}

// checkRefusal is called when a visitor is told to wait on at n.
func (m *mesh) checkRefusal(n *meshNode, v *meshVisitor) {
	s := n.view.Settings
	onTime := !v.lastOK.IsZero() && m.now.Sub(v.lastOK) < absentAfter(v.told)-2*m.skew && v.site == n.site
	if b := v.behind; !b.at.IsZero() {
		v.behind = overtaking{}
		if onTime && n.seen.After(b.at) && m.now.Sub(b.at) > 2*m.skew && n.view.Terms == b.terms &&
			s.QueueingMethod == FIFO && !m.short && m.copies == 0 && m.now.After(m.settling) && !m.disturbed(n, v, b) {
			m.failAt("visitor %d is told to wait, although visitor %d, a bucket behind, was let in %v ago",
				v.number, b.by, m.now.Sub(b.at))
		}
	}
	if !onTime || v.counted.IsZero() {
		v.counted = m.now.Add(m.near)
		m.joined = append(m.joined, join{v.counted, BucketOf(v.vis.Place, s.BucketSpan)})
	}
	v.lastOK, v.site = m.now, n.site
	v.told = 0 // until wait has said
}

// disturbed reports whether something came in between that the one who let the
// other one in could not know: somebody let in without knowing it all, or
// somebody older who counts only since. For a moment somebody who was let in
// counts as waiting, too, which keeps a place from who stood beside.
func (m *mesh) disturbed(n *meshNode, v *meshVisitor, b overtaking) bool {
	both := n.seen.Add(-m.near - m.far)
	for i := len(m.leases) - 1; i >= 0 && !m.leases[i].at.Before(b.seen); i-- {
		if m.leases[i].blind > 0 || m.far > 0 && m.leases[i].at.After(both) {
			return true
		}
	}
	bucket := BucketOf(v.vis.Place, m.settings.BucketSpan)
	for i := len(m.joined) - 1; i >= 0; i-- {
		if j := m.joined[i]; !j.at.Before(b.seen) && j.bucket <= bucket {
			return true
		}
	}
	return false
}

// checkEstimate is called when an estimate is told.
func (m *mesh) checkEstimate(n *meshNode, v *meshVisitor, e Estimate, shown Shown) {
	v.told = v.vis.Refresh
	if e.Known && v.terms == shown.Terms {
		for _, c := range [3]struct {
			name      string
			was, next int
		}{
			{"the minutes", v.lowest.Minutes, e.Minutes},
			{"the lower quarter", v.lowest.P25, e.P25},
			{"the upper quarter", v.lowest.P75, e.P75},
		} {
			if c.was > 0 && c.next > c.was {
				m.failAt("%s told to visitor %d rise from %d to %d", c.name, v.number, c.was, c.next)
			}
		}
	}
	if e.Known || v.terms != shown.Terms {
		v.lowest, v.terms = e, shown.Terms
	}
	if e.Known && e.Minutes > 1 {
		m.minutes++
	}
	if e.Known && (e.Minutes < 1 || e.P25 > e.Minutes || e.P75 > 0 && e.P75 < e.Minutes) {
		m.failAt("visitor %d is told %+v", v.number, e)
	}
	if e.Position != 0 && e.Position != e.Ahead+1 {
		m.failAt("visitor %d is told %+v", v.number, e)
	}
}

// forget ends what is promised to a visitor who waits.
func (m *mesh) forget(v *meshVisitor) { v.witness = witness{} }

// leaves takes a visitor out who will not be let in any more.
func (m *mesh) leaves(v *meshVisitor) {
	m.waiting--
	v.state = gone
	m.forget(v)
}

// checkPicture looks at a view that was just built.
func (m *mesh) checkPicture(n *meshNode) {
	for _, wrong := range viewErrors(n.view) {
		m.failAt("view of node %d: %s", n.index, wrong)
	}
}

// viewErrors says what is wrong with the arithmetic of a view.
func viewErrors(v *View) (wrong []string) {
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	kept, older := 0, true
	for i, b := range v.Buckets {
		kept += b.Reserved
		if b.Reserved < 0 || b.Reserved > b.Waiting || b.Reserved > 0 && !older {
			bad("bucket %d has %d places for %d", i, b.Reserved, b.Waiting)
		}
		older = older && b.Reserved == b.Waiting
	}
	if v.Slots < 0 || v.SlotsNew < 0 || kept+v.SlotsNew > v.Slots {
		bad("%d reserved and %d new of %d slots", kept, v.SlotsNew, v.Slots)
	}
	waiting, fresh := 0, 0
	for _, s := range v.Sites {
		waiting += s.Reserved
		fresh += s.New
		if s.Reserved < 0 || s.New < 0 || s.Reserved > s.Waiting {
			bad("site %s has %d places for %d, and %d for new ones", s.Name, s.Reserved, s.Waiting, s.New)
		}
	}
	if waiting > kept || fresh > v.SlotsNew {
		bad("the sites have %d of %d places for waiting, %d of %d for new ones", waiting, kept, fresh, v.SlotsNew)
	}
	if v.Edge.Before(v.Cursor) {
		bad("cursor %v after edge %v", v.Cursor, v.Edge)
	}
	if v.Settings.Policy == Open || v.Settings.QueueingMethod == Passthrough {
		return wrong
	}
	most := v.AllowWaiting + v.AllowNew + v.AllowAnywhere
	if v.Settings.Policy == Escrow {
		most = v.AllowWaiting // rights bound the others
	}
	if v.AllowWaiting < 0 || v.AllowNew < 0 || v.AllowAnywhere < 0 || most > v.Slots {
		bad("%d, %d and %d may enter, with %d slots", v.AllowWaiting, v.AllowNew, v.AllowAnywhere, v.Slots)
	}
	return wrong
}

// checkWaiting is called when everybody who stayed must have been let in.
func (m *mesh) checkWaiting() {
	for _, v := range m.visitors {
		if v.state == waiting {
			m.failAt("visitor %d still waits, since %v", v.number, m.now.Sub(v.arrived))
		}
	}
}

// shuffledPairs returns how many pairs of neighbours by arrival a shuffled
// pre-queue had, none in two pairs, and how many of them have places in the same
// order.
func (m *mesh) shuffledPairs() (pairs, inOrder int) {
	for _, e := range m.settings.Events {
		var last *meshVisitor
		for _, v := range m.members {
			if !e.Shuffle || !e.queued(v.vis.Arrival) {
				continue
			}
			if last == nil {
				last = v
				continue
			}
			pairs++
			if last.vis.Arrival.Before(v.vis.Arrival) == last.vis.Place.Before(v.vis.Place) {
				inOrder++
			}
			last = nil
		}
	}
	return pairs, inOrder
}

// checkEmpty is called when nobody is left: nobody shall be counted.
func (m *mesh) checkEmpty() {
	if len(m.violations) > 0 {
		return
	}
	for _, n := range m.nodes {
		if !n.alive {
			continue
		}
		n.view = nil
		if v := m.viewOf(n); v.Waiting != 0 || v.Active != 0 {
			m.failAt("node %d counts %d waiting and %d active, and nobody is there", n.index, v.Waiting, v.Active)
		}
	}
}

// orderError is the share of pairs that entered in the wrong order (Kendall's
// normalized tau distance).
func (m *mesh) orderError() float64 {
	wrong, pairs := 0, 0
	for i, v := range m.admitted {
		for _, w := range m.admitted[i+1:] {
			if v.arrived.Equal(w.arrived) {
				continue
			}
			pairs++
			if v.arrived.After(w.arrived) {
				wrong++
			}
		}
	}
	return float64(wrong) / float64(max(1, pairs))
}
