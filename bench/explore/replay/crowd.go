package replay

import (
	"time"

	"github.com/ropeline/ropeline/node"
)

// visitor is somebody with a browser, who asks at one node as long as that is there.
type visitor struct {
	no    int
	home  *machine
	at    *machine // where the request is that waits for an answer
	asks  bool
	pass  node.Pass
	known bool
	since time.Duration // inside since; of the present session
	stays time.Duration
	turn  int // requests, so that an answer to an earlier one is dropped
}

// inside reports whether a node would let the visitor pass.
func (v *visitor) inside(now time.Time) bool {
	return v.known && v.pass.Accepted() && !now.After(v.pass.LeaseEnd)
}

// open has the crowd come.
func (w *world) open() {
	for i := range perNode * len(w.nodes) {
		v := &visitor{no: i, home: w.nodes[i%len(w.nodes)], stays: shortStay}
		if i%2 == 1 {
			v.stays = longStay
		}
		w.crowd = append(w.crowd, v)
		var again func()
		again = func() {
			if w.homing && !v.known {
				return
			}
			w.ask(v)
			w.after(thinks, again)
		}
		w.after(thinks*time.Duration(i)/time.Duration(perNode*len(w.nodes)), again)
	}
}

// turnsTo returns the node at which a visitor asks: its own, or the next that answers.
func (w *world) turnsTo(v *visitor) *machine {
	for i := range w.nodes {
		m := w.nodes[(v.home.no+i)%len(w.nodes)]
		if m.core != nil && m.core.Ready() && !m.gone {
			return m
		}
	}
	return nil
}

// ask sends a request.
func (w *world) ask(v *visitor) {
	if v.asks {
		return
	}
	if v.known && v.pass.Accepted() && (w.now-v.since >= v.stays || w.homing) {
		w.depart(v)
		return
	}
	if w.homing {
		v.known = false
		return
	}
	m := w.turnsTo(v)
	if m == nil {
		return
	}
	r := m.core.Route("", "/")
	if r == nil {
		return
	}
	v.turn++
	turn, life := v.turn, m.life
	v.at, v.asks = m, true
	done := func(x node.Verdict) {
		if v.turn == turn && m.life == life {
			w.answered(v, m, x)
		}
	}
	x, ok := r.Begin(v.pass, v.known, w.time(), done)
	if ok {
		w.answered(v, m, x)
	}
	w.post(m, m.core.Flush(w.time()))
}

// depart has a visitor go without a word. The pass may be used until it ends, and counts
// until then; somebody else comes in the place.
func (w *world) depart(v *visitor) {
	w.judge.away = append(w.judge.away, v.pass)
	v.pass, v.known = node.Pass{}, false
}

func (w *world) answered(v *visitor, m *machine, x node.Verdict) {
	v.asks = false
	was, had := v.pass, v.known
	switch {
	case x.ClearPass:
		v.pass, v.known = node.Pass{}, false
	case x.SetPass:
		v.pass, v.known = x.Pass, true
	}
	if !x.Admit || !v.pass.Accepted() {
		return
	}
	switch {
	case !had || !was.Accepted() || !was.AcceptedAt.Equal(v.pass.AcceptedAt) || was.Room != v.pass.Room:
		v.since = w.now
		w.judge.entered(v, m)
	case was.Ticket != v.pass.Ticket:
		w.judge.moved(v, m)
	}
}
