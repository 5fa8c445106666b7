package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/operator/dashboard"
	"github.com/ropeline/ropeline/httpfront/operator/manage"
	"github.com/ropeline/ropeline/httpfront/operator/overview"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/transport"
)

// managed is what operators manage of the mesh from here: this node, and by calls the others.
type managed struct {
	lameDuck
	seen    *overview.Overview
	front   *httpfront.Front
	secrets *secrets
	mesh    asker // nil: a single node
	stop    func(leave bool)

	rotating sync.Mutex // held while a new secret goes to all nodes
}

var _ manage.Mesh = (*managed)(nil)

// peerWait is for how long another node is waited for.
const peerWait = 2 * time.Second

// Status is that of the node, with what others know of nodes that are down.
func (m *managed) Status() node.Status {
	s := m.lameDuck.Status()
	s.Down = m.seen.Down(&s, m.Now())
	return s
}

func (m *managed) Snapshot(now time.Time) dashboard.Snapshot { return m.seen.Snapshot(now) }

func (m *managed) ExplainRequest(q *httpfront.Question) httpfront.Explained {
	return m.front.Explain(q)
}

// answers returns what other nodes may ask of this one.
func (m *managed) answers() calls {
	return calls{
		methodReport:  func(context.Context, transport.Peer, []byte) ([]byte, error) { return m.seen.Answer() },
		methodLedger:  m.answerLedger,
		methodExplain: m.answerExplain,
		methodDrain:   m.answerDrain,
		methodSecret:  m.secrets.take,
		methodHistory: m.answerHistory,
	}
}

// ask asks all nodes that are alive, and hands what they answer to take, which is called
// by one goroutine at a time. It returns the names of those that do not answer.
func (m *managed) ask(ctx context.Context, method uint8, req []byte, take func(from transport.Peer, answer []byte) error) (missing []string) {
	if m.mesh == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, peerWait)
	defer cancel()
	transport.AskAll(ctx, m.mesh, transport.AliveOf(m.mesh.Members()), method, req, func(from transport.Peer, answer []byte, err error) {
		if err == nil {
			err = take(from, answer)
		}
		if err != nil {
			missing = append(missing, from.Name)
		}
	})
	return missing
}

func (m *managed) Ledgers(ctx context.Context, room crdt.RoomID) (all []node.Ledger, missing []string) {
	if l, ok := m.Ledger(room); ok {
		all = append(all, l)
	}
	missing = m.ask(ctx, methodLedger, room[:], func(_ transport.Peer, b []byte) error {
		var l *node.Ledger // null: it keeps no such room
		if err := json.Unmarshal(b, &l); err != nil || l == nil {
			return err
		}
		all = append(all, *l)
		return nil
	})
	return all, missing
}

func (m *managed) answerLedger(_ context.Context, _ transport.Peer, req []byte) ([]byte, error) {
	var room crdt.RoomID
	if copy(room[:], req) != len(req) || len(req) != len(room) {
		return nil, fmt.Errorf("ledger: %d bytes are no id of a room", len(req))
	}
	if l, ok := m.Ledger(room); ok {
		return json.Marshal(l)
	}
	return []byte("null"), nil
}

func (m *managed) Explain(ctx context.Context, room crdt.RoomID, visitor node.VisitorID) (node.Explanation, error) {
	x, unknown := m.ExplainVisitor(ctx, room, visitor)
	if !errors.Is(unknown, node.ErrUnknownVisitor) {
		return x, unknown
	}
	m.ask(ctx, methodExplain, append(room[:], visitor[:]...), func(_ transport.Peer, b []byte) error {
		var theirs *node.Explanation // null: the node does not know the visitor
		if err := json.Unmarshal(b, &theirs); err != nil || theirs == nil {
			return err
		}
		if theirs.At.After(x.At) { // than what an earlier one said, if any did
			x, unknown = *theirs, nil
		}
		return nil
	})
	return x, unknown
}

func (m *managed) answerExplain(ctx context.Context, _ transport.Peer, req []byte) ([]byte, error) {
	var room crdt.RoomID
	var visitor node.VisitorID
	if len(req) != len(room)+len(visitor) {
		return nil, fmt.Errorf("explain: %d bytes are no ids of a room and a visitor", len(req))
	}
	copy(room[:], req)
	copy(visitor[:], req[len(room):])
	x, err := m.ExplainVisitor(ctx, room, visitor)
	switch {
	case errors.Is(err, node.ErrUnknownVisitor), errors.Is(err, node.ErrUnknownRoom):
		return []byte("null"), nil
	case err != nil:
		return nil, err
	}
	return json.Marshal(x)
}

// Drain stops this node, or has another one stop.
func (m *managed) Drain(ctx context.Context, id crdt.NodeID, leave bool) (warning string, err error) {
	if id.String() == m.Status().Node {
		return m.drain(leave)
	}
	is := func(p transport.Peer) bool { return p.ID == transport.PeerID(id) }
	if m.mesh == nil || !slices.ContainsFunc(transport.AliveOf(m.mesh.Members()), is) {
		return "", fmt.Errorf("drain node %s: %w", id, manage.ErrUnknownNode)
	}
	req := []byte{0}
	if leave {
		req[0] = 1
	}
	told, err := m.mesh.Call(ctx, transport.PeerID(id), methodDrain, req)
	if err != nil {
		return "", fmt.Errorf("drain node %s: %w", id, err)
	}
	return string(told), nil
}

func (m *managed) drain(leave bool) (warning string, err error) {
	if leave && m.mesh == nil {
		return "", fmt.Errorf("%w: a single node has nobody to leave its rights to; drain it without leave", manage.ErrNotNow)
	}
	if leave {
		warning = m.BootstrapWarning(true)
	}
	m.stop(leave)
	return warning, nil
}

func (m *managed) answerDrain(_ context.Context, _ transport.Peer, req []byte) ([]byte, error) {
	if len(req) != 1 || req[0] > 1 {
		return nil, errors.New("drain: want one byte, 0 or 1")
	}
	warning, err := m.drain(req[0] == 1)
	return []byte(warning), err
}

func (m *managed) Keys() []manage.Key { return m.secrets.status() }

func (m *managed) RotateKeys(ctx context.Context) (manage.Rotation, error) {
	m.rotating.Lock() // the second of two gives what the first has made
	defer m.rotating.Unlock()
	next, err := m.secrets.next()
	if err != nil {
		return manage.Rotation{}, err
	}
	r := manage.Rotation{ID: next.ID().String(), Given: []string{}, Refused: map[string]string{}}
	missing := m.ask(ctx, methodSecret, []byte(next.Text()), func(from transport.Peer, b []byte) error {
		if len(b) > 0 {
			r.Refused[from.Name] = string(b)
		} else {
			r.Given = append(r.Given, from.Name)
		}
		return nil
	})
	for _, name := range missing {
		r.Refused[name] = "it does not answer"
	}
	own := m.Status().Name
	if err := m.secrets.add(next); err != nil {
		r.Refused[own] = err.Error()
	} else {
		r.Given = append(r.Given, own)
	}
	return r, nil
}
