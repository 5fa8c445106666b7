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

// even has the nodes of the own site hold about as much each: one that dies
// takes its own part with it and no more. Those that hold most give to those
// that hold least, as far as it is idle.
func (p *plan) even(in *Standing) {
	if len(p.mates) == 0 {
		return
	}
	type node struct {
		id         crdt.NodeID
		held, free Amount
	}
	nodes := []node{{in.Self, in.Held, p.free}}
	for _, mate := range p.mates {
		nodes = append(nodes, node{mate.Node, mate.Held, mate.Free})
	}
	moves := map[[2]int]Amount{}
	for kind := range 2 {
		order := make([]int, len(nodes))
		sum := int64(0)
		for i := range nodes {
			order[i] = i
			sum += nodes[i].held.kind(kind)
		}
		slices.SortFunc(order, func(a, b int) int {
			return cmp.Or(cmp.Compare(nodes[b].held.kind(kind), nodes[a].held.kind(kind)), nodes[a].id.Compare(nodes[b].id))
		})
		slack := max(2, sum/int64(len(nodes))/driftSlack)
		for k := range len(order) / 2 {
			rich, poor := order[k], order[len(order)-1-k]
			gap := nodes[rich].held.kind(kind) - nodes[poor].held.kind(kind)
			if n := min(gap/2, nodes[rich].free.kind(kind)); gap >= slack && n > 0 {
				moves[[2]int{rich, poor}] = moves[[2]int{rich, poor}].with(kind, n)
			}
		}
	}
	for rich := range nodes {
		for poor := range nodes {
			switch a := moves[[2]int{rich, poor}]; {
			case a.IsZero():
			case rich == 0:
				p.free = p.free.Sub(a)
				p.gifts = append(p.gifts, Gift{nodes[poor].id, a})
			default:
				p.asks = append(p.asks, Ask{nodes[rich].id, nodes[poor].id, a})
			}
		}
	}
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
