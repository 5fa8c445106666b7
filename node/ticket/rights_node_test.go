package ticket

import (
	"errors"
	"reflect"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// brain is what a node of the world has in memory: the machines under test, and
// just enough around them.
type brain struct {
	rights  *Rights
	stock   *Stock
	seq     uint64
	heard   map[crdt.NodeID]news
	merged  map[crdt.NodeID]*facts
	passes  map[int]pass
	renews  map[int]*renewal1
	queue   map[int]int64 // session → last seen
	calls   map[int]*grantCall
	numbers uint64
	done    map[uint64]bool // call → taken up
	answers map[answerKey]Range
	asked   map[int]int64 // at the leader: session → last asked
	gossip  int64
	version int64
}

type news struct {
	at         int64
	inc        crdt.Incarnation
	free, wait int64
	rate       int64
}

type pass struct {
	session int
	ticket  Ticket
	end     time.Time
}

type renewal1 struct {
	pass
	at, first, sent int64
	refused         bool
}

type grantCall struct {
	number uint64
	began  int64
}

type answerKey struct {
	from   crdt.Incarnation
	number uint64
}

func newBrain(w *world, m *machine) brain {
	b := brain{
		heard: map[crdt.NodeID]news{}, merged: map[crdt.NodeID]*facts{}, passes: map[int]pass{}, renews: map[int]*renewal1{},
		queue: map[int]int64{}, calls: map[int]*grantCall{}, done: map[uint64]bool{}, answers: map[answerKey]Range{}, asked: map[int]int64{},
	}
	cfg := RightsConfig{
		Self: m.inc, Session: worldSession, LeaveOut: w.opt.LeftOut,
		Seqs: func(n uint64) uint64 { m.seq += n; return m.seq - n + 1 },
	}
	var err error
	if b.rights, _, err = OpenRights(cfg, m.disk.puts(), w.clock(m)); err != nil {
		panic(err)
	}
	b.stock = NewStock(m.inc, crdt.RoomID{})
	b.version = w.now
	return b
}

func (m *machine) freeRights() int64 {
	free := m.rights.Free()
	return min(free.Places, free.Rate)
}

// step is one tick of a node.
func (w *world) step(m *machine) {
	now := w.clock(m)
	m.rights.Expire(now)
	w.useFacts(m, now)
	if m.leaving {
		if w.leave(m, now); !m.up {
			return
		}
	}
	w.resend(m)
	w.serveLine(m)
	if w.opt.Counter {
		w.lendAndReport(m, now)
	}
	if w.now >= m.gossip {
		m.gossip = w.now + 400
		w.moveRights(m, now)
		w.tell(m)
	}
	for _, t := range m.rights.TransfersDue(now) {
		w.send(m, m.facts.heir(t.To), func(o *machine) { o.rights.Receive(t, w.clock(o)) })
	}
	for _, a := range m.rights.AcksDue(now) {
		w.send(m, a.From, func(o *machine) { o.rights.Acked(a) })
	}
	if h, ok := m.rights.HandoverDue(now); ok {
		w.send(m, m.facts.heir(h.Final.Heir), func(o *machine) {
			o.finals[h.Final.Node] = h.Final
			o.rights.TakeOver(h, w.clock(o))
		})
	}
	m.lastStep = w.now
}

// useFacts does what facts ask for, and tells what is to be known.
func (w *world) useFacts(m *machine, now time.Time) {
	r, f, self := m.rights, m.facts, m.inc.Node
	others := r.OthersMinted(func(yield func(crdt.NodeID, Amount) bool) {
		for id := range f.known {
			if !yield(id, f.mintedBy(id)) {
				return
			}
		}
	})
	r.SetLimits(f.limits.Amount, others, f.mints(), now)
	if minted := r.Minted(); minted != f.minted[self].Amount {
		f = f.clone()
		f.minted[self] = mintedFact{w.now + 1, minted}
		m.facts = f
	}
	for id, final := range m.finals {
		_, told := f.left[id]
		_, lost := r.book.disk.recovered[id]
		if _, taken := r.book.disk.taken[id]; !told && !lost && taken {
			f = f.clone()
			f.left[id] = final
			m.facts = f
		}
	}
	for id, final := range f.left {
		r.Settle(final, f.heirOfLeaver(id))
	}
	dead := f.unrecovered()
	heir := f.heirOf(dead)
	for _, id := range dead {
		if (heir != crdt.NodeID{}) {
			r.Fence(id, heir, f.round(), now)
		}
	}
	_, leaving := r.Leaving()
	for id := range r.book.disk.dead {
		if word, ok := r.Frozen(id); ok && !leaving && !reflect.DeepEqual(f.words[wordKey{self, id}].Word, word) {
			f = f.clone()
			f.words[wordKey{self, id}] = wordFact{w.now + 1, word}
			m.facts = f
		}
	}
	if len(f.dead) == 0 {
		return
	}
	if e := f.estate(self); len(e.Dead) > 0 {
		if err := r.Recover(e, now); err != nil && !errors.Is(err, ErrWords) && !errors.Is(err, ErrBusy) {
			panic(err)
		}
	}
	for _, x := range r.Recovered() {
		if f.recovered[x.Dead].by != self {
			f = f.clone()
			f.recovered[x.Dead] = recoveredFact{self, x.Minted, x.Turn}
			m.facts = f
			w.truth.settled(x)
		}
	}
}

// leave has a node go, and come back as a new one.
func (w *world) leave(m *machine, now time.Time) {
	if _, on := m.rights.Leaving(); !on {
		heir := w.heirFor(m)
		if heir == nil {
			m.leaving = false
			return
		}
		m.rights.Close(m.rights.Tokens())
		if err := m.rights.Leave(heir.inc.Node, now); err != nil && !errors.Is(err, ErrBusy) {
			m.leaving = false
		}
		return
	}
	final, left := m.rights.Left()
	if !left {
		return
	}
	if m.facts.left[m.inc.Node].Node != m.inc.Node {
		f := m.facts.clone()
		f.left[m.inc.Node] = final
		m.facts = f
		return
	}
	for _, o := range w.machines { // it goes when somebody has heard
		if o != m && o.up && o.facts.left[m.inc.Node].Node == m.inc.Node {
			w.truth.minted[m.inc.Node] = m.rights.Minted()
			w.resigned = append(w.resigned, m.inc.Node)
			w.crash(m)
			w.newDisk(m)
			m.until = w.now + 2000
			if w.opt.Often {
				m.until += w.Int64N(20_000)
			}
			return
		}
	}
}

func (w *world) heirFor(m *machine) *machine {
	o := w.machines[w.IntN(len(w.machines))]
	if o == m || !w.running(o) || o.leaving || !m.facts.present(o.inc.Node) || w.now-m.heard[o.inc.Node].at > 1500 {
		return nil
	}
	return o
}

// tell gossips.
func (w *world) tell(m *machine) {
	x := news{at: w.now, inc: m.inc, free: m.rights.Free().Places, rate: m.rights.Free().Rate, wait: int64(len(m.queue) + len(m.asked))}
	if m.leaving {
		x.inc = crdt.Incarnation{}
	}
	f, self := m.facts, m.inc.Node
	for _, o := range w.machines {
		if o == m {
			continue
		}
		part := w.opt.Limits && w.IntN(5) > 0 // what is minted travels apart, and more seldom
		w.send(m, o.inc.Node, func(o *machine) {
			if x.at > o.heard[self].at {
				o.heard[self] = x
			}
			switch {
			case o.merged[self] == f || o.facts == f:
			case part:
				o.facts = o.facts.merged(f.withoutMinted())
			default:
				o.merged[self] = f
				o.facts = o.facts.merged(f)
			}
		})
	}
}

// moveRights gives what is free here to where visitors wait.
func (w *world) moveRights(m *machine, now time.Time) {
	r := m.rights
	if s := r.Surplus(now); !s.IsZero() {
		r.Give(m.facts.heir(m.facts.minter), s, now)
		return
	}
	free := r.Free()
	mine := int64(len(m.queue) + len(m.asked))
	var best, bestRate int64
	var to, toRate *machine
	for _, o := range w.machines {
		x := m.heard[o.inc.Node]
		if o == m || w.opt.Counter && o.site == m.site || w.now-x.at > 1500 || x.inc != o.inc || !m.facts.present(o.inc.Node) {
			continue
		}
		if n := x.wait - x.free; n > best {
			best, to = n, o
		}
		if n := min(x.wait, x.free+1) - x.rate; n > bestRate {
			bestRate, toRate = n, o
		}
	}
	if to != nil && mine == 0 {
		r.Give(to.inc.Node, Amount{Places: min(best, free.Places)}, now)
	}
	if toRate != nil && (mine == 0 || free.Places == 0) {
		r.Give(toRate.inc.Node, Amount{Rate: min(bestRate, free.Rate)}, now)
	}
}

// leader returns who leads a machine's site, as far as it can tell.
func (w *world) leader(m *machine) *machine {
	for _, o := range w.machines {
		x := m.heard[o.inc.Node]
		if o.site == m.site && (o == m && !m.leaving || o != m && w.now-x.at < 1000 && x.inc == o.inc) {
			return o
		}
	}
	return m
}

// lendAndReport does what lenders and counters do in the background.
func (w *world) lendAndReport(m *machine, now time.Time) {
	var lenders []Lender
	for _, o := range w.machines {
		if x := m.heard[o.inc.Node]; o != m && o.site == m.site && w.now-x.at < 1000 && x.inc == o.inc {
			lenders = append(lenders, Lender{x.inc, min(x.free, x.rate)})
		}
	}
	if w.leader(m) != m || m.leaving {
		m.stock.Drop()
		lenders = nil
	}
	m.stock.SetLenders(lenders, now)
	for _, c := range m.stock.Due(m.freeRights(), now) {
		from := m.inc
		w.send(m, c.Lender.Node, func(o *machine) { w.loanCall(o, from, c) })
	}
	for _, l := range m.rights.LoansDue(now) {
		w.send(m, l.To.Node, func(o *machine) { o.stock.Add(l, w.clock(o)) })
	}
}

func (w *world) loanCall(m *machine, from crdt.Incarnation, c LoanCall) {
	now := w.clock(m)
	for _, rep := range c.Reports {
		if _, ok := m.rights.Reported(from.Node, rep, now); ok {
			w.send(m, from.Node, func(o *machine) { o.stock.Acked(ReportAck{Lender: rep.Lender, Block: rep.Block, Number: rep.Number}) })
		}
	}
	if c.Borrow > 0 && c.Lender == m.inc && m.rights.Lend(from, c.Borrow, now) == 0 {
		w.send(m, from.Node, func(o *machine) { o.stock.Add(Loan{To: from, Lender: c.Lender}, w.clock(o)) })
	}
}
