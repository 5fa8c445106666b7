package footprint

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/bench/virtual"
	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/history"
	"github.com/ropeline/ropeline/node/room"
)

// newMesh starts a node in each of the sites, all with the same rooms and with all that
// real nodes keep, and lets them settle. The first founds the mesh.
func newMesh(rooms []room.Settings, sites ...string) *virtual.Mesh {
	m := virtual.New()
	var follow *node.Cataloging
	if len(rooms) <= catalog.MaxRooms { // a file with more is its node's alone
		follow = &node.Cataloging{}
	}
	for i, site := range sites {
		self := crdt.Incarnation{Node: crdt.NodeID{byte(i + 1)}, Boot: 1}
		m.Add(self, site, rig.Got(node.NewCore(node.CoreConfig{
			Self: self, Site: site, Rooms: rooms,
			OwnerKey: []byte("key of the measured mesh"), Rand: rand.New(rand.NewPCG(1, uint64(i))),
			Catalog: follow, History: &history.Config{}, Found: i == 0,
		})), virtual.Tick)
	}
	rig.Must(m.Settle())
	m.Run(15 * time.Second)
	return m
}

// weigh drops the nodes one after the other and returns how much memory each took. The
// mesh is of no use any more.
func weigh(m *virtual.Mesh) []int64 {
	m.Stop()
	var all []int64
	before := heap()
	for _, n := range m.Nodes {
		n.Core = nil
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

func roomOf(i int) string { return fmt.Sprintf("room-%05d", i) }

func hostOf(i int) string { return fmt.Sprintf("shop-%05d.example", i) }

// idleRooms returns n rooms as an operator makes them, each for a host of its own.
func idleRooms(n int) []room.Settings {
	all := make([]room.Settings, n)
	for i := range all {
		all[i] = room.Settings{
			ID: crdt.RoomID{0, byte((i + 1) >> 16), byte((i + 1) >> 8), byte(i + 1)}, Name: roomOf(i), Host: hostOf(i), Path: "/",
			TotalActiveUsers: 200, NewUsersPerMinute: 200,
		}.WithDefaults()
	}
	return all
}

// perIdleRoom returns how many bytes of a node one more room takes in which nobody is: the
// difference between a node with few and one with many rooms, after a minute.
func perIdleRoom(few, many int) float64 {
	return perOne(few, many, func(n int) int64 {
		m := newMesh(idleRooms(n), "a")
		m.Run(40 * time.Second)
		return weigh(m)[0]
	})
}

// perOne returns how many bytes one more of something takes: the difference between few and many.
func perOne(few, many int, bytes func(n int) int64) float64 {
	less := bytes(few)
	return float64(bytes(many)-less) / float64(many-few)
}
