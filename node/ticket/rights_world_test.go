package ticket

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// A world of nodes with rights: machines with clocks and disks, a network, faults,
// visitors, and an oracle that knows the truth. Times are ms of true time.

const (
	worldStep    = 200
	worldSession = 6 * time.Second
	worldHealed  = 90_000  // faults stop
	worldHome    = 175_000 // everybody has gone home
	worldEnd     = 265_000
)

// worldOptions says what a run has besides crashes, cuts, pauses, a bad network
// and bad disks.
type worldOptions struct {
	Counter bool  // site counters with loans
	Limits  bool  // limits change, at two nodes at once
	Leave   bool  // nodes leave, and new ones come
	Lose    bool  // disks are lost, and their rights recovered
	Often   bool  // both happen more often
	Open    bool  // sessions may be borrowed
	Light   bool  // less demand than there is room
	Slow    bool  // every disk is slow
	LeftOut Rules // for the rules' own sake
}

// world is one run.
type world struct {
	*rand.Rand
	opt      worldOptions
	now      int64
	machines []*machine
	by       map[crdt.NodeID]*machine
	mail     mail
	sent     int64
	blocked  [][]bool
	loss     float64
	dup      float64
	slow     float64
	ids      byte
	visitors []*traveller
	sessions int
	truth    truth
	lost     []crdt.NodeID // disks that are gone
	resigned []crdt.NodeID // have left for good
	losses   int
	operator int64 // looks for them next
	healed   bool
	fault    int64   // when the next comes
	calm     float64 // ms between faults
}

// machine is one computer: a node, and a new one when its disk is lost.
type machine struct {
	index, site int
	off         int64 // of its clock
	up, paused  bool
	until       int64 // what it is in lasts until then
	paused0     int64
	inc         crdt.Incarnation
	disk        disk
	facts       *facts
	finals      map[crdt.NodeID]Final // of who handed over to it
	brain                             // gone with every crash
	waiting     []func()
	leaving     bool
	lastStep    int64
}

// disk is what a machine has stored, and the batch on its way there.
type disk struct {
	values  map[string][]byte
	batch   []Put
	done    int64
	failing bool // what is on its way fails
	back    int64
	minted  Amount // the most that was ever minted by what may be stored, as the oracle has it
}

func (d *disk) apply(puts []Put) {
	for _, p := range puts {
		if p.Value == nil {
			delete(d.values, p.Key)
		} else {
			d.values[p.Key] = p.Value
		}
	}
}

func (d *disk) puts() []Put {
	var out []Put
	for key, value := range d.values {
		out = append(out, Put{key, value})
	}
	return out
}

// letter is a message: what it does when it arrives.
type letter struct {
	at, n    int64
	from, to crdt.NodeID
	open     func(m *machine)
}

type mail []*letter

func (q mail) Len() int { return len(q) }
func (q mail) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].n < q[j].n
}
func (q mail) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *mail) Push(x any)   { *q = append(*q, x.(*letter)) }
func (q *mail) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}

func newWorld(seed uint64, opt worldOptions) *world {
	w := &world{
		Rand: rand.New(rand.NewPCG(seed, 1)), opt: opt, by: map[crdt.NodeID]*machine{}, fault: 5000,
		loss: .02, dup: .02, slow: .02,
	}
	w.truth = newTruth(w)
	w.calm = 1500 + 4000*w.Float64()
	sites, per := 2+w.IntN(2), 2+w.IntN(2)
	if sites == 3 {
		per = 2
	}
	for i := range sites * per {
		m := &machine{index: i, site: i / per, off: w.Int64N(401) - 200}
		w.machines = append(w.machines, m)
		w.newDisk(m)
		m.facts.limits = limitFact{version: 1, Amount: w.drawLimit()}
		w.blocked = append(w.blocked, make([]bool, sites*per))
	}
	first := w.machines[0]
	for _, m := range w.machines {
		m.facts.limits = first.facts.limits
		m.facts.minter = first.inc.Node
		for _, o := range w.machines {
			m.facts.known[o.inc.Node] = true
		}
		w.start(m)
	}
	w.truth.most = first.facts.limits.Amount
	n := 36
	if opt.Light {
		n = 8
	}
	for range n {
		w.visitors = append(w.visitors, &traveller{home: w.IntN(len(w.machines)), next: w.Int64N(8000)})
	}
	return w
}

func (w *world) drawLimit() Amount {
	if w.opt.Light {
		return Amount{Places: 30, Rate: 300}
	}
	switch w.IntN(4) {
	case 0:
		return Amount{Places: 60, Rate: 6 + w.Int64N(20)}
	case 1:
		return Amount{Places: 6 + w.Int64N(10), Rate: 30 + w.Int64N(60)}
	}
	return Amount{Places: 4 + w.Int64N(12), Rate: 500}
}

// clock returns what a machine takes for the time.
func (w *world) clock(m *machine) time.Time {
	return epoch.Add(time.Duration(w.now+m.off) * time.Millisecond)
}

func (w *world) send(m *machine, to crdt.NodeID, open func(m *machine)) {
	if w.by[to] == nil || to == m.inc.Node {
		return
	}
	copies := 1
	if w.Float64() < w.dup {
		copies = 2
	}
	for range copies {
		if w.Float64() < w.loss {
			continue
		}
		at := w.now + 5 + w.Int64N(60)
		if w.Float64() < w.slow {
			at += w.Int64N(4000)
			if w.Float64() < .2 {
				at += w.Int64N(20_000)
			}
		}
		w.sent++
		heap.Push(&w.mail, &letter{at, w.sent, m.inc.Node, to, open})
	}
}

func (w *world) deliver() {
	for len(w.mail) > 0 && w.mail[0].at <= w.now {
		l := heap.Pop(&w.mail).(*letter)
		to, from := w.by[l.to], w.by[l.from]
		switch {
		case to == nil || to.inc.Node != l.to || !to.up:
		case from != nil && w.blocked[from.index][to.index]:
		case to.paused:
			if len(to.waiting) < 200 {
				to.waiting = append(to.waiting, func() { l.open(to) })
			}
		default:
			l.open(to)
			w.write(to)
		}
	}
}

// newDisk makes a machine a new node.
func (w *world) newDisk(m *machine) {
	w.ids++
	m.inc = crdt.Incarnation{Node: crdt.NodeID{w.ids, byte(m.index)}}
	m.disk = disk{values: map[string][]byte{}}
	m.facts, m.finals = newFacts(), map[crdt.NodeID]Final{}
	m.facts.known[m.inc.Node] = true
	m.leaving = false
	w.by[m.inc.Node] = m
}

func (w *world) start(m *machine) {
	m.inc.Boot++
	m.up, m.paused, m.waiting, m.lastStep = true, false, nil, w.now
	m.disk.batch, m.disk.failing, m.disk.back = nil, false, 0
	m.brain = newBrain(w, m)
}

// crash stops a machine. The batch under way is on the disk, or is not.
func (w *world) crash(m *machine) {
	if m.disk.batch != nil && w.IntN(2) == 0 {
		m.disk.apply(m.disk.batch)
	}
	m.up, m.paused, m.waiting = false, false, nil
	m.truthMinted()
	m.brain = brain{}
}

// truthMinted keeps what a machine's disk has as minted at most.
func (m *machine) truthMinted() {
	b, err := openBook(m.disk.puts())
	if err != nil {
		panic(err)
	}
	m.disk.minted = b.disk.minted
}

// write moves a machine's disk along.
func (w *world) write(m *machine) {
	d := &m.disk
	for m.up {
		if d.back != 0 {
			if w.now < d.back {
				return
			}
			d.back, d.failing = 0, false
			d.values = map[string][]byte{}
			d.apply(m.rights.Stored())
			m.rights.StoreBack(w.clock(m))
		}
		switch {
		case d.batch == nil:
			if d.batch = m.rights.Writes(); d.batch == nil {
				return
			}
			d.done = w.now + w.latency(d)
		case w.now < d.done:
			return
		case d.failing:
			if w.IntN(2) == 0 {
				d.apply(d.batch)
			}
			d.batch = nil
			m.rights.Failed(w.clock(m))
			d.back = w.now + 500 + w.Int64N(4000)
		default:
			d.apply(d.batch)
			d.batch = nil
			m.rights.Confirmed(w.clock(m))
		}
	}
}

func (w *world) latency(d *disk) int64 {
	switch {
	case w.opt.Slow:
		return 500
	case w.Float64() < .7:
		return 0
	case w.Float64() < .8:
		return w.Int64N(300)
	default:
		return w.Int64N(3000)
	}
}

func (w *world) running(m *machine) bool { return m.up && !m.paused }

// run runs a world to its end and returns what was wrong.
func (w *world) run() truth {
	for w.now = 0; w.now < worldEnd && !w.truth.wrong(); w.now += worldStep {
		if w.now >= w.fault && w.now < worldHealed {
			w.inject()
			w.fault = w.now + int64(w.ExpFloat64()*w.calm)
		}
		if w.now == worldHealed {
			w.stopFaults()
		}
		w.wake()
		if w.now >= w.operator {
			w.declare()
		}
		w.deliver()
		for _, i := range w.Perm(len(w.machines)) {
			if m := w.machines[i]; w.running(m) {
				w.step(m)
				w.write(m)
			}
		}
		for _, v := range w.visitors {
			if v.next <= w.now {
				w.visit(v)
			}
		}
		w.truth.look(w)
	}
	w.truth.end(w)
	return w.truth
}

// wake starts machines that were down and lets go on those that were stopped:
// what happens first then is not said.
func (w *world) wake() {
	for _, m := range w.machines {
		switch {
		case w.now < m.until:
		case !m.up:
			w.start(m)
		case m.paused:
			m.paused = false
			waiting := m.waiting
			m.waiting = nil
			if w.IntN(2) == 0 {
				w.step(m)
			}
			w.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
			for _, f := range waiting {
				if !m.up { // it has left
					break
				}
				f()
				w.write(m)
			}
		}
	}
}

func (m *machine) String() string { return fmt.Sprintf("%d (%s)", m.index, m.inc) }
