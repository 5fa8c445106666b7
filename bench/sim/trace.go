package sim

import (
	"fmt"

	"github.com/ropeline/ropeline/node"
)

// trace tells who wants to follow a run what happens at a node; m may be nil. Where
// it is called often, the caller asks first whether anybody follows.
func (s *sim) trace(m *machine, format string, args ...any) {
	if s.cfg.Trace == nil {
		return
	}
	at := "-"
	if m != nil {
		at = fmt.Sprintf("%s/%d", m.name(), m.boot)
	}
	fmt.Fprintf(s.cfg.Trace, "%9.3f %-7s %s\n", seconds(s.now), at, fmt.Sprintf(format, args...))
}

// ticketName is how a trace writes the ticket of a pass.
func (s *sim) ticketName(p *pass) string {
	if p.anchor == 0 {
		return "none"
	}
	return fmt.Sprintf("%s:%d.%d.%d", s.machines[s.registry.ids[p.anchor-1].machine].name(), p.Ticket.Boot, p.Ticket.Block, p.Ticket.Seq)
}

// traceAnswer tells of visitors who get in, out, or another ticket or place.
func (s *sim) traceAnswer(v *visitor, m *machine, a *node.Verdict) {
	switch p := s.registry.pack(a.Pass); {
	case a.Admit && (v.phase != inside || p.accepted != v.accepted || p.anchor != v.anchor):
		s.trace(m, "visitor %d comes in by %s until %+v, %d inside, %d in 60 s", v.no, s.ticketName(&p), a.Pass.LeaseEnd.Sub(Epoch()), s.oracle.active, len(s.oracle.recent))
	case !a.Admit && v.phase == inside:
		s.trace(m, "visitor %d has to go", v.no)
	case !a.Admit && a.SetPass && (v.phase == asking || !p.Arrival.Equal(v.pass.Arrival)):
		s.trace(m, "visitor %d waits as %x, who came at %v", v.no, p.Visitor[:4], a.Pass.Arrival.Sub(Epoch()))
	}
}
