package ticket

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// lendingWorld is one site whose nodes own rights and lend them to whoever is the
// counter, over a network that loses, doubles, delays and reorders, with clocks
// that differ, disks that take their time, restarts, and processes that are
// stopped in the middle of what they do. It knows the true time.
type lendingWorld struct {
	t     *testing.T
	rng   *rand.Rand
	nodes []*lendingNode
	air   timers[int] // by true ms; what happens is in post
	post  map[int]func()
	posts int
	ms    int64 // true time
	calm  bool  // no faults any more, and nobody new

	lead     int
	tickets  map[Ticket]int64 // ever granted, and when
	visitors []*guest
	admitted []int64 // true ms
	held     Amount
	most     int // places in use at once
}

const (
	lendingSession = 5 * time.Second
	lendingStep    = 10
)

// guest is a visitor inside, with a pass that some node still lets through.
type guest struct {
	ticket Ticket
	end    time.Time // as the pass says
}

type lendingNode struct {
	w       *lendingWorld
	i       int
	id      crdt.Incarnation
	offset  time.Duration
	rights  *Rights
	desk    Desk[int]
	stock   *Stock
	account Accounts
	asleep  int64 // true ms until which the process does not run
	told    map[crdt.NodeID]int64
}

func newLendingWorld(t *testing.T, seed uint64) *lendingWorld {
	w := &lendingWorld{t: t, rng: rand.New(rand.NewPCG(seed, 5)), post: map[int]func(){}, tickets: map[Ticket]int64{}, ms: 1_000_000}
	for i := range 4 {
		n := &lendingNode{w: w, i: i, id: crdt.Incarnation{Node: crdt.NodeID{byte(i + 1)}, Boot: 1}}
		n.offset = time.Duration(w.rng.IntN(401)-200) * time.Millisecond
		a := Amount{Places: int64(2 + w.rng.IntN(30)), Rate: int64(20 + w.rng.IntN(200))}
		n.start(nil)
		n.rights.Receive(Transfer{Room: aRoom, From: crdt.NodeID{99}, To: n.id.Node, Gave: a}, n.now())
		if n.rights.Writes() != nil {
			n.rights.Confirmed(n.now())
		}
		w.held = w.held.Add(a)
		w.nodes = append(w.nodes, n)
	}
	return w
}

func (n *lendingNode) now() time.Time {
	return time.UnixMilli(n.w.ms).Add(n.offset)
}

// start begins a new start of a node with what its disk holds.
func (n *lendingNode) start(stored []Put) {
	n.id.Boot++
	r, _, err := OpenRights(RightsConfig{Self: n.id, Room: aRoom, Session: lendingSession}, stored, n.now())
	if err != nil {
		n.w.t.Fatal(err)
	}
	n.rights, n.desk, n.account = r, Desk[int]{}, Accounts{}
	n.stock = NewStock(n.id, aRoom)
	n.told = map[crdt.NodeID]int64{}
}

// later has f happen at a node: after some delay, maybe twice or never, and not
// before its process runs again. What is meant for one start of a node does not
// reach the next unless it is a message.
func (w *lendingWorld) later(delay int64, f func()) {
	w.posts++
	w.post[w.posts] = f
	w.air.push(w.ms+delay, w.posts)
}

func (w *lendingWorld) send(to *lendingNode, f func()) {
	copies := 1
	if !w.calm {
		copies = []int{0, 1, 1, 1, 1, 1, 1, 1, 1, 2}[w.rng.IntN(10)]
	}
	for range copies {
		delay := int64(w.rng.IntN(30))
		if !w.calm && w.rng.IntN(8) == 0 {
			delay = int64(w.rng.IntN(4000))
		}
		var arrive func()
		arrive = func() {
			if to.asleep > w.ms {
				w.later(to.asleep-w.ms+1, arrive)
				return
			}
			f()
		}
		w.later(delay, arrive)
	}
}

func (w *lendingWorld) step() {
	w.ms += lendingStep
	for {
		next, ok := w.air.pop(w.ms)
		if !ok {
			break
		}
		f := w.post[next.key]
		delete(w.post, next.key)
		f()
	}
	if !w.calm {
		w.faults()
	}
	for _, n := range w.nodes {
		if n.asleep <= w.ms {
			n.run()
		}
	}
	w.check()
}

func (w *lendingWorld) faults() {
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	switch p := w.rng.IntN(6000); {
	case p < 2:
		n.start(n.rights.Stored())
	case p < 10:
		w.lead = w.rng.IntN(len(w.nodes)) // some hear of it, and some go on asking the other
	case p < 30:
		n.asleep = w.ms + int64(w.rng.IntN(4000))
	}
}

// run is one turn of a node's loop.
func (n *lendingNode) run() {
	w, now := n.w, n.now()
	n.rights.Expire(now)
	if n.rights.Writes() != nil {
		r := n.rights
		delay := int64(w.rng.IntN(40))
		if !w.calm && w.rng.IntN(20) == 0 {
			delay = int64(w.rng.IntN(600))
		}
		w.later(delay, func() {
			if n.rights == r {
				r.Confirmed(n.now())
			}
		})
	}
	if w.ms%50 == 0 {
		n.tick(now)
	}
	if !w.calm && w.rng.IntN(10) == 0 {
		for range 1 + w.rng.IntN(3) {
			n.desk.Apply(Applicant[int]{Place: now, Reserved: w.rng.IntN(2) == 0})
		}
	}
	n.desk.GiveUp(now)
	counter := w.nodes[w.lead]
	if !w.calm && w.rng.IntN(50) == 0 {
		counter = w.nodes[w.rng.IntN(len(w.nodes))]
	}
	if call, ok := n.desk.Next(counter.id.Node, now); ok {
		from := n.id
		w.send(counter, func() { counter.called(n, from, call) })
	}
}

// tick is what a node does in the background.
func (n *lendingNode) tick(now time.Time) {
	w := n.w
	var all []Lender
	for _, m := range w.nodes {
		all = append(all, Lender{m.id, min(m.rights.Free().Places, m.rights.Free().Rate)})
	}
	n.stock.SetLenders(all, now)
	if n.i != w.lead {
		n.stock.Drop()
	}
	clear(n.told)
	for _, c := range n.stock.Due(0, now) {
		if n.told[c.Lender.Node]++; n.told[c.Lender.Node] > 1 {
			w.t.Errorf("node %d sent a lender two messages in one tick", n.i)
		}
		to, from := w.nodes[c.Lender.Node[0]-1], n.id
		c, err := DecodeLoanCall(AppendLoanCall(nil, c))
		if err != nil {
			w.t.Fatal(err)
		}
		w.send(to, func() { to.loanCalled(n, from, c) })
	}
	byCounter := map[crdt.Incarnation][]Loan{}
	for _, l := range n.rights.LoansDue(now) {
		byCounter[l.To] = append(byCounter[l.To], l)
	}
	for _, m := range w.nodes {
		if loans := byCounter[m.id]; len(loans) > 0 {
			n.answer(m, LoanAnswer{Room: aRoom, Lender: n.id, To: m.id, Loans: loans})
		}
	}
	if !w.calm && w.rng.IntN(100) == 0 {
		n.rights.Recall()
		for _, a := range n.rights.Recalls(now) {
			n.answer(w.nodes[a.To.Node[0]-1], a)
		}
	}
	for _, a := range n.account.Serve(n.offer, now) {
		n.grant(w.nodes[a.To[0]-1], a.Grant)
	}
	for _, c := range Cancels(aRoom, n.account.TakeVoid()) {
		to := w.nodes[c.Anchor[0]-1]
		w.send(to, func() { to.rights.Cancel(c.Ranges, to.now()) })
	}
}

func (n *lendingNode) answer(to *lendingNode, a LoanAnswer) {
	a, err := DecodeLoanAnswer(AppendLoanAnswer(nil, a))
	if err != nil {
		n.w.t.Fatal(err)
	}
	n.w.send(to, func() {
		for _, ack := range a.Acks {
			to.stock.Acked(ack)
		}
		to.stock.Recall(a.Lender, a.Recalled, to.now())
		for _, l := range a.Loans {
			to.stock.Add(l, to.now())
		}
	})
}

// loanCalled is a lender hearing from a counter.
func (n *lendingNode) loanCalled(from *lendingNode, id crdt.Incarnation, c LoanCall) {
	if c.Lender != n.id {
		return // an earlier start's
	}
	a := LoanAnswer{Room: aRoom, Lender: n.id, To: id}
	for _, rep := range c.Reports {
		if _, ok := n.rights.Reported(id.Node, rep, n.now()); ok {
			a.Acks = append(a.Acks, ReportAck{Room: aRoom, Lender: n.id, Block: rep.Block, Number: rep.Number})
		}
	}
	if c.Borrow > 0 && n.rights.Lend(id, c.Borrow, n.now()) == 0 {
		a.Loans = append(a.Loans, Loan{Room: aRoom, To: id, Lender: n.id}) // none to lend
	}
	if len(a.Acks)+len(a.Loans) > 0 {
		n.answer(from, a)
	}
}

// called is a counter answering a call.
func (n *lendingNode) called(from *lendingNode, id crdt.Incarnation, call Call) {
	if n.i != n.w.lead {
		return
	}
	g, ok := n.account.Answer(id, "a", call, func(want Places) Offer {
		return n.offer(id, Call{Want: want})
	}, n.now())
	if ok {
		n.grant(from, g)
	}
}

// offer is what a counter has: loans first, then its own rights.
func (n *lendingNode) offer(id crdt.Incarnation, call Call) Offer {
	want := int64(call.Want.Sum())
	ranges := takeFrom(n.stock, want, id.Node, n.now())
	more, _ := n.rights.Issue(want-int64(total(ranges)), n.now())
	ranges = append(ranges, more...)
	got := int(total(ranges))
	n.w.born(ranges)
	given := Places{Reserved: min(got, call.Want.Reserved)}
	given.Contested = got - given.Reserved
	return Offer{Given: given, Tickets: ranges, Wait: got == 0 && n.stock.Expecting(n.now()) > 0}
}

// grant sends a grant; the process may be stopped before it does.
func (n *lendingNode) grant(to *lendingNode, g Grant) {
	w := n.w
	g, err := DecodeGrant(AppendGrant(nil, g))
	if err != nil {
		w.t.Fatal(err)
	}
	stopped := int64(0)
	if !w.calm && w.rng.IntN(40) == 0 {
		stopped = int64(w.rng.IntN(3000))
	}
	w.later(stopped, func() { w.send(to, func() { to.granted(n.id.Node, g) }) })
}

// granted lets visitors in. Each checks in with its anchor sooner or later.
func (n *lendingNode) granted(from crdt.NodeID, g Grant) {
	w, now := n.w, n.now()
	in, _, err := n.desk.Granted(from, g, now)
	if err != nil {
		return
	}
	for _, a := range in {
		if age := w.ms - w.tickets[a.Ticket]; age > TakeUp.Milliseconds() {
			w.t.Errorf("a ticket was taken up %d ms after it was granted", age)
		}
		v := &guest{ticket: a.Ticket, end: now.Add(lendingSession)}
		w.visitors = append(w.visitors, v)
		w.admitted = append(w.admitted, w.ms)
		for range w.rng.IntN(4) {
			w.later(int64(w.rng.IntN(9000)), func() { n.renew(v) })
		}
	}
}

// renew carries a check-in to the anchor, and the new end back.
func (n *lendingNode) renew(v *guest) {
	w, at := n.w, n.now()
	if at.After(v.end) {
		return
	}
	anchor, end := w.nodes[v.ticket.Anchor[0]-1], v.end
	w.send(anchor, func() {
		if next, _, err := anchor.rights.CheckIn(v.ticket, end, at, anchor.now()); err == nil {
			w.send(n, func() {
				if next.After(v.end) {
					v.end = next
				}
			})
		}
	})
}

// born notes ticket numbers, each of which is granted once.
func (w *lendingWorld) born(ranges []Range) {
	for _, g := range ranges {
		for i := range g.N {
			t := g.Ticket(i)
			if w.tickets[t] != 0 {
				w.t.Errorf("ticket %+v was granted twice", t)
			}
			w.tickets[t] = w.ms
		}
	}
}

// check counts by true time: a pass is good as long as any node takes it.
func (w *lendingWorld) check() {
	slowest := time.Duration(0)
	for _, n := range w.nodes {
		slowest = min(slowest, n.offset)
	}
	w.visitors = slices.DeleteFunc(w.visitors, func(v *guest) bool { return time.UnixMilli(w.ms).Add(slowest).After(v.end) })
	if w.most = max(w.most, len(w.visitors)); int64(len(w.visitors)) > w.held.Places {
		w.t.Errorf("%d places are in use of %d", len(w.visitors), w.held.Places)
	}
	lately := 0
	for i := len(w.admitted) - 1; i >= 0 && w.admitted[i] > w.ms-60_000; i-- {
		lately++
	}
	if int64(lately) > w.held.Rate {
		w.t.Errorf("%d were let in within a minute, of %d", lately, w.held.Rate)
	}
}

// TestLoansKeepTheLimit runs the world through faults and then lets it rest: in
// the end everything that was lent is back.
func TestLoansKeepTheLimit(t *testing.T) {
	granted, admitted := 0, 0
	for seed := range uint64(12) {
		w := newLendingWorld(t, seed)
		for range 140_000 / lendingStep {
			w.step()
			if t.Failed() {
				t.Fatalf("seed %d, at %d ms", seed, w.ms-1_000_000)
			}
		}
		w.calm = true
		rest := lendingSession + LoanValid + TakeUp + 3*Guard + time.Minute + 10*time.Second
		for range int(rest/time.Millisecond) / lendingStep {
			w.step()
		}
		back := Amount{}
		for _, n := range w.nodes {
			back = back.Add(n.rights.Free())
			if !n.stock.Idle() {
				t.Errorf("seed %d: node %d still has something to tell", seed, n.i)
			}
		}
		if back != w.held || t.Failed() {
			t.Fatalf("seed %d: %+v rights are back of %+v", seed, back, w.held)
		}
		granted += len(w.tickets)
		admitted += len(w.admitted)
		if w.most*3 < int(w.held.Places) {
			t.Errorf("seed %d: at most %d of %d places were in use", seed, w.most, w.held.Places)
		}
	}
	t.Logf("%d tickets granted, %d taken up", granted, admitted)
}
