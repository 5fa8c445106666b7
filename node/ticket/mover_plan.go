package ticket

import (
	"cmp"
	"slices"

	"github.com/ropeline/ropeline/crdt"
)

// driftSlack is the part of its target by which a site has to be off before idle
// rights are moved: sessions come and go by chance, and rights shall not be moved
// to and fro after each.
const driftSlack = 4

// drift returns what the own site gives away although nobody waits for it, so
// that idle rights lie where visitors are going to come from: each site is to
// have its share of them, and one at least if there are enough.
func (s side) drift(sites []SiteRights, own int) []int64 {
	gifts := make([]int64, len(sites))
	idle := make([]int64, len(sites))
	all := int64(0)
	for i := range sites {
		idle[i] = max(0, s.free[i]-s.need[i])
		all += idle[i]
	}
	target := targets(sites, all)
	over, short := make([]int64, len(sites)), make([]int64, len(sites))
	for i, n := range idle {
		slack := max(1, target[i]/driftSlack)
		switch {
		case n-target[i] >= slack:
			over[i] = n - target[i]
		case target[i]-n >= slack:
			short[i] = target[i] - n
		}
	}
	// Sites that are a little off have a part in this too: without it, one that is
	// far too short would wait for a single one that is far over.
	if over[own] == 0 && slices.Max(short) > 0 && slices.Max(over) == 0 {
		over[own] = max(0, idle[own]-target[own])
	}
	from, sum := int64(0), int64(0)
	for _, n := range over {
		sum += n
	}
	for i, n := range short {
		n = min(n, sum-from)
		gifts[i] = max(0, piece(over, own, from+n)-piece(over, own, from))
		from += n
	}
	return gifts
}

// targets cuts n rights into whole ones by the sites' shares, remainders to the
// largest first, and sees that each site has one if there are enough.
func targets(sites []SiteRights, n int64) []int64 {
	out := make([]int64, len(sites))
	each := int64(0)
	if n >= int64(len(sites)) {
		each = 1
	}
	rest, sum := n-each*int64(len(sites)), 0.0
	if each == 0 {
		rest = n
	}
	for _, s := range sites {
		sum += max(0, s.Share)
	}
	share := func(i int) float64 {
		if sum <= 0 {
			return 1 / float64(len(sites))
		}
		return max(0, sites[i].Share) / sum
	}
	order, left := make([]int, len(sites)), rest
	for i := range sites {
		order[i] = i
		whole := int64(share(i) * float64(rest))
		out[i] = each + whole
		left -= whole
	}
	remainder := func(i int) float64 {
		x := share(i) * float64(rest)
		return x - float64(int64(x))
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(remainder(b), remainder(a)) })
	for _, i := range order[:max(0, min(int64(len(order)), left))] {
		out[i]++
	}
	return out
}

// plan gathers what a Move decides. It knows what is left to give.
type plan struct {
	free  Amount // of this node
	mates []MateRights
	gifts []Gift
	asks  []Ask
}

// give has rights go to a node, this node's own first, then those of its mates
// that have most. It returns how many go.
func (p *plan) give(to crdt.NodeID, a Amount) (sum Amount) {
	own := a.Min(p.free)
	if !own.IsZero() {
		p.free = p.free.Sub(own)
		p.gifts = append(p.gifts, Gift{to, own})
		sum = own
	}
	for sum != a {
		i := p.richest(a.Sub(sum))
		if i < 0 {
			return sum
		}
		n := a.Sub(sum).Min(p.mates[i].Free)
		p.mates[i].Free = p.mates[i].Free.Sub(n)
		p.asks = append(p.asks, Ask{From: p.mates[i].Node, To: to, Amount: n})
		sum = sum.Add(n)
	}
	return sum
}

// richest returns the mate that can give most of what is wanted; -1: none can.
func (p *plan) richest(want Amount) int {
	best, most := -1, int64(0)
	for i, mate := range p.mates {
		n := want.Min(mate.Free)
		if sum := n.Places + n.Rate; sum > most {
			best, most = i, sum
		}
	}
	return best
}

// node is one of the own site, as a plan sees it.
type node struct {
	id         crdt.NodeID
	held, free Amount
}

// nodes returns this node and its mates, with what they have left.
func (p *plan) nodes(in *Standing) []node {
	all := []node{{in.Self, in.Held, p.free}}
	for _, mate := range p.mates {
		all = append(all, node{mate.Node, mate.Held, mate.Free})
	}
	return all
}

// pass has one node of the own site, this one or a mate, give to another.
func (p *plan) pass(in *Standing, from, to crdt.NodeID, a Amount) {
	if from == in.Self {
		p.free = p.free.Sub(a)
		p.gifts = append(p.gifts, Gift{to, a})
		return
	}
	for i := range p.mates {
		if p.mates[i].Node == from {
			p.mates[i].Free = p.mates[i].Free.Sub(a)
		}
	}
	p.asks = append(p.asks, Ask{from, to, a})
}

// even has the nodes of the own site hold about as many places each: one that dies
// takes its own part with it and no more. Those that hold most give to those that
// hold least, as far as it is idle.
func (p *plan) even(in *Standing) {
	all := p.nodes(in)
	slices.SortFunc(all, func(a, b node) int {
		return cmp.Or(cmp.Compare(b.held.Places, a.held.Places), a.id.Compare(b.id))
	})
	sum := int64(0)
	for _, x := range all {
		sum += x.held.Places
	}
	slack := max(2, sum/int64(len(all))/driftSlack)
	for k := range len(all) / 2 {
		rich, poor := all[k], all[len(all)-1-k]
		gap := rich.held.Places - poor.held.Places
		if n := min(gap/2, rich.free.Places); gap >= slack && n > 0 {
			p.pass(in, rich.id, poor.id, Amount{Places: n})
		}
	}
}

// match has idle rate rights of the own site lie where its places are: a ticket
// takes one of each of the same node, and those that lie apart are of no use to
// anybody. Each node is to have one for each idle place, as far as they go, and of
// the rest a part by the places that it holds: those come free where they are. Who
// has fewer than idle places, or less than half of its part, gets the rest of that.
func (p *plan) match(in *Standing) {
	all := p.nodes(in)
	sum, idle, held := int64(0), int64(0), int64(0)
	for _, x := range all {
		sum, idle, held = sum+x.free.Rate, idle+x.free.Places, held+x.held.Places
	}
	if sum <= 0 || held <= 0 {
		return
	}
	part := func(x node) int64 {
		if sum < idle {
			return int64(float64(sum) * float64(x.free.Places) / float64(idle))
		}
		return x.free.Places + int64(float64(sum-idle)*float64(x.held.Places)/float64(held))
	}
	over := func(x node) int64 { return x.free.Rate - part(x) }
	slices.SortFunc(all, func(a, b node) int { return cmp.Or(cmp.Compare(over(b), over(a)), a.id.Compare(b.id)) })
	rich := 0
	for i := len(all) - 1; i > rich; i-- {
		poor := &all[i]
		if mine := part(*poor); poor.free.Rate >= max(min(poor.free.Places, mine), mine/2) {
			continue
		}
		for over(*poor) < 0 && rich < i {
			n := min(-over(*poor), over(all[rich]))
			if n <= 0 {
				rich++
				continue
			}
			p.pass(in, all[rich].id, poor.id, Amount{Rate: n})
			all[rich].free.Rate -= n
			poor.free.Rate += n
		}
	}
}

// join has places and rate rights of the own site that lie apart come together at
// this node, for visitors who wait for an answer: missing is how many of them find
// no pair. It returns what it has asked for.
func (p *plan) join(in *Standing, missing int64) (sum Amount) {
	pairs := min(p.free.Places, p.free.Rate)
	for kind := range 2 {
		lack := missing - (p.free.kind(kind) - pairs)
		for i := range p.mates {
			mate := &p.mates[i]
			n := min(lack, mate.Free.kind(kind)-min(mate.Free.Places, mate.Free.Rate))
			if n <= 0 {
				continue
			}
			lack -= n
			a := Amount{}.with(kind, n)
			p.pass(in, mate.Node, in.Self, a)
			sum = sum.Add(a)
		}
	}
	return sum
}

// pairs returns how many tickets the own site's nodes can give.
func (p *plan) pairs() int64 {
	n := min(p.free.Places, p.free.Rate)
	for _, mate := range p.mates {
		n += max(0, min(mate.Free.Places, mate.Free.Rate))
	}
	return n
}

// kind returns the number of one kind of rights: 0 is places, 1 is rate.
func (a Amount) kind(k int) int64 {
	if k == 0 {
		return a.Places
	}
	return a.Rate
}

func (a Amount) with(k int, n int64) Amount {
	if k == 0 {
		a.Places = n
	} else {
		a.Rate = n
	}
	return a
}
