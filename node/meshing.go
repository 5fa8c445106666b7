package node

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/bootstrap"
	"github.com/ropeline/ropeline/node/ticket"
)

// Of which mesh a node is, and who mints in rooms that nobody mints in yet.
//
// The mesh has a room of its own, which takes no requests and has one right. Whoever mints
// in that one is the minter of the mesh: so this passes on as all minting does, when a node
// leaves and when one is declared dead, and two nodes never both are. A node that leaves
// passes this room on last: its heir knows then what it made of all the others.

const factMesh = "mesh" // mesh/<id>: the record; its minter has heard that all named disks hold it

// meshing is the state of a Core's mesh.
type meshing struct {
	is    bootstrap.Disk // of mesh zero: the node has none, as in simulations
	room  crdt.RoomID    // of the mesh itself
	read  uint64         // the reading of the facts that were looked at last
	since time.Time      // when this node was first seen to mint after one that was lost; zero: it does not
}

// meshLimits are those of the mesh's own room.
var meshLimits = ticket.Amount{Places: 1, Rate: 1}

func meshRoom(id bootstrap.MeshID) (room crdt.RoomID) {
	sum := sha256.Sum256(append([]byte("room of the mesh\x00"), id[:]...))
	copy(room[:], sum[:])
	return room
}

func meshKey(id bootstrap.MeshID) string { return factMesh + "/" + id.String() }

// SetMesh says of which mesh this node is, as its disk has it. It is called before the
// first Tick, and again once the minter may mint.
func (c *Core) SetMesh(d bootstrap.Disk) {
	c.mesh = meshing{is: d, since: c.mesh.since}
	if !d.Record.Mesh.IsZero() {
		c.mesh.room = meshRoom(d.Record.Mesh)
	}
	if c.order != nil {
		c.setRooms(c.rooms)
	}
}

// tellMesh has all know who mints in the mesh's own room. Each node that knows it says so:
// the minter's disk may be lost before it has said anything. It is called before the facts
// are read.
func (c *Core) tellMesh(now time.Time) {
	m := &c.mesh
	if m.is.Record.Mesh.IsZero() || m.read == c.facts.reading && m.read > 0 {
		return
	}
	m.read = c.facts.reading
	rec := m.is.Record
	f := c.facts.room(m.room)
	if f.minter == (crdt.NodeID{}) {
		c.setFact(roomKey(factMinter, m.room), rec.Minter[:], now)
	}
	if f.limits != meshLimits {
		c.setFact(roomKey(factLimits, m.room), encodeAmount(meshLimits), now)
	}
	if m.is.Minted {
		c.setFact(meshKey(rec.Mesh), bootstrap.AppendRecord(nil, rec), now)
	}
}

// mintsMesh reports whether this node mints in rooms in which nobody does.
func (c *Core) mintsMesh() bool {
	m := &c.mesh
	switch {
	case c.leave.on:
		return false
	case m.is.Record.Mesh.IsZero():
		return c.found
	case m.is.Record.Minter == c.self.Node && !m.is.Minted:
		return false // not all named disks hold the record yet
	}
	minter, _ := c.facts.meshMinter(m.room)
	return minter == c.self.Node
}

// lostMinted is how long rate rights that a lost minter may have used count.
const lostMinted = time.Minute + ticket.Guard

// foundsNow is mintsMesh for making rights. Who mints after one that was lost does not know
// of rooms that only the lost one had heard of: it makes no rights of them before the
// sessions that this may have let in are over.
func (c *Core) foundsNow(now time.Time) bool {
	if !c.mintsMesh() {
		c.mesh.since = time.Time{}
		return false
	}
	if _, lost := c.facts.meshMinter(c.mesh.room); c.mesh.is.Record.Mesh.IsZero() || !lost {
		return true
	}
	if c.mesh.since.IsZero() || now.Before(c.mesh.since) {
		c.mesh.since = now
	}
	wait := lostMinted
	for _, r := range c.order {
		if r.id == c.mesh.room {
			continue // nobody is ever in it
		}
		wait = max(wait, r.settings.Load().SessionDuration+3*ticket.Guard, r.long+3*ticket.Guard)
	}
	return now.Sub(c.mesh.since) >= wait
}

// meshMinter returns who mints in the mesh's own room by now, and whether that is so since
// a node was lost. A node that has left counts as such once its last ledger of that room is
// known.
func (f *facts) meshMinter(room crdt.RoomID) (minter crdt.NodeID, lost bool) {
	r := f.room(room)
	minter = f.mints(r)
	for id, hops := r.minter, 0; id != minter && hops <= f.hops(r); hops++ {
		heir, left := f.leftTo(r, id)
		if !left {
			return minter, true
		}
		if _, final := r.finals[id]; !final {
			return crdt.NodeID{}, false
		}
		id = heir
	}
	return minter, false
}

// knows reports whether a node may own rights, as far as this one has heard. The minter of
// the mesh may, though it may have been lost before it could say so.
func (c *Core) knows(id crdt.NodeID) bool {
	_, known := c.facts.sites[id]
	return known || id != crdt.NodeID{} && id == c.mesh.is.Record.Minter && !c.firstMinterGone()
}

// firstMinterGone reports whether the node that was to mint for the mesh at first is gone: others may have forgotten it, and
// another one is named in its place.
func (c *Core) firstMinterGone() bool {
	first, now := c.mesh.is.Record.Minter, c.facts.room(c.mesh.room).minter
	return c.facts.gone(first) || now != first && now != crdt.NodeID{}
}

// tellOfMinter has all know that the minter, who is declared dead, may have owned rights.
func (c *Core) tellOfMinter(id crdt.NodeID, now time.Time) {
	if _, known := c.facts.sites[id]; !known && id == c.mesh.is.Record.Minter {
		c.setFact(nodeKey(factNode, id), []byte(c.mesh.is.Record.MinterSite), now)
	}
}

// meshMinted reports whether the minter of the mesh has told that it minted.
func (c *Core) meshMinted() bool {
	_, _, minted := c.facts.replica.Get(meshKey(c.mesh.is.Record.Mesh))
	return minted
}

// knowsMesh reports whether this node can know that there is no other mesh: its capacity was minted, or
// this node is a bootstrap node, and no mesh is complete without it. Any other node may have taken over
// what a bootstrap node began whose disk was lost then.
func (c *Core) knowsMesh() bool {
	return c.mesh.is.Minted || c.meshMinted() || slices.Contains(c.mesh.is.Record.Names, c.name)
}

// meshWaits returns why nobody can be let in yet: the capacity of the mesh is not minted, as
// far as this node knows. gone is a node that has the minter's name and came with an empty
// disk. "": it is minted.
func (c *Core) meshWaits(gone crdt.NodeID) string {
	rec := c.mesh.is.Record
	if rec.Mesh.IsZero() || c.mesh.is.Minted || c.meshMinted() || c.firstMinterGone() {
		return ""
	}
	if gone != (crdt.NodeID{}) {
		if !c.knowsMesh() {
			return minterGone(rec, gone) + fmt.Sprintf(" at one of the bootstrap nodes %v, since this node is none of them", rec.Names)
		}
		return minterGone(rec, gone)
	}
	return fmt.Sprintf("bootstrap waits for %s (node %s), which mints once the disks of all of %v hold the record of mesh %s",
		rec.MinterName, rec.Minter, rec.Names, rec.Mesh)
}

func minterGone(rec bootstrap.Record, as crdt.NodeID) string {
	return fmt.Sprintf("the disk of %s (node %s), which mints in mesh %s, is gone: a node of that name came with an empty data directory, as node %s; have its capacity made again: ropeline node declare-dead %s --gone-for-good",
		rec.MinterName, rec.Minter, rec.Mesh, as, rec.Minter)
}
