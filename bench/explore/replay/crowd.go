package replay

import (
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
)

const (
	perNode   = 9 // visitors who ask at each node
	thinks    = 800 * time.Millisecond
	shortStay = 6 * time.Second
	longStay  = 12 * time.Second
)

// visitor is somebody with a browser, who asks at one node as long as that is there.
type visitor struct {
	no      int
	pass    node.Pass
	known   bool
	session *session // nil: not inside
	stays   time.Duration

	at   *machine   // where the request is that waits for an answer
	asks *node.Core // that has it; nil: there is none
}

// session is what a visitor was let in to. It may be used until it ends, and counts until then,
// also when the visitor has gone.
type session struct {
	room crdt.RoomID
	from time.Duration
	pass node.Pass // the last one
}

// open has the crowd come.
func (w *world) open() {
	for i := range perNode * len(w.nodes) {
		v := &visitor{no: i, stays: shortStay}
		if i%2 == 1 {
			v.stays = longStay
		}
		w.every(thinks, thinks*time.Duration(i)/time.Duration(perNode*len(w.nodes)), func() bool {
			if !w.homing {
				w.ask(v)
			}
			return !w.homing
		})
	}
}

// turnsTo returns the node at which a visitor asks: its own, or the next that has the room.
func (w *world) turnsTo(v *visitor) (*machine, *node.Room) {
	for i := range w.nodes {
		m := w.nodes[(v.no+i)%len(w.nodes)]
		if r := m.room(); r != nil {
			return m, r
		}
	}
	return nil, nil
}

// ask sends a request. Who has stayed for long enough goes without a word, and somebody else comes
// in the place.
func (w *world) ask(v *visitor) {
	if v.asks != nil && v.asks == v.at.core {
		return
	}
	if v.session != nil && v.pass.Accepted() && w.now-v.session.from >= v.stays {
		v.pass, v.known, v.session = node.Pass{}, false, nil
		return
	}
	m, r := w.turnsTo(v)
	if r == nil {
		return
	}
	core := m.core
	v.at, v.asks = m, core
	done := func(x node.Verdict) {
		if m.core == core {
			w.answered(v, m, x)
		}
	}
	if x, ok := r.Begin(v.pass, v.known, w.time(), done); ok {
		w.answered(v, m, x)
	}
	w.post(m, m.core.Flush(w.time()))
}

func (w *world) answered(v *visitor, m *machine, x node.Verdict) {
	v.asks = nil
	was, had := v.pass, v.session != nil && v.pass.Accepted()
	switch {
	case x.ClearPass:
		v.pass, v.known = node.Pass{}, false
	case x.SetPass:
		v.pass, v.known = x.Pass, true
	}
	entered := !had || !was.AcceptedAt.Equal(v.pass.AcceptedAt) || was.Room != v.pass.Room
	lets := x.Admit && v.pass.Accepted()
	if lets && entered {
		if v.session != nil {
			v.session.pass = node.Pass{}
		}
		v.session = &session{room: v.pass.Room, from: w.now}
		w.judge.sessions = append(w.judge.sessions, v.session)
	}
	if v.session != nil {
		v.session.pass = v.pass
	}
	if lets && (entered || was.Ticket != v.pass.Ticket) {
		w.judge.admitted(v.session, m)
	}
}
