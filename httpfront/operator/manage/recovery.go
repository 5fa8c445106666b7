package manage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/operator/admin"
	"github.com/ropeline/ropeline/httpfront/operator/dashboard"
	"github.com/ropeline/ropeline/node"
)

// Recovery is how far the capacity of a node is that was declared dead.
type Recovery struct {
	Node string `json:"node"` // id
	Name string `json:"name,omitempty"`
	// State is "waiting" (not all nodes have confirmed what they dealt with it), "recovering" (another
	// node has its capacity, and cannot use it before sessions of the dead one are over), or "usable".
	State string               `json:"state"`
	Rooms []dashboard.DownRoom `json:"rooms"`
	// WaitsFor are names of the nodes that have not confirmed.
	WaitsFor []string `json:"waits_for,omitempty"`
	// UsableAt is when all of it can be used, and UsableInSeconds how long that takes: no less than
	// that while it is waiting, exactly so while it is recovering, 0 once it is usable.
	UsableAt        *time.Time `json:"usable_at,omitempty"`
	UsableInSeconds int64      `json:"usable_in_seconds"`
	Message         string     `json:"message"` // all this in words
}

// Usable is the state of a Recovery that is over.
const Usable = "usable"

// recoveryOf returns how far the capacity of a dead node is.
func (m *manager) recoveryOf(ctx context.Context, id crdt.NodeID) (r Recovery, err error) {
	recovered, err := m.mesh.Recovered(ctx, id)
	if err != nil {
		return r, err
	}
	now := m.now()
	s := m.mesh.Snapshot(now)
	r = Recovery{Node: id.String(), Rooms: []dashboard.DownRoom{}}
	for i := range s.Down {
		d := &s.Down[i]
		if d.Node != r.Node || d.State == node.StateDown {
			continue
		}
		r.Name, r.State, r.Rooms, r.WaitsFor, r.UsableAt, r.Message = d.Name, d.State, d.Rooms, d.WaitsFor, d.UsableAt, d.Message
		if d.UsableAt != nil {
			r.UsableInSeconds = int64((max(0, d.UsableAt.Sub(now)) + time.Second - 1) / time.Second)
		}
		return r, nil
	}
	for i := range s.Nodes {
		if s.Nodes[i].Node == r.Node {
			r.Name = s.Nodes[i].Name
		}
	}
	r.State, r.Message = Usable, fmt.Sprintf("the capacity of %s can be used by the other nodes", cmp.Or(r.Name, r.Node))
	if !recovered {
		r.State, r.Message = node.StateWaiting, fmt.Sprintf("%s is declared dead: the other nodes are about to confirm", cmp.Or(r.Name, r.Node))
	}
	return r, nil
}

// lost returns the node that an operator means who declares one dead: of several with one name
// the one that is down. A node may be known by its rights only, and so by its id.
func (m *manager) lost(given string) (crdt.NodeID, error) {
	if id, err := crdt.ParseNodeID(given); err == nil {
		return id, nil
	}
	var down []string
	for _, d := range m.mesh.Snapshot(m.now()).Down {
		if d.Name == given {
			down = append(down, d.Node)
		}
	}
	if len(down) == 1 {
		return crdt.ParseNodeID(down[0])
	}
	if len(down) > 1 {
		return crdt.NodeID{}, admin.Refuse(http.StatusConflict, CodeNoNode, "%d nodes are called %q and are down; give the id of one: %v", len(down), given, down)
	}
	if failed := inState(m.called(given), "failed"); len(failed) == 1 {
		return crdt.ParseNodeID(failed[0].Node)
	}
	n, err := m.find(given)
	if err != nil {
		return crdt.NodeID{}, err
	}
	return crdt.ParseNodeID(n.Node)
}

func (m *manager) declareDead(ctx context.Context, c *admin.Call) (admin.Answer, error) {
	var order DeathOrder
	if err := c.Decode(&order); err != nil {
		return admin.Answer{}, err
	}
	if !order.GoneForGood {
		return admin.Answer{}, &admin.Refusal{Status: http.StatusBadRequest, Mistakes: []admin.Mistake{{
			Code: CodeUnsure, Field: "gone_for_good", Value: "false", Allowed: "true",
			Message: "gone_for_good: it has to be true: a node that is declared dead and runs all the same breaks the limit; power its machine off first, and never start it again",
		}}}
	}
	id, err := m.lost(c.Param("node"))
	if err != nil {
		return admin.Answer{}, err
	}
	switch err := m.mesh.DeclareDead(ctx, id); {
	case errors.Is(err, node.ErrAlive):
		return admin.Answer{}, admin.Refuse(http.StatusConflict, CodeAlive, "%v", err)
	case errors.Is(err, node.ErrUnknownNode):
		return admin.Answer{}, admin.Refuse(http.StatusNotFound, CodeNoNode, "%v", err)
	case errors.Is(err, node.ErrLeaving):
		return admin.Answer{}, admin.Refuse(http.StatusConflict, CodeNotNow, "%v", err)
	case err != nil:
		return admin.Answer{}, err
	}
	r, err := m.recoveryOf(ctx, id)
	return admin.Answer{Result: r}, err
}

func (m *manager) recovery(ctx context.Context, c *admin.Call) (admin.Answer, error) {
	id, err := m.lost(c.Param("node"))
	if err != nil {
		return admin.Answer{}, err
	}
	r, err := m.recoveryOf(ctx, id)
	if errors.Is(err, node.ErrNotDead) {
		return admin.Answer{}, admin.Refuse(http.StatusConflict, CodeNotNow, "%v", err)
	}
	return admin.Answer{Result: r}, err
}
