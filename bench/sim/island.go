package sim

import "slices"

// Nodes that reach each other, and what they have to pass on.

// island are nodes that reach each other, and have found out who is not there.
type island struct {
	settled int64
	missing []absence
	left    news    // what somebody has had to pass on before it left
	hears   []int64 // by change: when one of them first had to know it
}

// absence is since when somebody is out of reach.
type absence struct {
	node int32
	at   int64
}

// meet says who reaches whom from now on: the island of each node, and -1 for those that
// do not run. left reports which of these have said that they go.
func (f *force) meet(islands []int32, left func(node int32) bool) {
	next := make([]island, slices.Max(islands)+1)
	was := make([]int32, len(f.nodes))
	for k := range f.nodes {
		was[k] = f.nodes[k].island
	}
	for i := range next {
		next[i] = f.form(int32(i), islands, was, left)
	}
	old := f.islands
	f.islands = next
	for k := range f.nodes {
		n := &f.nodes[k]
		n.island = islands[k]
		if n.runs && n.island < 0 {
			f.stops(int32(k))
		}
		n.runs = n.island >= 0
	}
	for k := range f.nodes {
		n := &f.nodes[k]
		for c := range n.must.all {
			f.hear(n, c)
		}
		if was[k] >= 0 && n.island >= 0 {
			for c := range old[was[k]].left.all {
				f.hear(n, c)
			}
		}
	}
	f.teach()
	f.look()
}

// form returns the island with a number: as it was, or a new one.
func (f *force) form(i int32, islands, was []int32, left func(node int32) bool) island {
	from, same := int32(-2), true
	for k, at := range islands {
		if at == i {
			same = same && was[k] >= 0 && (from == -2 || from == was[k])
			from = was[k]
		}
	}
	for k, at := range islands {
		same = same && (at == i || was[k] != from)
	}
	if same {
		return f.islands[from]
	}
	is := island{settled: f.now}
	for k, at := range islands {
		if at == i {
			continue
		}
		lost := int64(longAgo)
		for o, mine := range islands {
			if mine != i || was[o] < 0 {
				continue
			}
			if was[k] == was[o] && !left(int32(k)) {
				lost = f.now
				break
			}
			for _, m := range f.islands[was[o]].missing {
				if m.node == int32(k) {
					lost = max(lost, m.at)
				}
			}
		}
		if lost > f.now-settles {
			is.missing = append(is.missing, absence{int32(k), lost})
			is.settled = max(is.settled, lost+settles)
		}
	}
	return is
}
