package transport

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/quic-go/quic-go"
)

// Which mesh this node is of, and which peers that keeps away.

var (
	errForeign = errors.New("of another mesh")

	// ErrNameTaken ends [Mesh.Run] when another node has this one's name and was started
	// before it.
	ErrNameTaken = errors.New("another node has this name")
)

// says returns what this process says about itself now.
func (m *Mesh) says() hello {
	h := m.hello
	h.mesh = *m.belongs.Load()
	return h
}

// SetMesh says of which mesh this node is, once it knows. Connections to nodes of any
// other, and to those that are of none, end: the latter may come to be of another one.
func (m *Mesh) SetMesh(id MeshID) {
	ls := m.links
	ls.mu.Lock()
	m.belongs.Store(&mesh{id: id})
	var over []*link
	for _, l := range ls.byID {
		if ls.fitsLocked(l) != nil {
			over = append(over, l)
			delete(ls.byID, l.id)
		}
	}
	ls.mu.Unlock()
	for _, l := range over {
		l.close(closeForeign, "of mesh "+id.String()+" now")
	}
	select {
	case m.gossip.retag <- struct{}{}:
	default: // the tags are read when they are told
	}
}

// sameMesh refuses a peer of another mesh.
func (m *Mesh) sameMesh(conn *quic.Conn, id PeerID, h hello) error {
	own := *m.belongs.Load()
	if own.takes(h.mesh) {
		return nil
	}
	m.count.refusedPeers.Add(1)
	if m.mayWarn(&m.lastForeign) {
		m.log.Warn("peer refused: it is of another mesh, and two meshes never become one", "peer", id.String(), "name", h.name, "addr", conn.RemoteAddr().String(),
			"its_mesh", h.mesh.String(), "mesh", own.String(), "this_addr", m.advertise.String())
	}
	return fmt.Errorf("%w: node %s (%s) at %s is of mesh %s, this node of mesh %s", errForeign, id.Short(), h.name, conn.RemoteAddr(), h.mesh, own)
}

func (b mesh) String() string {
	if b.pending {
		return "none yet"
	}
	return b.id.String()
}

// takes reports whether a node of one mesh has a connection to one of another.
func (b mesh) takes(o mesh) bool { return b.pending || o.pending || b.id == o.id }

// fitsLocked returns why a connection may not be kept. What was said when it was made may
// not hold any more.
func (ls *links) fitsLocked(l *link) error {
	own := *ls.m.belongs.Load()
	if l.said.mesh != own && l.hello.mesh != own {
		return fmt.Errorf("%w: this node has joined mesh %s meanwhile", errForeign, own)
	}
	for _, o := range ls.byID {
		if o.id == l.id || o.hello.name != l.hello.name || o.dead() || o.silentFor() >= silenceLimit {
			continue
		}
		if o.hello.before(l.hello) {
			return ls.m.nameTaken(l, o)
		}
	}
	return nil
}

// nameTaken returns that two peers have one name, of which the first counts.
func (m *Mesh) nameTaken(l, first *link) error {
	err := fmt.Errorf("%w: %q is node %s at %s, and node %s at %s was started later", ErrNameTaken, l.hello.name, first.id, first.addr, l.id, l.addr)
	if m.mayWarn(&m.lastName) {
		m.log.Warn("peer refused: another node has its name; give each node a --name of its own", "name", l.hello.name,
			"peer", l.id.String(), "addr", l.addr.String(), "first", first.id.String(), "first_addr", first.addr.String())
	}
	return err
}

func closeCode(err error) quic.ApplicationErrorCode {
	if errors.Is(err, ErrNameTaken) {
		return closeName
	}
	return closeForeign
}

// nameSettles is how long after its start a node still stops for another one that has its name. Later it is
// known by that, and when a process was started is its own word.
const nameSettles = time.Minute

// otherName handles a peer that has this node's name: who was started later stops, if it is new.
func (m *Mesh) otherName(conn *quic.Conn, id PeerID, h hello) error {
	if h.name != m.hello.name {
		return nil
	}
	m.count.refusedPeers.Add(1)
	addr, _ := addrPortOf(conn.RemoteAddr())
	if h.before(m.hello) && !m.cfg.Known && m.now() < nameSettles {
		err := fmt.Errorf("%w: %q is node %s at %s, and this node, %s at %s, was started later; give it a --name of its own, or stop the other one first",
			ErrNameTaken, h.name, id, addr, m.cfg.ID, m.advertise)
		m.stop(err)
		return err
	}
	return m.nameTakenHere(id, addr, h)
}

func (m *Mesh) nameTakenHere(id PeerID, addr netip.AddrPort, h hello) error {
	if m.mayWarn(&m.lastName) {
		m.log.Warn("peer refused: it has this node's name, and was started later; give each node a --name of its own", "name", h.name,
			"peer", id.String(), "addr", addr.String(), "this_node", m.cfg.ID.String(), "this_addr", m.advertise.String())
	}
	return fmt.Errorf("%w: %q is this node, %s at %s", ErrNameTaken, h.name, m.cfg.ID, m.advertise)
}

// addressTaken tells of a peer that says it is where this node is: others reach one of the
// two at most.
func (m *Mesh) addressTaken(c claim) {
	if m.mayWarn(&m.lastAddr) {
		m.log.Warn("a peer advertises this node's own address, so that one of the two cannot be reached; give each node an --advertise that the others reach",
			"peer", c.id.String(), "name", c.tags.name, "addr", c.addr.String())
	}
}

// warnEvery is how often the log is told of a peer that is refused again and again.
const warnEvery = time.Minute

// mayWarn reports whether it is time for a warning, of which last says when it was given.
func (m *Mesh) mayWarn(last interface {
	Load() int64
	CompareAndSwap(was, is int64) bool
},
) bool {
	now, was := int64(m.now()), last.Load()
	return (was == 0 || now-was >= int64(warnEvery)) && last.CompareAndSwap(was, now)
}
