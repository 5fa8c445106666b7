// Package bootstrap decides, once and for all named nodes together, that a mesh exists,
// and who mints its capacity.
//
// The operator names N nodes, in the same order at each of them. The first of them, if
// its disk is empty, asks the others what they hold. Only when all of them have said
// "nothing" in one round does it promise: it writes the id of a new mesh, the names and
// itself as the minter to its disk, and from then on tells this to whoever asks. A node
// that holds nothing asks everybody, and writes down what it is told; if it is named, then
// by named nodes, or of a mesh that is complete. When the minter has heard in one round that
// all N disks hold its mesh, the mesh is complete: it writes that down as well, and only
// then mints. So a node that was emptied finds the mesh on any of the other N-1 disks, and
// joins it as a new node without rights.
//
// The package is pure: it is given the time, messages and the word that something is on
// disk, and returns what to send and what to write.
package bootstrap

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// MeshID names a mesh. It is random, so two meshes have different ones.
type MeshID [16]byte

// IsZero reports whether id names no mesh.
func (id MeshID) IsZero() bool { return id == MeshID{} }

// String returns the id as 32 hexadecimal digits.
func (id MeshID) String() string { return hex.EncodeToString(id[:]) }

// ParseMeshID reads what String has written.
func ParseMeshID(s string) (id MeshID, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(id) || [16]byte(b) == (MeshID{}) {
		return MeshID{}, fmt.Errorf("mesh id %q: want 32 hexadecimal digits that are not all zero", s)
	}
	return MeshID(b), nil
}

// Record says which mesh a disk belongs to. All disks of a mesh hold the same.
type Record struct {
	Mesh       MeshID
	Names      []string // in whose stores it was written before anything was minted
	Minter     crdt.NodeID
	MinterName string
	MinterSite string
}

// Same reports whether two records are.
func (r Record) Same(o Record) bool {
	return r.Mesh == o.Mesh && r.Minter == o.Minter && r.MinterName == o.MinterName && r.MinterSite == o.MinterSite &&
		slices.Equal(r.Names, o.Names)
}

// Disk is what a node holds durably.
type Disk struct {
	Record Record // of mesh zero: nothing
	Minted bool   // this node is the minter, and all named disks have held the record
}

// CheckNames returns why a list of names cannot be used.
func CheckNames(names []string) error {
	for i, name := range names {
		if name == "" {
			return errors.New("a name is empty")
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("the name %q stands in the list twice, at positions %d and %d: each node is named once", name, slices.Index(names, name)+1, i+1)
		}
	}
	if len(names) > MaxNames {
		return fmt.Errorf("%d names, at most %d are allowed: other nodes join without being named", len(names), MaxNames)
	}
	return nil
}

// MaxNames is how many nodes may be named.
const MaxNames = 64

const (
	// Round is how long the answers to one question are waited for, and so the longest
	// round trip with which a mesh is made.
	Round = 2 * time.Second

	// askEvery is how often a node asks again, within a round as well: messages are lost.
	askEvery = 500 * time.Millisecond

	// Quiet is how long a first node with an empty disk listens before it promises:
	// nodes of a mesh that is there already, named or not, try it again every 3 s, unless
	// the node of that name has left.
	Quiet = 4 * time.Second
)

// Config says who a node is.
type Config struct {
	Self       crdt.NodeID
	Name, Site string
	Names      []string // as the operator wrote them; may be empty
	Disk       Disk
	Random     func([]byte) // fills it with random bytes
}

// Peer is another node that can be written to.
type Peer struct {
	ID   crdt.NodeID
	Name string
}

// Out is a message and to whom it goes.
type Out struct {
	To crdt.NodeID
	Message
}

// Machine is the state of one node. Make it with New.
type Machine struct {
	cfg   Config
	disk  Disk
	next  *Disk // to be written before anything else happens
	known bool  // that the mesh is complete, as the node has heard
	began time.Time

	nonce  uint64 // an answer counts if it carries this one
	asked  time.Time
	round  time.Time // when it was asked first with this nonce; zero: not yet
	peers  []Peer
	said   map[crdt.NodeID]saying // in this round
	before map[crdt.NodeID]saying // in the one before, for people

	conflict map[crdt.NodeID]string // why a node is in the way, as it said last
	lost     error                  // why this node must not go on; nil: it may
	came     crdt.NodeID            // had the minter's name and an empty disk; zero: nobody
	returned crdt.NodeID            // the same, and it was there after it said so; zero: nobody
}

// saying is what a node has answered in this round.
type saying struct {
	name string
	mesh MeshID
}

// New returns the machine of a node that has just started.
func New(cfg Config, now time.Time) *Machine {
	m := &Machine{cfg: cfg, disk: cfg.Disk, began: now, conflict: map[crdt.NodeID]string{}}
	m.renew()
	return m
}

// renew begins a round: answers to earlier questions count for nothing any more.
func (m *Machine) renew() {
	var b [8]byte
	m.cfg.Random(b[:])
	if len(m.said) > 0 {
		m.before = m.said
	}
	m.nonce, m.said, m.asked, m.round = 0, map[crdt.NodeID]saying{}, time.Time{}, time.Time{}
	for _, x := range b {
		m.nonce = m.nonce<<8 | uint64(x)
	}
	m.nonce = max(m.nonce, 1) // zero is no nonce
}

// Began returns when the machine was started.
func (m *Machine) Began() time.Time { return m.began }

// Disk returns what the node holds durably.
func (m *Machine) Disk() Disk { return m.disk }

// Done reports whether the machine has nothing left to ask for: it only answers.
func (m *Machine) Done() bool { return !m.empty() && !m.mints() }

func (m *Machine) empty() bool { return m.disk.Record.Mesh.IsZero() }

// mints reports whether this node has promised to mint, and has not been heard by all.
func (m *Machine) mints() bool { return m.disk.Record.Minter == m.cfg.Self && !m.disk.Minted }

// proposes reports whether it is for this node to make a mesh where there is none.
func (m *Machine) proposes() bool {
	return m.empty() && len(m.cfg.Names) > 0 && m.cfg.Names[0] == m.cfg.Name
}

// named returns the other names whose nodes this one needs to hear of.
func (m *Machine) named() []string {
	names := m.cfg.Names
	if !m.empty() {
		names = m.disk.Record.Names
	}
	return slices.DeleteFunc(slices.Clone(names), func(s string) bool { return s == m.cfg.Name })
}

// reached returns the ids of those among peers whom this node needs to hear of, in order.
func (m *Machine) reached(peers []Peer) (ids []crdt.NodeID) {
	names := m.named()
	for _, p := range peers {
		if slices.Contains(names, p.Name) {
			ids = append(ids, p.ID)
		}
	}
	slices.SortFunc(ids, crdt.NodeID.Compare)
	return ids
}

// Write returns what has to be on disk before the machine goes on, which Written says;
// ok is false if there is nothing. In between the machine neither says nor hears anything.
func (m *Machine) Write() (d Disk, ok bool) {
	if m.next == nil {
		return Disk{}, false
	}
	return *m.next, true
}

// Written says that what Write returned is durable.
func (m *Machine) Written() {
	if m.next != nil {
		m.disk, m.next = *m.next, nil
		clear(m.conflict)
		m.renew()
	}
}

// Tick asks what is to be asked of the nodes that can be written to.
func (m *Machine) Tick(now time.Time, peers []Peer) (out []Out) {
	if m.proposes() && !slices.Equal(m.reached(m.peers), m.reached(peers)) {
		m.renew() // or one that had said "nothing" before could have heard of a mesh from a disk that is gone now
	}
	m.peers = peers
	if slices.ContainsFunc(peers, func(p Peer) bool { return p.ID == m.came }) {
		m.returned = m.came // and not a disk that was gone before the mesh was made, and is heard of late
	}
	for id := range m.conflict {
		if !slices.ContainsFunc(peers, func(p Peer) bool { return p.ID == id }) {
			delete(m.conflict, id)
		}
	}
	if m.next != nil || m.lost != nil || m.Done() {
		return nil
	}
	m.conclude(now)
	if m.next != nil {
		return nil
	}
	if m.proposes() || m.mints() {
		quiet := m.round.Sub(m.began) < Quiet && now.Sub(m.began) >= Quiet
		if !m.round.IsZero() && (now.Sub(m.round) >= Round || quiet) {
			m.renew()
		}
	}
	if !m.asked.IsZero() && now.Sub(m.asked) < askEvery {
		return nil
	}
	if m.asked = now; m.round.IsZero() {
		m.round = now
	}
	for _, p := range peers {
		if p.ID != m.cfg.Self {
			out = append(out, Out{p.ID, m.message(ask, 0)})
		}
	}
	return out
}

func (m *Machine) message(k kind, echo uint64) Message {
	return Message{Kind: k, Name: m.cfg.Name, Names: m.cfg.Names, Nonce: m.nonce, Echo: echo, Holds: m.disk.Record, Complete: m.complete()}
}

// Complete says that capacity was minted in this node's mesh, as the mesh has been told: so all
// named nodes have held its record.
func (m *Machine) Complete() { m.known = true }

// complete reports whether all named nodes have held the record of this one, as far as it knows.
func (m *Machine) complete() bool { return !m.empty() && (m.known || m.disk.Minted) }

// Receive takes a message of a node whose id has been proven.
func (m *Machine) Receive(from crdt.NodeID, in Message, now time.Time) []Out {
	if m.next != nil || m.lost != nil || from == m.cfg.Self {
		return nil // what is lost is asked again
	}
	m.note(from, in)
	if in.Kind == ask {
		return m.answer(from, in)
	}
	if in.Echo != m.nonce {
		return nil // late, or for an earlier start
	}
	switch {
	case m.empty() && in.Holds.Minter == m.cfg.Self && !in.Holds.Mesh.IsZero():
		m.lost = fmt.Errorf("node %s says that this node, %s, is the minter of mesh %s, and its data directory is empty: start it with another id, and declare this one dead", in.Name, m.cfg.Self, in.Holds.Mesh)
	case m.empty() && !in.Holds.Mesh.IsZero() && !m.heeds(in):
	case m.empty() && !in.Holds.Mesh.IsZero():
		m.next = &Disk{Record: in.Holds}
	case m.proposes() || m.mints():
		m.said[from] = saying{in.Name, in.Holds.Mesh}
		m.conclude(now)
	}
	return nil
}

// heeds reports whether this node takes a mesh of which it is told. A named node may have said
// "nothing" to the first one, which promises another mesh on that word. It had asked all named
// nodes then, and would have found what they hold, and what they have all held. Of nodes that are
// not named it asks those that it reaches: one that is cut off from it may hold a promise whose
// disk is gone. The first node may take that itself, and all others get it from there.
func (m *Machine) heeds(in Message) bool {
	named := slices.Contains(m.cfg.Names, m.cfg.Name) && m.cfg.Names[0] != m.cfg.Name
	return !named || in.Complete || slices.Contains(m.cfg.Names, in.Name)
}

// answer says what this node holds. A node that says "nothing" to the one that may
// promise takes nothing any more that was said before: the one that said it may be gone,
// with its disk.
func (m *Machine) answer(to crdt.NodeID, in Message) []Out {
	if m.empty() && in.Holds.Mesh.IsZero() && len(in.Names) > 0 && in.Names[0] == in.Name {
		m.renew()
	}
	return []Out{{to, m.message(answer, in.Nonce)}}
}

// note looks at what speaks against the other node.
func (m *Machine) note(from crdt.NodeID, in Message) {
	delete(m.conflict, from)
	switch mine, is := m.disk.Record, in.Holds; {
	case m.empty() && is.Mesh.IsZero():
		concerned := len(in.Names) > 0 || slices.Contains(m.cfg.Names, in.Name)
		if len(m.cfg.Names) > 0 && concerned && !slices.Equal(m.cfg.Names, in.Names) {
			m.conflict[from] = fmt.Sprintf("this node, %s, was given --bootstrap-nodes %s, and node %s was given %s: give all nodes the same list",
				m.cfg.Name, list(m.cfg.Names), in.Name, list(in.Names))
		}
	case !m.empty() && is.Mesh.IsZero():
		if in.Name == mine.MinterName && from != mine.Minter {
			m.came = from
		}
	case !m.empty() && is.Mesh != mine.Mesh:
		m.conflict[from] = fmt.Sprintf("this node, %s, is of mesh %s, and node %s of mesh %s: two meshes never become one; empty the data directories of the nodes of one of them",
			m.cfg.Name, mine.Mesh, in.Name, is.Mesh)
	}
}

func list(names []string) string {
	if len(names) == 0 {
		return "no list"
	}
	return strings.Join(names, ",")
}

// conclude promises, or has the node mint, once this round's answers say that it may.
func (m *Machine) conclude(now time.Time) {
	var want MeshID // what all others have to hold
	switch {
	case m.mints():
		want = m.disk.Record.Mesh
	case m.proposes() && !m.round.IsZero() && m.round.Sub(m.began) >= Quiet && len(m.conflict) == 0 && m.allSaid():
	default:
		return
	}
	if m.twice() != "" {
		return
	}
	for _, name := range m.named() {
		n := 0
		for _, s := range m.said {
			if s.name == name && s.mesh == want {
				n++
			} else if s.name == name {
				return
			}
		}
		if n != 1 {
			return // not heard of, or two of one name
		}
	}
	if m.mints() {
		m.next = &Disk{Record: m.disk.Record, Minted: true}
		return
	}
	rec := Record{Names: slices.Clone(m.cfg.Names), Minter: m.cfg.Self, MinterName: m.cfg.Name, MinterSite: m.cfg.Site}
	m.cfg.Random(rec.Mesh[:])
	m.next = &Disk{Record: rec}
}

// Lost returns why this node must not go on; nil if it may.
func (m *Machine) Lost() error { return m.lost }

// allSaid reports whether all nodes that can be reached have answered in this round,
// named or not: any of them may be of a mesh.
func (m *Machine) allSaid() bool {
	return !slices.ContainsFunc(m.peers, func(p Peer) bool { _, said := m.said[p.ID]; return !said && p.ID != m.cfg.Self })
}

// Waits says what the node waits for; "": nothing.
func (m *Machine) Waits(now time.Time) string {
	if m.Done() {
		return ""
	}
	if why := m.conflicts(); why != "" {
		return why
	}
	switch {
	case m.mints():
		return "bootstrap waits for " + m.missing(m.disk.Record.Mesh) + " to hold the record of mesh " + m.disk.Record.Mesh.String()
	case m.proposes():
		if missing := m.missing(MeshID{}); missing != "" {
			return "bootstrap waits for " + missing + ", named by --bootstrap-nodes " + list(m.cfg.Names)
		}
		return "bootstrap looks for a mesh that is there already"
	case len(m.cfg.Names) == 0:
		return "waiting for a node of a mesh to join: this node has an empty store and no --bootstrap-nodes, so it never makes a mesh itself"
	case !slices.Contains(m.cfg.Names, m.cfg.Name):
		return "waiting for a node of a mesh to join: --bootstrap-nodes " + list(m.cfg.Names) + " does not name this node, " + m.cfg.Name
	}
	return "bootstrap waits for " + m.cfg.Names[0] + ", the first of --bootstrap-nodes " + list(m.cfg.Names) + ", to hear of all of them"
}

func (m *Machine) conflicts() string {
	ids := make([]crdt.NodeID, 0, len(m.conflict))
	for id := range m.conflict {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b crdt.NodeID) int { return slices.Compare(a[:], b[:]) })
	var all []string
	for _, id := range ids {
		all = append(all, m.conflict[id])
	}
	if twice := m.twice(); twice != "" {
		all = append(all, twice)
	}
	return strings.Join(all, "; ")
}

// twice says which two nodes have one name.
func (m *Machine) twice() string {
	by := map[string]crdt.NodeID{m.cfg.Name: m.cfg.Self}
	ids := slices.Clone(m.peers)
	slices.SortFunc(ids, func(a, b Peer) int { return cmp.Or(cmp.Compare(a.Name, b.Name), slices.Compare(a.ID[:], b.ID[:])) })
	for _, p := range ids {
		if other, ok := by[p.Name]; ok && other != p.ID && slices.Contains(m.named(), p.Name) {
			return fmt.Sprintf("nodes %s and %s are both named %s: give each node a --name of its own", other, p.ID, p.Name)
		}
		by[p.Name] = p.ID
	}
	return ""
}

// missing names those that have not answered, in this round, that they hold a mesh.
func (m *Machine) missing(mesh MeshID) string {
	var all []string
	for _, name := range m.named() {
		there := slices.ContainsFunc(m.peers, func(p Peer) bool { return p.Name == name })
		said := false
		for _, all := range []map[crdt.NodeID]saying{m.before, m.said} {
			for _, s := range all {
				said = said || s.name == name && s.mesh == mesh && there
			}
		}
		switch {
		case said:
		case there:
			all = append(all, name+" (reached, has not answered yet)")
		default:
			all = append(all, name+" (not reached)")
		}
	}
	return strings.Join(all, ", ")
}

// Returned returns the id of a node that has the name of the minter and came with an
// empty disk, so that the minter's disk is gone; zero: there is none.
func (m *Machine) Returned() crdt.NodeID {
	r, none := m.disk.Record, crdt.NodeID{}
	if m.returned == none && r.MinterName == m.cfg.Name && r.Minter != none && r.Minter != m.cfg.Self {
		return m.cfg.Self
	}
	return m.returned
}
