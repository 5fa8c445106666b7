package footprint

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/history"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
)

// mesh is nodes in this process, in virtual time. What they say to each other arrives
// with the next step, and what they write is on disk at once, so that nothing is under way
// when their memory is measured.
type mesh struct {
	now   time.Time
	nodes []*member
	air   []letter
}

// member is one node of a mesh.
type member struct {
	replica.Peer
	core *node.Core // nil once it was dropped
}

type letter struct {
	from *member
	node.Message
}

const step = 50 * time.Millisecond // between two ticks, as real nodes have it

// newMesh starts a node in each of the sites, all with the same rooms and with all that
// real nodes keep, and lets them settle. The first founds the mesh.
func newMesh(rooms []room.Settings, sites ...string) (*mesh, error) {
	m := &mesh{now: time.Unix(1_700_000_000, 0)}
	var follow *node.Cataloging
	if len(rooms) <= catalog.MaxRooms { // a file with more is its node's alone
		follow = &node.Cataloging{}
	}
	for i, site := range sites {
		at := &member{Peer: replica.Peer{ID: crdt.NodeID{byte(i + 1)}, Boot: 1, Site: site, Ready: true}}
		core, err := node.NewCore(node.CoreConfig{
			Self: crdt.Incarnation{Node: at.ID, Boot: at.Boot}, Site: site, Rooms: rooms,
			OwnerKey: []byte("key of the measured mesh"), Rand: rand.New(rand.NewPCG(1, uint64(i))),
			Catalog: follow, History: &history.Config{}, Found: i == 0,
		})
		if err != nil {
			return nil, err
		}
		at.core = core
		m.nodes = append(m.nodes, at)
	}
	var peers []replica.Peer
	for _, at := range m.nodes {
		peers = append(peers, at.Peer)
	}
	for _, at := range m.nodes {
		at.core.SetPeers(peers, m.now)
	}
	if err := m.run(20 * time.Second); err != nil {
		return nil, err
	}
	for _, at := range m.nodes {
		if !at.core.Ready() {
			return nil, fmt.Errorf("node %s is not ready after 20 s", at.ID)
		}
	}
	return m, nil
}

// run has time pass.
func (m *mesh) run(d time.Duration) error {
	for end := m.now.Add(d); m.now.Before(end); {
		if err := m.step(); err != nil {
			return err
		}
	}
	return nil
}

// step has all nodes tick once, and all messages arrive, also those that come of them.
func (m *mesh) step() error {
	m.now = m.now.Add(step)
	for _, at := range m.nodes {
		m.post(at, at.core.Tick(m.now))
	}
	return m.deliver()
}

// flush has what requests ask for leave at once, and come back.
func (m *mesh) flush(at *member) error {
	m.post(at, at.core.Flush(m.now))
	return m.deliver()
}

func (m *mesh) deliver() error {
	var errs []error
	for len(m.air) > 0 {
		due := m.air
		m.air = nil
		for _, l := range due {
			for _, to := range m.nodes {
				if to.ID != l.To {
					continue
				}
				out, err := to.core.Receive(l.from.Peer, l.Kind, l.Payload, m.now)
				errs = append(errs, err)
				m.post(to, out)
			}
		}
	}
	return errors.Join(errs...)
}

// post sends messages, and writes what there is to write.
func (m *mesh) post(from *member, out []node.Message) {
	for batch := from.core.Writes(); batch != nil; batch = from.core.Writes() {
		out = append(out, from.core.Written(nil, m.now)...)
	}
	for _, msg := range out {
		m.air = append(m.air, letter{from, msg})
	}
	from.core.TakeHistory()
}

// weigh drops the nodes one after the other and returns how much memory each took. The
// mesh is of no use any more.
func (m *mesh) weigh() []int64 {
	m.air = nil
	var all []int64
	before := heap()
	for _, at := range m.nodes {
		at.core = nil
		after := heap()
		all = append(all, before-after)
		before = after
	}
	return all
}

// heap returns how many bytes this process keeps.
func heap() int64 {
	var s runtime.MemStats
	runtime.GC() // twice: what pools keep goes with the second
	runtime.GC()
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
