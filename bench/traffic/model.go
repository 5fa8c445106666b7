package traffic

import (
	"math"

	"github.com/ropeline/ropeline/node/room"
)

// The model: what a node sends, worked out from how often nodes speak and what each thing takes
// in its encoding. A test holds the sizes against the codec.
//
// Where something may or may not have happened within a span of a beat, it has by chance
// 1 − e^(−rate × span): visitors come independently of each other.

// Beats of nodes, in seconds; node/replica's defaults.
const (
	pushEvery    = 0.25 // to nodes of the site, and acknowledgements to all
	summaryEvery = 1.0  // to relays of other sites
	pullEvery    = 5.0  // from one peer
	farPulls     = 0.25 // the part of these that goes to another site, where there is a choice
	closeEvery   = 10.0 // a tick is over, which every row and summary says
	claimEvery   = 1.0  // a counter speaks to its site
	kept         = 600  // seconds of ticks that summaries tell of
)

// Sizes of what messages are made of, in bytes.
const (
	frame     = 9  // version, kind, flags and six empty parts
	rowHead   = 50 // of a piece of a row, and of the part that it is in
	rowRoom   = 19 // of a room in it
	cellBytes = 5  // one of seen, or of admitted
	pairBytes = 7  // one of active, which goes up and down
	rowKnown  = 24 // an acknowledgement of a row
	rowAsked  = 22 // what a pull says of one row of which it wants news
	rowLeft   = 28 // and of one of which it wants none
	sumHead   = 57 // of a piece of a summary
	part      = 2  // of a part of digests or pieces
	sumRoom   = 29 // of a room in a summary, without ticks
	sumTick   = 2  // of a tick in it
	tickList  = 2  // more for a list of more than 15 of them
	sumKnown  = 40 // an acknowledgement of a summary, or what a pull says of it
	writer    = 27 // what a pull says of a node that has written into the last-writer map
	claimRoom = 45 // of a room in a claim
	claimHead = 4
)

// Fitted: how many messages there are for each visitor of a node that is not the counter, and
// their bytes. While nobody waits, nodes let in by rights of their own, and what is left is
// rights that are lent and given back.
const (
	ticketMessages = 0.5
	ticketBytes    = 30
)

// Fitted, for rooms that are full: every change is told within hurryEvery seconds, which is a
// tick and a little; and a visitor makes more of them, since some wait first and rights go back
// and forth between nodes that have few. Messages of tickets are calls, grants, and what is said of both
// later; where many come at once several share one.
const (
	hurryEvery   = 0.08
	fullChanges  = 4
	fullMessages = 12.6
	fullBytes    = 621
)

// chance returns how likely something that happens at a rate has happened within a span.
func chance(rate, span float64) float64 { return 1 - math.Exp(-rate*span) }

// model is a shape with what follows from it.
type model struct {
	shape
	own, near float64 // visitors of a room per second: at one node, and in its site
	push, sum float64 // seconds between news to the site, and to other sites
	changes   float64 // of a room by one visitor
	rowNews   float64 // chance of news of a node's row with a push
	sumNews   float64 // the same of a site's summary
}

func newModel(s shape) model {
	m := model{shape: s, near: s.Visitors, own: s.Visitors / float64(s.Nodes), push: pushEvery, sum: summaryEvery, changes: 2}
	if s.Full {
		m.push, m.sum, m.changes = hurryEvery, hurryEvery, fullChanges
	}
	rooms := float64(s.Rooms)
	m.rowNews = chance(m.changes*m.own*rooms+1/closeEvery, m.push)
	m.sumNews = chance(m.changes*m.near*rooms+1/closeEvery, m.sum)
	return m
}

// rowBytes returns what a push carries of a node's row, on average over all pushes.
func (m model) rowBytes() float64 {
	rooms := float64(m.Rooms)
	changed, came := rooms*chance(m.changes*m.own, m.push), rooms*chance(m.own, m.push)
	return m.rowNews*rowHead + changed*(rowRoom+pairBytes) + came*2*cellBytes
}

// roomBytes returns what one room takes in a summary.
func (m model) roomBytes() float64 {
	age := min(kept, (m.Before + m.Span/2).Seconds())
	ticks := (age/closeEvery + 1) * chance(m.near, closeEvery)
	size := float64(sumRoom) + 2*ticks*sumTick
	if ticks > 15 {
		size += 2 * tickList
	}
	if m.Policy == room.Escrow && !m.Full && !m.Thin {
		size += 6 // rights are many, and take more digits
	}
	return size
}

// sumBytes returns what one site's summary takes, on average over all times at which it may
// have news.
func (m model) sumBytes() float64 {
	return m.sumNews*sumHead + float64(m.Rooms)*chance(m.changes*m.near, m.sum)*m.roomBytes()
}

// predict works out what is sent.
func predict(s shape) result {
	m := newModel(s)
	relay, mate := m.relay(), m.mate()
	for _, t := range []*traffic{&relay, &mate} {
		m.addPulls(t)
		t.Counts = t.all()
		m.addTickets(t)
	}
	all := relay
	for range s.Nodes - 1 {
		all = all.plus(mate)
	}
	return result{Mean: all.over(float64(s.Nodes)), Relay: relay}
}

// mate is a node that does not speak for its site.
func (m model) mate() (t traffic) {
	mates := float64(m.Nodes - 1)
	pushes := 1 / m.push
	passed := m.passed()
	// To the other mates, and to the relay, to whom more has to be acknowledged.
	if m.Nodes > 1 {
		others := m.link(m.rowNews, m.rowNews, m.rowBytes(), m.rowNews*rowKnown)
		up := m.link(m.rowNews, 1-(1-m.rowNews)*(1-passed.news), m.rowBytes(), m.rowNews*rowKnown+passed.sites*sumKnown+passed.news*part)
		t.Near = volume{pushes * ((mates-1)*others.Messages + up.Messages), pushes * ((mates-1)*others.Bytes + up.Bytes)}
	}
	return t
}

// relay is the node that speaks for its site.
func (m model) relay() (t traffic) {
	mates, others := float64(m.Nodes-1), float64(m.Sites-1)
	pushes := 1 / m.push
	passed := m.passed()
	down := m.link(1-(1-m.rowNews)*(1-passed.news), m.rowNews, m.rowBytes()+passed.bytes, m.rowNews*rowKnown)
	t.Near = volume{pushes * mates * down.Messages, pushes * mates * down.Bytes}
	// A summary and the acknowledgement of the other's go together where both are due.
	news := m.sumNews * m.push / m.sum
	out := m.link(news, news, m.sumBytes()*m.push/m.sum+news*part, news*(sumKnown+part))
	t.Far = volume{pushes * others * out.Messages, pushes * others * out.Bytes}
	return t
}

// passing is what a relay passes on with a push.
type passing struct {
	news  float64 // chance that there is anything
	sites float64 // of how many sites
	bytes float64
}

func (m model) passed() passing {
	others, part0 := float64(m.Sites-1), m.push/m.sum
	p := passing{news: 1 - math.Pow(1-m.sumNews*part0, others), sites: others * m.sumNews * part0}
	p.bytes = others*m.sumBytes()*part0 + p.news*part
	return p
}

// link returns what a push from one node to another is, given the chances that there is news,
// and something to acknowledge, and the bytes of both.
func (m model) link(news, owed, bytes, acks float64) volume {
	sent := 1 - (1-news)*(1-owed)
	size := bytes + acks + sent*frame
	if sent > 0 {
		size += sent * lengths(size/sent)
	}
	return volume{sent, size}
}

// lengths returns by how many bytes the lengths of parts grow with them.
func lengths(size float64) float64 {
	switch {
	case size > 16<<10:
		return 2
	case size > 150:
		return 1
	}
	return 0
}

// addPulls adds the digests, by which is asked for what was lost.
func (m model) addPulls(t *traffic) {
	sites, mates := float64(m.Sites), float64(m.Nodes-1)
	toFar := 0.0
	switch {
	case m.Sites > 1 && m.Nodes == 1:
		toFar = 1
	case m.Sites > 1:
		toFar = farPulls
	}
	toNear := 1 - toFar
	if m.Nodes == 1 {
		toNear = 0
	}
	known := 0.0
	if m.Policy == room.Escrow && !m.Thin {
		known = sites*float64(m.Nodes)*writer + part
	}
	near := frame + known + part + rowAsked + mates*rowLeft + (sites-1)*sumKnown + part
	if m.Sites == 1 {
		near -= part
	}
	far := frame + known + part + 2*sumKnown
	near, far = near+lengths(near), far+lengths(far)
	t.Near = t.Near.plus(volume{toNear / pullEvery, toNear / pullEvery * near})
	t.Far = t.Far.plus(volume{toFar / pullEvery, toFar / pullEvery * far})
}

// addTickets adds what counters cost, on average over the nodes of a site.
func (m model) addTickets(t *traffic) {
	if m.Policy != room.Escrow || m.Thin || m.Nodes == 1 {
		return
	}
	n, rooms := float64(m.Nodes), float64(m.Rooms)
	per := (n - 1) / n / claimEvery // one node is the counter of all rooms, as it was there first
	t.Near = t.Near.plus(volume{per, per * (claimHead + rooms*claimRoom)})
	asked := m.own * rooms * (n - 1) / n
	if m.Full {
		t.Near = t.Near.plus(volume{asked * fullMessages, asked * fullBytes})
		return
	}
	t.Near = t.Near.plus(volume{asked * ticketMessages, asked * ticketBytes})
}
