package sim

import "slices"

// Nodes that reach each other, and what they have to pass on.

// island are nodes that reach each other, and have found out who is not there.
type island struct {
	settled int64 // when all have found out who is not there
	missing []absence
	left    news // what somebody has had to pass on before it left
	same    bool // as it was before
	parted  bool // somebody was lost just now
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
	for k, at := range islands {
		switch {
		case at < 0:
		case was[k] < 0:
			f.nodes[k].begin()
		case !next[at].same:
			f.nodes[k].begin()
			if !next[at].parted {
				next[at].left |= f.islands[was[k]].left
			}
		}
	}
	f.islands = next
	for k := range f.nodes {
		n := &f.nodes[k]
		n.island = islands[k]
		if n.runs && n.island < 0 {
			f.stops(int32(k))
		}
		n.runs = n.island >= 0
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
		is := f.islands[from]
		is.same = true
		return is
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
				lost, is.parted = f.now, true
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

// begin has what is on its way to a node, when somebody goes or comes, take as long again.
func (n *knower) begin() {
	for c := range n.comes {
		if x := &n.comes[c]; x.quiet > 0 && x.begun < hindrances {
			x.begun++
			x.quiet = 0
		}
	}
}

// passes returns what an island has to pass on: what an operator was told to hold, and one of
// its nodes has to know.
func (f *force) passes(i int32) (all news) {
	if !f.together {
		return 0
	}
	all = f.islands[i].left
	for k := range f.nodes {
		if n := &f.nodes[k]; n.island == i {
			all |= n.must
		}
	}
	return all & f.told()
}

// pass lets time pass, in which news comes to all nodes of an island unless it may still be
// given to somebody who is missing.
func (f *force) pass(to int64) {
	for i := range f.islands {
		quiet := to - max(f.now, f.islands[i].settled)
		if quiet <= 0 {
			continue
		}
		all := f.passes(int32(i))
		for k := range f.nodes {
			n := &f.nodes[k]
			if n.island != int32(i) {
				continue
			}
			for c := range (all &^ n.must).all {
				n.coming(c).quiet += quiet
			}
		}
	}
	f.now = to
}

// coming returns how far news of a change is on its way to a node.
func (n *knower) coming(c int) *coming {
	for len(n.comes) <= c {
		n.comes = append(n.comes, coming{})
	}
	return &n.comes[c]
}

// teach has the nodes of an island know what one of them has had to know for long enough, and
// plans when the next will.
func (f *force) teach() {
	for i := range f.islands {
		all := f.passes(int32(i))
		for k := range f.nodes {
			n := &f.nodes[k]
			if n.island != int32(i) {
				continue
			}
			var due news
			for c := range (all &^ n.must).all {
				if x := n.coming(c); x.quiet >= f.takes {
					due |= only(c)
				} else {
					f.wake(max(f.now, f.islands[i].settled) + f.takes - x.quiet)
				}
			}
			if due != 0 {
				n.fresh = false
				f.learns(int32(k), due)
			}
		}
	}
}

// told returns the changes of which an operator was told that they hold.
func (f *force) told() (all news) {
	for c := range f.changes {
		if f.changes[c].told {
			all |= only(c)
		}
	}
	return all
}
