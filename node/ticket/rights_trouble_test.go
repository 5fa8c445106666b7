package ticket

import "slices"

// What goes wrong in a world of nodes with rights, and what its operator says.

func (w *world) heal() {
	for i := range w.blocked {
		clear(w.blocked[i])
	}
}

// inject hurts something.
func (w *world) inject() {
	m := w.machines[w.IntN(len(w.machines))]
	switch x := w.Float64(); {
	case x < .25:
		if m.up {
			w.crash(m)
			m.until = w.now + 300 + int64(w.ExpFloat64()*5000)
		}
	case x < .29:
		if w.opt.Lose && m.up && w.losses < 3 || w.opt.Often && m.up && w.losses < 5 {
			w.losses++
			w.lose(m)
		}
	case x < .40:
		if w.running(m) {
			m.paused, m.paused0 = true, w.now
			m.until = w.now + int64(w.ExpFloat64()*3000)
			if w.Float64() < .25 {
				m.until += worldSession.Milliseconds() + w.Int64N(8000)
			}
		}
	case x < .65:
		if w.cut(); w.opt.Often && w.running(m) {
			m.leaving = m.leaving || w.IntN(3) == 0
			w.operator = min(w.operator, w.now+w.Int64N(8000))
		}
	case x < .78:
		w.heal()
	case x < .84:
		w.loss, w.dup, w.slow = []float64{0, .05, .3}[w.IntN(3)], []float64{0, .1}[w.IntN(2)], []float64{0, .1}[w.IntN(2)]
	case x < .90:
		m.disk.failing = m.up
	case x < .96:
		if w.opt.Limits {
			w.changeLimit(m)
			if w.IntN(2) == 0 {
				w.changeLimit(w.machines[w.IntN(len(w.machines))])
			}
		}
		if w.opt.Often && w.running(m) {
			m.leaving = true
		}
	default:
		if w.opt.Leave && w.running(m) {
			m.leaving = true
		}
	}
}

// lose takes a machine's disk: it goes on as a new node.
func (w *world) lose(m *machine) {
	w.truth.minted[m.inc.Node] = m.rights.Minted().Max(w.mintedOnDisk(m))
	w.lost = append(w.lost, m.inc.Node)
	w.crash(m)
	w.newDisk(m)
	m.until = w.now + 300 + int64(w.ExpFloat64()*4000)
}

// declare has the operator, at some node, say which ones are gone for good: also of
// those that have left, if that node has not heard of it.
func (w *world) declare() {
	w.operator = w.now + 500 + w.Int64N(20_000)
	m, heir := w.machines[w.IntN(len(w.machines))], w.machines[w.IntN(len(w.machines))]
	if len(w.lost)+len(w.resigned) == 0 || w.opt.Often && !w.knowsAll(m.facts) || !w.running(m) || m.leaving || !heir.up || heir.leaving || !m.facts.present(heir.inc.Node) {
		return
	}
	f := m.facts.clone()
	for _, id := range w.lost {
		f.dead[wordKey{heir.inc.Node, id}] = true
	}
	w.lost = nil
	for _, id := range w.resigned {
		if _, known := f.left[id]; !known {
			f.dead[wordKey{heir.inc.Node, id}] = true
		}
	}
	m.facts = f
}

// knowsAll reports whether a node has heard of all that are there.
func (w *world) knowsAll(f *facts) bool {
	return !slices.ContainsFunc(w.machines, func(m *machine) bool { return m.inc.Boot > 0 && !f.known[m.inc.Node] })
}

func (w *world) mintedOnDisk(m *machine) Amount {
	m.truthMinted()
	return m.disk.minted
}

func (w *world) cut() {
	w.heal()
	kind, a, b := w.IntN(5), w.IntN(len(w.machines)), w.IntN(len(w.machines))
	side := make([]bool, len(w.machines))
	for i, m := range w.machines {
		side[i] = w.IntN(2) == 0
		if kind == 4 {
			side[i] = m.site == 0
		}
	}
	for i := range w.machines {
		for j := range w.machines {
			switch kind {
			case 0, 4:
				w.blocked[i][j] = side[i] != side[j]
			case 1:
				w.blocked[i][j] = side[i] && !side[j]
			case 2:
				w.blocked[i][j] = i == a && j == b || i == b && j == a
			case 3:
				w.blocked[i][j] = (i == a) != (j == a)
			}
		}
	}
}

func (w *world) changeLimit(m *machine) {
	if !w.running(m) {
		return
	}
	f := m.facts.clone()
	if minter := w.by[f.mints()]; w.opt.Often && w.IntN(2) == 0 && minter != nil && w.running(minter) {
		minter.leaving = true // who has to follow this limit yet, or has just done so
		m = minter
		f = m.facts.clone()
	}
	f.limits = limitFact{version: f.limits.version + 1, by: m.inc.Node, Amount: w.drawLimit()}
	m.facts = f
	w.truth.most = w.truth.most.Max(f.limits.Amount)
}

func (w *world) stopFaults() {
	w.healed = true
	w.heal()
	w.operator = w.now + 3000
	w.loss, w.dup, w.slow = 0, 0, 0
	for _, m := range w.machines {
		m.until = w.now
		m.disk.failing = false
	}
}
