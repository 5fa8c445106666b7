//go:build linux

package tickets

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ropeline/ropeline/bench/live"
	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// meshNodes is how many nodes the site has.
const meshNodes = 3

// mesh is a site of three nodes in this process, linked by QUIC over loopback, with their
// stores on disk.
type mesh struct {
	*live.Mesh
	room    *load
	session time.Duration
}

// places are more than visitors come for.
const places = 1 << 30

func roomOf(session time.Duration) room.Settings {
	return room.Settings{
		ID: crdt.RoomID{1}, Name: "room", Path: "/", Policy: room.Escrow,
		TotalActiveUsers: places, NewUsersPerMinute: places, SessionDuration: session,
	}.WithDefaults()
}

// startMesh starts the site, and returns when all of its nodes have rights and give tickets.
func startMesh(ctx context.Context, session time.Duration) (*mesh, error) {
	site, err := live.Start(ctx, slices.Repeat([]string{"a"}, meshNodes), []room.Settings{roomOf(session)})
	if err != nil {
		return nil, err
	}
	m := &mesh{Mesh: site, room: newLoad(), session: session}
	if err := rig.Try(func() { m.await(ctx) }); err != nil {
		return nil, errors.Join(err, m.Stop())
	}
	return m, nil
}

// await waits until rights are spread, which takes seconds, and each node gives tickets.
func (m *mesh) await(ctx context.Context) {
	served := func(n *live.Node) bool {
		s := n.Status()
		return len(s.Rooms) == 1 && s.Rooms[0].Rights != nil && s.Rooms[0].Rights.Held.Places >= places/4 &&
			n.Route("h", "/").Decide(node.Pass{}, false, n.Now()).Admit
	}
	if !rig.Until(ctx, time.Minute, 50*time.Millisecond, func() bool { return !slices.ContainsFunc(m.Nodes, func(n *live.Node) bool { return !served(n) }) }) {
		rig.Must(errors.New("the nodes do not give tickets after a minute"))
	}
}

// settles is how long it takes until as many leave as come: a session, and what leases last
// beyond it.
func (m *mesh) settles() time.Duration { return m.session + 600*time.Millisecond }

// lanes returns where visitors come who leave word where they can be told; goroutines says
// that each keeps a goroutine waiting instead, as requests of HTTP do.
func (m *mesh) lanes(goroutines bool) []*lane {
	var all []*lane
	for _, n := range m.Nodes {
		come := newcomers{n.Node, n.Route("h", "/")}
		if goroutines {
			all = append(all, &lane{decider: &waiting{newcomers: come}})
		} else {
			all = append(all, &lane{decider: &come})
		}
	}
	return all
}

// newcomers are new visitors at one node.
type newcomers struct {
	node *node.Node
	room *node.Room
}

func (n *newcomers) begin(v *visitor) {
	done, ok := v.answer.(func(node.Verdict))
	if !ok {
		done = func(is node.Verdict) { v.answered(is.Admit) }
		v.answer = done
	}
	if is, ok := n.room.Begin(node.Pass{}, false, n.node.Now(), done); ok {
		v.answered(is.Admit)
	}
}

// waiting are new visitors at one node who keep a goroutine each.
type waiting struct {
	newcomers
	mu sync.Mutex // one is answered at a time
}

func (n *waiting) begin(v *visitor) {
	go func() {
		is := n.room.Decide(node.Pass{}, false, n.node.Now())
		n.mu.Lock()
		defer n.mu.Unlock()
		v.answered(is.Admit)
	}()
}
