package ticket

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

const (
	// moveSettled is how long after a gift the counts of the site that it went to
	// are taken to show it: the gift has to arrive, be written to disk there, and
	// come into that site's summary.
	moveSettled = time.Second

	// moveForgotten is when a gift is no longer reckoned with, whatever the counts
	// say: a site that has said nothing for so long is as good as cut off.
	moveForgotten = 10 * time.Second

	// driftEvery and evenEvery are how often idle rights are spread over sites and
	// over the nodes of the own site. Each move is two writes to disk.
	driftEvery = 5 * time.Second
	evenEvery  = 2 * time.Second

	// smallEvery is how long moves of less than a smallPart of all rights to one
	// site are gathered. What lies idle meanwhile is less than that part.
	smallEvery = time.Second
	smallPart  = 1000

	// askedFor is how long rights that were asked for are taken to be under way:
	// a way there and back and two writes to disk. Who waits then asks elsewhere.
	askedFor = 200 * time.Millisecond

	// askedAgain is how long a site that was asked counts as having that much less:
	// by then its counts tell.
	askedAgain = time.Second

	// idleParts is how small a part of all rights one for each site has to be for
	// idle sites to keep their last one while others wait: half a hundredth in
	// all. Of a limit of ten over five sites, half would lie idle.
	idleParts = 200
)

// SiteRights is what is known of the rights of one room in one site. Those of
// other sites are counts: they may be late, and the limit does not rest on them.
type SiteRights struct {
	Name    string
	Counter crdt.NodeID // who takes gifts and wants there; zero: the site cannot be reached
	At      time.Time   // as of when the counts hold; zero: now
	Held    Amount
	Used    Amount // active visitors, and those admitted in the last minute

	Eligible int64     // visitors who wait there and may enter, by the order of the queue
	Oldest   time.Time // the place of the first of them
	Share    float64   // of settled traffic, 0 to 1
}

// MateRights is what is known of another node of the own site.
type MateRights struct {
	Node crdt.NodeID
	Held Amount
	Free Amount
}

// Standing is all that a counter knows when it decides what to move.
type Standing struct {
	Self  crdt.NodeID
	Site  string       // one of Sites
	Sites []SiteRights // those of a cut-off site are left alone
	Mates []MateRights // the other nodes of the own site that can be reached
	Held  Amount       // of this node
	Free  Amount       // of that, what it may give away

	// Need is how many visitors of the own site wait for an answer right now,
	// because there was no right here.
	Need int64

	// Supply is how many rights there are in the mesh.
	Supply Amount
}

// Gift is rights of this node for another.
type Gift struct {
	To     crdt.NodeID
	Amount Amount
}

// Ask asks a node to give rights away: a node of another site to this one, a
// mate to whoever needs them.
type Ask struct {
	From   crdt.NodeID
	To     crdt.NodeID
	Amount Amount
}

// Mover decides at the counter of one site where the rights of one room go. It
// gives what lies idle here to the sites where visitors wait, those with the
// oldest places first; where nobody waits it lets idle rights drift to where
// visitors come from; and it asks other sites when visitors here find none. All
// sites reckon alike and each does its own part, so nobody has to agree.
//
// Nothing here can break the limit: what a mover decides is carried out by
// ledgers. A mover that is wrong leaves rights idle for a moment. The zero value
// is ready. It is not safe for concurrent use.
type Mover struct {
	drifted time.Time
	evened  time.Time
	moves   *moves // nil: there were none, as in most rooms
}

// moves is what a Mover remembers of rights that were moved, or asked for.
type moves struct {
	moved []moved              // that the counts do not show yet, oldest first
	asked []moved              // by this site from others
	sent  map[string]time.Time // the last move to each site
}

// noMoves is for reading.
var noMoves = &moves{}

// known returns what is remembered, for reading.
func (m *Mover) known() *moves {
	if m.moves == nil {
		return noMoves
	}
	return m.moves
}

// own returns what is remembered, to be added to.
func (m *Mover) own() *moves {
	if m.moves == nil {
		m.moves = new(moves)
	}
	return m.moves
}

// moved is rights that went to a site, or were asked of it.
type moved struct {
	site   string
	amount Amount
	at     time.Time
	came   bool // for what was asked
}

// side is the picture of one kind of right, one entry for each site in sight.
type side struct {
	free, need []int64
	keep       int64 // what an idle site keeps while others wait
	supply     int64
}

// Move returns what this node gives away now and whom it asks. It is called
// about four times a second, and when visitors begin to wait for rights.
func (m *Mover) Move(in Standing, now time.Time) ([]Gift, []Ask) {
	sites, own := m.sight(&in, now)
	if own < 0 {
		return nil, nil
	}
	places, rate := m.sides(&in, sites, own)
	out := plan{free: in.Free, mates: slices.Clone(in.Mates)}
	idle := now.Sub(m.drifted) >= driftEvery || now.Before(m.drifted)
	to := make([]Amount, len(sites))
	starving := false
	for kind, s := range [2]side{places, rate} {
		gifts, hungry := s.feed(sites, own)
		if !hungry {
			gifts = s.drift(sites, own)
		}
		for i := range gifts {
			if !hungry && !idle && !m.bare(sites, i, kind, s.supply) {
				gifts[i] = 0
			}
		}
		starving = starving || hungry
		for i, n := range gifts {
			to[i] = to[i].with(kind, n)
		}
	}
	if idle {
		m.drifted = now
	}
	for i, a := range to {
		if a.IsZero() || starving && !m.worthIt(sites[i].Name, a, in.Supply, now) {
			continue
		}
		m.note(sites[i].Name, out.give(sites[i].Counter, a), now)
	}
	if in.Need > 0 {
		m.pull(&in, &out, sites, own, [2]side{places, rate}, now)
		m.gather(&in, &out, now)
	}
	if now.Sub(m.evened) >= evenEvery || now.Before(m.evened) {
		m.evened = now
		out.even(&in)
		out.match(&in)
	}
	return out.gifts, out.asks
}

// bare reports whether a site has none of one kind of rights, nor any under way to it,
// as far as this node can tell: where all of them are is known. Such a site cannot let
// anybody in, and need not wait for its part.
func (m *Mover) bare(sites []SiteRights, i, kind int, supply int64) bool {
	known := supply > 0
	for _, s := range sites {
		supply -= s.Held.kind(kind)
	}
	there := sites[i].Held.kind(kind)
	for _, g := range m.known().moved {
		supply -= g.amount.kind(kind)
		if g.site == sites[i].Name {
			there += g.amount.kind(kind)
		}
	}
	return there <= 0 && known && supply <= 0
}

// Wanted returns what this site gives to another whose visitors find no right:
// of what nobody here is about to use, this node's own first, and the rest asked
// of its mates.
func (m *Mover) Wanted(in Standing, want Ask, now time.Time) ([]Gift, []Ask) {
	sites, own := m.sight(&in, now)
	i := slices.IndexFunc(sites, func(s SiteRights) bool { return s.Counter == want.To })
	if own < 0 || i < 0 || i == own {
		return nil, nil
	}
	places, rate := m.sides(&in, sites, own)
	under := m.underWay(sites[i].Name, now)
	give := Amount{
		Places: min(want.Amount.Places-under.Places, places.spare(own)),
		Rate:   min(want.Amount.Rate-under.Rate, rate.spare(own)),
	}
	out := plan{free: in.Free, mates: slices.Clone(in.Mates)}
	m.note(sites[i].Name, out.give(want.To, give.Max(Amount{})), now)
	return out.gifts, out.asks
}

// underWay returns what was moved to a site so lately that it had not heard of
// it when it asked for more.
func (m *Mover) underWay(site string, now time.Time) (sum Amount) {
	for _, g := range m.known().moved {
		if g.site == site && now.Sub(g.at) < askedFor {
			sum = sum.Add(g.amount)
		}
	}
	return sum
}

// sight returns the sites that can be reached, by name, and which of them is the
// own one; -1: none is.
func (m *Mover) sight(in *Standing, now time.Time) ([]SiteRights, int) {
	sites := make([]SiteRights, 0, len(in.Sites))
	for _, s := range in.Sites {
		if s.Name == in.Site || s.Counter != (crdt.NodeID{}) {
			sites = append(sites, s)
		}
	}
	slices.SortFunc(sites, func(a, b SiteRights) int { return cmp.Compare(a.Name, b.Name) })
	if m.moves != nil {
		m.moves.forget(sites, now)
	}
	return sites, slices.IndexFunc(sites, func(s SiteRights) bool { return s.Name == in.Site })
}

// forget forgets moves that the counts show, and those that were too long ago.
func (m *moves) forget(sites []SiteRights, now time.Time) {
	old := func(g moved) bool { return now.Sub(g.at) >= moveForgotten || now.Before(g.at) }
	m.moved = slices.DeleteFunc(m.moved, func(g moved) bool {
		i := slices.IndexFunc(sites, func(s SiteRights) bool { return s.Name == g.site })
		if i < 0 || old(g) {
			return true
		}
		at := sites[i].At
		if at.IsZero() {
			at = now
		}
		return at.Sub(g.at) >= moveSettled
	})
	m.asked = slices.DeleteFunc(m.asked, func(g moved) bool { return old(g) || now.Sub(g.at) >= askedAgain })
}

// sides returns the picture of both kinds of rights: what is free in each site,
// gifts under way included, and how many visitors there are about to use it.
func (m *Mover) sides(in *Standing, sites []SiteRights, own int) (places, rate side) {
	n := len(sites)
	free, need := make([]Amount, n), make([]int64, n)
	for i, s := range sites {
		free[i] = Amount{max(0, s.Held.Places-s.Used.Places), max(0, s.Held.Rate-s.Used.Rate)}
		need[i] = max(0, s.Eligible)
	}
	free[own], need[own] = in.Free, max(in.Need, need[own])
	for _, mate := range in.Mates {
		free[own] = free[own].Add(mate.Free)
	}
	for _, g := range m.known().moved {
		i := slices.IndexFunc(sites, func(s SiteRights) bool { return s.Name == g.site })
		free[i] = free[i].Add(g.amount)
	}
	build := func(kind int) side {
		s := side{free: make([]int64, n), need: need, supply: in.Supply.kind(kind)}
		if s.supply/idleParts >= int64(n) {
			s.keep = 1
		}
		for i := range sites {
			s.free[i] = free[i].kind(kind)
		}
		return s
	}
	return build(0), build(1)
}

// worthIt reports whether rights are to be moved to a site now: many at once,
// few only so often.
func (m *Mover) worthIt(site string, a, supply Amount, now time.Time) bool {
	last, ok := m.known().sent[site]
	if !ok || now.Sub(last) >= smallEvery || now.Before(last) {
		return true
	}
	return a.Places*smallPart >= max(1, supply.Places) || a.Rate*smallPart >= max(1, supply.Rate)
}

// note remembers a move until the counts show it.
func (m *Mover) note(site string, a Amount, now time.Time) {
	if a.IsZero() {
		return
	}
	o := m.own()
	if o.sent == nil || len(o.sent) > maxSitesKept {
		o.sent = make(map[string]time.Time)
	}
	o.sent[site] = now
	o.moved = append(o.moved, moved{site: site, amount: a, at: now})
}

// maxSitesKept bounds the sites whose last move is remembered; forgetting one
// costs a small move more.
const maxSitesKept = 1024

// pull asks other sites for what the visitors need who wait for an answer here,
// those with the most to spare first.
func (m *Mover) pull(in *Standing, out *plan, sites []SiteRights, own int, sides [2]side, now time.Time) {
	short := [2]int64{}
	for kind, s := range sides {
		short[kind] = in.Need - s.free[own]
		for _, a := range m.known().asked {
			// What comes from mates is free here already.
			if a.site != in.Site && !a.came && now.Sub(a.at) < askedFor {
				short[kind] -= a.amount.kind(kind)
			}
		}
	}
	spare := make([]Amount, len(sites))
	order := make([]int, 0, len(sites))
	for i := range sites {
		spare[i] = Amount{sides[0].spare(i), sides[1].spare(i)}.Sub(m.askedOf(sites[i].Name)).Max(Amount{})
		if i != own {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(spare[b].Places+spare[b].Rate, spare[a].Places+spare[a].Rate)
	})
	for _, i := range order {
		var a Amount
		for kind := range sides {
			// More than is needed right now: who needs one is likely to need another.
			there := spare[i].kind(kind)
			n := min(there, max(0, short[kind])+there/4)
			if short[kind] <= 0 || n <= 0 {
				continue
			}
			short[kind] -= n
			a = a.with(kind, n)
		}
		if !a.IsZero() {
			out.asks = append(out.asks, Ask{From: sites[i].Counter, To: in.Self, Amount: a})
			m.own().asked = append(m.own().asked, moved{site: sites[i].Name, amount: a, at: now})
		}
	}
}

// askedOf returns what a site was asked for that its counts may not show yet.
func (m *Mover) askedOf(site string) (sum Amount) {
	for _, a := range m.known().asked {
		if a.site == site {
			sum = sum.Add(a.amount)
		}
	}
	return sum
}

// Came notes that rights have come from another site: what that was asked for is
// not on its way any more.
func (m *Mover) Came(site string) {
	for i := range m.known().asked {
		a := &m.moves.asked[i]
		a.came = a.came || a.site == site
	}
}

// gather has rights of the own site that lie apart come together for visitors who
// wait here, unless they are on their way.
func (m *Mover) gather(in *Standing, out *plan, now time.Time) {
	for _, a := range m.known().asked {
		if a.site == in.Site && now.Sub(a.at) < askedFor {
			return
		}
	}
	missing := in.Need - out.pairs()
	if missing <= 0 {
		return
	}
	if a := out.join(in, missing); !a.IsZero() {
		m.own().asked = append(m.own().asked, moved{site: in.Site, amount: a, at: now})
	}
}

// spare returns what a site can do without.
func (s side) spare(i int) int64 { return max(0, s.free[i]-s.need[i]-s.keepAt(i)) }

// keepAt returns what stays in a site where nobody waits.
func (s side) keepAt(i int) int64 {
	if s.need[i] > 0 {
		return 0
	}
	return s.keep
}

// feed returns what the own site gives to those where visitors wait for whom
// there is no right; hungry reports whether there are any. What can be spared
// goes to the oldest places first, and each site gives of it in proportion to
// what it can spare.
func (s side) feed(sites []SiteRights, own int) (gifts []int64, hungry bool) {
	n := len(sites)
	gifts = make([]int64, n)
	all := int64(0)
	spares := make([]int64, n)
	order := make([]int, 0, n)
	for i := range sites {
		spares[i] = s.spare(i)
		all += spares[i]
		if s.need[i] > s.free[i] {
			order = append(order, i)
		}
	}
	if len(order) == 0 || spares[own] == 0 {
		return gifts, len(order) > 0
	}
	slices.SortStableFunc(order, func(a, b int) int { return sites[a].Oldest.Compare(sites[b].Oldest) })
	// All sites' spare rights lie in one row, site after site; each hungry site
	// takes the next piece, and the own site gives where the pieces meet its own.
	from := int64(0)
	for _, i := range order {
		n := min(s.need[i]-s.free[i], all-from)
		gifts[i] = max(0, piece(spares, own, from+n)-piece(spares, own, from))
		from += n
	}
	return gifts, true
}

// piece returns how many of the first n rights are one site's, if each gives in
// proportion to what it can spare. The pieces of all sites add up to n.
func piece(spares []int64, own int, n int64) int64 {
	all, below := int64(0), int64(0)
	for i, x := range spares {
		all += x
		if i < own {
			below += x
		}
	}
	if all == 0 {
		return 0
	}
	cut := func(x int64) int64 { return int64(math.Round(float64(x) * float64(n) / float64(all))) }
	return cut(below+spares[own]) - cut(below)
}
