package replay

import (
	"bytes"
	"cmp"
	"container/heap"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/durable"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

const (
	tick      = 100 * time.Millisecond
	nearDelay = 5 * time.Millisecond  // of a message inside a site
	farDelay  = 30 * time.Millisecond // between sites
	diskTakes = 4 * time.Millisecond
	goneSeen  = 1500 * time.Millisecond // after which membership tells that a node is down or cut off
	backSeen  = 300 * time.Millisecond  // the same, that it is there

	session   = 5 * time.Second // the shortest that schedules have, too
	firstCap  = 6               // the limit at first
	plenty    = 1000            // what is never the limit
	perNode   = 9               // visitors who ask at each node
	thinks    = 800 * time.Millisecond
	shortStay = 6 * time.Second
	longStay  = 12 * time.Second
)

// epoch is when virtual time begins.
var epoch = time.Unix(1_700_000_000, 0)

// firstRoom is how many rooms were made before the first act.
const firstRoom = 1

// world is one run.
type world struct {
	h     History
	rules ticket.Rules
	now   time.Duration
	queue events
	seq   int
	nodes []*machine
	crowd []*visitor
	judge judge
	room  crdt.RoomID // the one that operators mean
	rooms byte        // how many were made

	result Result
	sent   map[Twist]int // how many messages of a kind went from one node to another since the first act
	trace  func(format string, args ...any)
	homing bool // nobody new comes, and all go home
	err    error
	script
}

// script is how far a history is.
type script struct {
	begun  bool          // the first act has come
	next   int           // the step that is next
	lastAt time.Duration // of the last act
	waits  bool          // for the moment of the next step
	minted bool          // a node has written, since the last act, that it minted
	taken  bool          // the same, that it took over rights, or recovered them
}

// machine is one node of the mesh.
type machine struct {
	no   int
	id   crdt.NodeID
	site string
	boot uint64
	life int // what is meant for an earlier start is dropped
	core *node.Core

	disk   map[[2]string][]byte
	batch  []durable.Write
	writes int // since the first act

	gone  bool          // left for good, or its disk is lost
	left  bool          // of these: it has left
	goes  bool          // it was told to leave
	told  time.Duration // when an operator has last told it something; 0: never
	alone bool          // when it was stopped, nobody else may have heard of that
	cut   bool
	known []link // what membership tells it of each other node

	minted  map[crdt.RoomID]int64 // what its books say that it minted when they were last looked at
	counted int                   // in which start
}

// link is how another node stands in the eyes of one.
type link struct {
	up, ready bool // as was told
	is        bool // the truth, since
	since     time.Duration
}

// event is something that happens at a time.
type event struct {
	at  time.Duration
	seq int
	do  func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(e[i].at, e[j].at), cmp.Compare(e[i].seq, e[j].seq)) < 0
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	(*e)[len(*e)-1] = event{}
	*e = (*e)[:len(*e)-1]
	return last
}

func (w *world) after(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.queue, event{w.now + d, w.seq, do})
}

// run lets a time pass, unless a promise is broken.
func (w *world) run(d time.Duration) {
	end := w.now + d
	for len(w.queue) > 0 && w.queue[0].at <= end && !w.over() {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		e.do()
	}
	if !w.over() {
		w.now = end
	}
}

func (w *world) over() bool { return w.err != nil || w.result.Broken != "" }

func (w *world) time() time.Time { return epoch.Add(w.now) }

func (w *world) note(format string, args ...any) {
	if w.trace != nil {
		w.trace("%8.3f "+format, append([]any{w.now.Seconds()}, args...)...)
	}
}

func newWorld(h History, rules ticket.Rules, trace func(string, ...any)) *world {
	w := &world{h: h, rules: rules, trace: trace, sent: map[Twist]int{}, room: crdt.RoomID{1}, rooms: firstRoom}
	w.judge = judge{w: w, limits: map[crdt.RoomID][]*limit{}}
	w.judge.first(w.room, firstCap)
	for i := range h.Layout {
		m := &machine{
			no: i, id: crdt.NodeID{h.IDs[i] - '0', 0xaa}, site: h.Layout[i : i+1], disk: map[[2]string][]byte{},
			known: make([]link, len(h.Layout)), minted: map[crdt.RoomID]int64{},
		}
		w.nodes = append(w.nodes, m)
	}
	for _, m := range w.nodes {
		w.start(m)
	}
	return w
}

func (w *world) settings(id crdt.RoomID) room.Settings {
	s := room.Settings{
		ID: id, Name: "room", Path: "/", TotalActiveUsers: plenty, NewUsersPerMinute: plenty, SessionDuration: session,
		QueueingMethod: room.FIFO, Policy: room.Escrow, RefreshInterval: time.Second, BucketSpan: time.Second,
	}
	*w.limit(&s) = firstCap
	return s.WithDefaults()
}

// limit returns the one that operators change.
func (w *world) limit(s *room.Settings) *int {
	if w.h.Rate {
		return &s.NewUsersPerMinute
	}
	return &s.TotalActiveUsers
}

// of returns what that is about of an amount of rights.
func (w *world) of(a ticket.Amount) int64 {
	if w.h.Rate {
		return a.Rate
	}
	return a.Places
}

// follows is how long more rights may be there than the limit says that was lowered: as long
// as somebody who was inside stays, or who was let in counts, and as a node that was lost or
// stopped then has to leave what it had in use alone.
func (w *world) follows() time.Duration {
	if w.h.Rate {
		return time.Minute + longStay + session
	}
	return longStay + session
}

func (w *world) start(m *machine) {
	m.boot++
	m.life++
	s := w.settings(crdt.RoomID{1})
	core, err := node.NewCore(node.CoreConfig{
		Self: crdt.Incarnation{Node: m.id, Boot: m.boot}, Site: m.site, Rooms: []room.Settings{s},
		OwnerKey: []byte("key of the explored mesh"), Rand: rand.New(rand.NewPCG(uint64(m.id[0]), m.boot)),
		Entropy: rand.NewChaCha8([32]byte{m.id[0], byte(m.boot)}), Stored: m.stored(), Catalog: &node.Cataloging{},
		Found: m.no == 0, LeaveOut: w.rules,
	})
	if err != nil {
		w.err = fmt.Errorf("start node %d: %w", m.no+1, err)
		return
	}
	m.core = core
	w.note("node %d starts", m.no+1)
	w.changed()
	life := m.life
	var again func()
	again = func() {
		if m.life != life || m.core == nil {
			return
		}
		ready := m.core.Ready()
		w.post(m, m.core.Tick(w.time()))
		if !ready && m.core.Ready() {
			w.judge.disturbed()
			w.after(backSeen, w.tellReady)
		}
		if m.core.Left() {
			w.note("node %d has left", m.no+1)
			m.gone, m.left = true, true
			w.stop(m)
			return
		}
		w.after(tick, again)
	}
	w.after(time.Duration(m.no)*tick/time.Duration(len(w.nodes)), again)
}

// stop ends a node's process. What is under way to its disk is lost.
func (w *world) stop(m *machine) {
	m.core, m.batch = nil, nil
	w.judge.stopped(m)
	m.life++
	for _, v := range w.crowd {
		if v.at == m {
			v.asks = false // its connection drops
		}
	}
	w.changed()
}

func (m *machine) stored() (all []durable.Write) {
	for _, k := range slices.SortedFunc(maps.Keys(m.disk), func(a, b [2]string) int {
		return cmp.Or(strings.Compare(a[0], b[0]), strings.Compare(a[1], b[1]))
	}) {
		all = append(all, durable.Write{Object: k[0], Key: k[1], Value: m.disk[k]})
	}
	return all
}

func (w *world) reaches(a, b *machine) bool {
	return a.core != nil && b.core != nil && !a.cut && !b.cut
}

// changed has membership tell of what is different now, after a while.
func (w *world) changed() {
	for _, m := range w.nodes {
		for i, o := range w.nodes {
			if l := &m.known[i]; l.is != w.reaches(m, o) {
				l.is, l.since = !l.is, w.now
			}
		}
	}
	w.after(goneSeen, w.tellMembers)
	w.after(backSeen, w.tellMembers)
	for _, m := range w.nodes {
		if m.left {
			w.after(0, w.tellMembers)
		}
	}
}

func (w *world) tellReady() {
	for _, m := range w.nodes {
		for i, o := range w.nodes {
			m.known[i].ready = m.known[i].ready || o.core != nil && o.core.Ready()
		}
	}
	w.tellMembers()
}

// tellMembers tells every node who lives, as far as that is noticed by now.
func (w *world) tellMembers() {
	var sites []string
	for _, m := range w.nodes {
		all := func(o *machine) bool { return o.left || o.site != m.site }
		if m.left && !slices.ContainsFunc(w.nodes, func(o *machine) bool { return !all(o) }) && !slices.Contains(sites, m.site) {
			sites = append(sites, m.site)
		}
	}
	for _, m := range w.nodes {
		var peers []replica.Peer
		for i, o := range w.nodes {
			l := &m.known[i]
			after := goneSeen
			if l.is {
				after = backSeen
			}
			if l.up != l.is && (w.now >= l.since+after || o.left) {
				l.up = l.is
				l.ready = l.up && o.core != nil && o.core.Ready()
			}
			if o != m && l.up {
				peers = append(peers, replica.Peer{ID: o.id, Boot: o.boot, Site: o.site, Ready: l.ready})
			}
		}
		if m.core != nil {
			m.core.SetGone(sites)
			m.core.SetPeers(peers, w.time())
		}
	}
}

// post sends what a node says, and has its disk write what it wants kept.
func (w *world) post(m *machine, out []node.Message) {
	for _, o := range out {
		to := w.machine(o.To)
		if to == nil {
			continue
		}
		d := nearDelay
		if to.site != m.site {
			d = farDelay
		}
		if !w.begun || kinds[int(o.Kind)] == "" {
			w.send(m, to, o, d)
			continue
		}
		key := Twist{Kind: int(o.Kind), From: m.no, To: to.no}
		w.sent[key]++
		key.Nth = w.sent[key]
		w.twisted(m, to, o, key, d)
	}
	w.store(m)
}

// twisted sends a message as the deviations have it.
func (w *world) twisted(m, to *machine, o node.Message, key Twist, d time.Duration) {
	w.result.see(key)
	for _, t := range w.h.Twists {
		key.What = t.What
		if t != key {
			continue
		}
		w.note("%s", t)
		w.result.twisted()
		switch t.What {
		case Lost:
			w.judge.disturbed()
			return
		case Late:
			w.judge.disturbed()
			w.after(3*time.Second, w.judge.disturbed)
			d += 3 * time.Second
		case Twice:
			w.send(m, to, o, d+1500*time.Millisecond)
		}
	}
	w.send(m, to, o, d)
}

func (w *world) send(m, to *machine, o node.Message, d time.Duration) {
	from := replica.Peer{ID: m.id, Boot: m.boot, Site: m.site, Ready: true}
	w.after(d, func() {
		if to.core == nil || to.cut || m.cut {
			return
		}
		out, err := to.core.Receive(from, o.Kind, o.Payload, w.time())
		if err != nil && w.trace != nil {
			w.note("node %d refuses %s of node %d: %v", to.no+1, kindName(int(o.Kind)), m.no+1, err)
		}
		w.post(to, out)
	})
}

func (w *world) machine(id crdt.NodeID) *machine {
	for _, m := range w.nodes {
		if m.id == id {
			return m
		}
	}
	return nil
}

// store writes what a node wants kept.
func (w *world) store(m *machine) {
	if m.core == nil || m.batch != nil {
		return
	}
	if m.batch = m.core.Writes(); m.batch == nil {
		return
	}
	life := m.life
	if w.begun {
		m.writes++
		rights := slices.ContainsFunc(m.batch, func(x durable.Write) bool { return strings.HasPrefix(x.Object, "rights/") && x.Key != "bound" })
		if rights {
			w.result.see(Twist{From: m.no, Nth: m.writes})
		}
	}
	nth := m.writes
	w.after(diskTakes, func() {
		if m.life != life {
			return
		}
		for _, t := range w.h.Twists {
			if w.begun && t.From == m.no && t.Nth == nth && (t.What == Before || t.What == After) {
				w.crash(m, t)
				return
			}
		}
		w.wrote(m)
	})
}

func (w *world) wrote(m *machine) {
	w.keep(m)
	batch := m.batch
	m.batch = nil
	w.post(m, m.core.Written(nil, w.time()))
	w.judge.noted(m)
	w.judge.rights()
	for _, x := range batch {
		if !strings.HasPrefix(x.Object, "rights/") {
			continue
		}
		w.minted = w.minted || x.Key == "minted"
		w.taken = w.taken || strings.HasPrefix(x.Key, "taken/") || strings.HasPrefix(x.Key, "recovered/")
		if w.trace != nil && x.Key != "bound" && x.Key != "span" {
			r := m.core.Route("", "/")
			w.note("node %d wrote %s; holds %v, minted %v, of all %v, limit %v", m.no+1, x.Key, w.of(r.Rights().Held), w.of(r.Rights().Minted), w.of(r.Rights().MintedByAll), w.of(r.Rights().Limit))
		}
	}
	w.step()
}

func (w *world) keep(m *machine) {
	for _, x := range m.batch {
		if k := [2]string{x.Object, x.Key}; x.Value == nil {
			delete(m.disk, k)
		} else {
			m.disk[k] = bytes.Clone(x.Value)
		}
	}
}

// crash stops a node at a write, and starts it a second later.
func (w *world) crash(m *machine, t Twist) {
	w.note("%s", t)
	w.result.twisted()
	if t.What == After {
		w.keep(m)
	}
	w.stop(m)
	w.after(time.Second, func() { w.startAgain(m) })
}

func (w *world) startAgain(m *machine) {
	if m.core == nil && !m.gone {
		w.start(m)
	}
}
