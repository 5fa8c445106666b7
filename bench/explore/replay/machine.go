package replay

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/durable"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
)

const (
	tick      = 100 * time.Millisecond
	diskTakes = 4 * time.Millisecond
	nearDelay = 5 * time.Millisecond    // of a message inside a site
	farDelay  = 30 * time.Millisecond   // between sites
	goneSeen  = 1500 * time.Millisecond // after which membership tells that a node is down or cut off
	backSeen  = 300 * time.Millisecond  // the same, that it is there
)

// machine is one node of the mesh.
type machine struct {
	replica.Peer
	no      int
	started time.Duration
	core    *node.Core // nil: it is down. What is meant for an earlier start is dropped

	disk    *durable.Memory
	writing bool

	gone  bool          // left for good, or its disk is lost
	left  bool          // of these: it has left
	goes  bool          // it was told to leave
	told  time.Duration // when an operator has last told it something; 0: never
	alone bool          // when it was stopped, nobody else may have heard of that
	cut   bool
	known []link // what membership has it of each other node

	minted  map[crdt.RoomID]int64 // what its books say that it minted when they were last looked at
	counted *node.Core            // in which start
}

// link is how another node stands in the eyes of one.
type link struct {
	up    bool // as was told
	is    bool // the truth, since
	since time.Duration
}

// lost reports whether the disk is.
func (m *machine) lost() bool { return m.gone && !m.left }

// unheard reports whether there is a node that does not hear what others know, or did not say what it knows.
func (m *machine) unheard() bool {
	return m.cut || m.core != nil && !m.core.Ready() || m.core == nil && m.alone
}

// room returns the room that a node keeps; nil: none, or it is not ready.
func (m *machine) room() *node.Room {
	if m.core == nil || !m.core.Ready() {
		return nil
	}
	return m.core.Route("", "/")
}

func (w *world) start(m *machine) {
	m.Boot++
	var stored []durable.Write
	err := m.disk.Load(func(x durable.Write) bool {
		stored = append(stored, x)
		return true
	})
	if err == nil {
		m.core, err = node.NewCore(node.CoreConfig{
			Self: crdt.Incarnation{Node: m.ID, Boot: m.Boot}, Site: m.Site, Rooms: []room.Settings{w.settings(crdt.RoomID{1})},
			OwnerKey: []byte("key of the explored mesh"), Rand: rand.New(rand.NewPCG(uint64(m.ID[0]), m.Boot)),
			Entropy: rand.NewChaCha8([32]byte{m.ID[0], byte(m.Boot)}), Stored: stored, Catalog: &node.Cataloging{},
			Found: m.no == 0, LeaveOut: w.rules,
		})
	}
	if err != nil {
		w.err = fmt.Errorf("start node %d: %w", m.no+1, err)
		return
	}
	w.note("node %d starts", m.no+1)
	m.writing, m.started, m.known = false, w.now, make([]link, len(w.nodes))
	core := m.core
	w.every(tick, time.Duration(m.no)*tick/time.Duration(len(w.nodes)), func() bool {
		if m.core == core {
			w.tick(m)
		}
		return m.core == core
	})
}

func (w *world) tick(m *machine) {
	w.tellMembers(m)
	ready := m.core.Ready()
	w.post(m, m.core.Tick(w.time()))
	if !ready && m.core.Ready() {
		w.judge.disturbed()
	}
	if m.core.Left() {
		w.note("node %d has left", m.no+1)
		m.gone, m.left = true, true
		w.stop(m)
	}
}

// stop ends a node's process. What is under way to its disk is lost, and connections drop.
func (w *world) stop(m *machine) {
	m.core = nil
	w.judge.stopped(m)
}

// restart stops a node, and starts it a second later.
func (w *world) restart(m *machine) {
	w.stop(m)
	w.after(time.Second, func() { w.startAgain(m) })
}

func (w *world) startAgain(m *machine) {
	if m.core == nil && !m.gone {
		w.start(m)
	}
}

// tellMembers tells a node who lives, as far as that is noticed by now. Who has left has said so.
func (w *world) tellMembers(m *machine) {
	var peers []replica.Peer
	for i, o := range w.nodes {
		l, after := &m.known[i], goneSeen
		if is := o.core != nil && !o.cut && !m.cut; l.is != is {
			l.is, l.since = is, w.now
		}
		if l.is {
			after = backSeen
		}
		if w.now >= l.since+after || o.left {
			l.up = l.is
		}
		if o != m && l.up {
			peer := o.Peer
			peer.Ready = o.core != nil && o.core.Ready()
			peers = append(peers, peer)
		}
	}
	if w.now >= m.started+backSeen {
		m.core.SetGone(w.leftSites())
		m.core.SetPeers(peers, w.time())
	}
}

// leftSites returns the sites that all nodes have left.
func (w *world) leftSites() (all []string) {
	for _, m := range w.nodes {
		if !slices.ContainsFunc(w.nodes, func(o *machine) bool { return o.Site == m.Site && !o.left }) {
			all = append(all, m.Site)
		}
	}
	return all
}

// post sends what a node says, and has its disk write what it wants kept.
func (w *world) post(m *machine, out []node.Message) {
	for _, o := range out {
		if i := slices.IndexFunc(w.nodes, func(to *machine) bool { return to.ID == o.To }); i >= 0 {
			w.send(m, w.nodes[i], o)
		}
	}
	w.store(m)
}

// send has a message arrive, unless the deviations have it otherwise.
func (w *world) send(m, to *machine, o node.Message) {
	d := nearDelay
	if to.Site != m.Site {
		d = farDelay
	}
	for _, what := range w.occasion(kinds[o.Kind], fmt.Sprintf("%d>%d", m.no+1, to.no+1), true) {
		switch what {
		case Lost:
			w.judge.disturbed()
			return
		case Late:
			w.judge.disturbed()
			w.after(3*time.Second, w.judge.disturbed)
			d += 3 * time.Second
		case Twice:
			w.deliver(m, to, o, d+1500*time.Millisecond)
		}
	}
	w.deliver(m, to, o, d)
}

func (w *world) deliver(m, to *machine, o node.Message, d time.Duration) {
	from := m.Peer
	from.Ready = true
	w.after(d, func() {
		if to.core == nil || to.cut || m.cut {
			return
		}
		out, err := to.core.Receive(from, o.Kind, o.Payload, w.time())
		if err != nil {
			w.note("node %d refuses %s of node %d: %v", to.no+1, kinds[o.Kind], m.no+1, err)
		}
		w.post(to, out)
	})
}

// store writes what a node wants kept, or crashes it there if the deviations have it so.
func (w *world) store(m *machine) {
	if m.core == nil || m.writing {
		return
	}
	batch := m.core.Writes()
	if batch == nil {
		return
	}
	rights := slices.ContainsFunc(batch, func(x durable.Write) bool { return strings.HasPrefix(x.Object, "rights/") && x.Key != "bound" })
	crashes := w.occasion(write, fmt.Sprint(m.no+1), rights)
	core := m.core
	m.writing = true
	w.after(diskTakes, func() {
		if m.core != core {
			return
		}
		if !slices.Contains(crashes, Before) {
			w.err = cmp.Or(w.err, m.disk.Commit(batch))
		}
		if len(crashes) > 0 {
			w.restart(m)
			return
		}
		m.writing = false
		w.wrote(m, batch)
	})
}

// wrote tells a node that what it wanted kept is.
func (w *world) wrote(m *machine, batch []durable.Write) {
	w.post(m, m.core.Written(nil, w.time()))
	w.judge.noted(m)
	w.judge.rights()
	for _, x := range batch {
		if !strings.HasPrefix(x.Object, "rights/") {
			continue
		}
		w.minted = w.minted || x.Key == "minted"
		w.taken = w.taken || strings.HasPrefix(x.Key, "taken/") || strings.HasPrefix(x.Key, "recovered/")
		if r := m.room(); w.trace != nil && r != nil && x.Key != "bound" && x.Key != "span" {
			is := r.Rights()
			w.note("node %d wrote %s; holds %v, minted %v, of all %v, limit %v", m.no+1, x.Key, w.of(is.Held), w.of(is.Minted), w.of(is.MintedByAll), w.of(is.Limit))
		}
	}
}
