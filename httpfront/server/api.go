package server

import (
	"context"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/operator/admin"
	"github.com/ropeline/ropeline/httpfront/operator/status"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// meshAPI is what the API of operators is asked of.
type meshAPI struct {
	node     *node.Node
	follower *follower
	previews *status.Previews
}

var _ admin.Mesh = meshAPI{}

// Catalog returns an empty one where there is none: the node has not opened yet, or its
// rooms are those of its file.
func (m meshAPI) Catalog() *catalog.Catalog {
	if c := m.node.Catalog(); c != nil {
		return c
	}
	return new(catalog.Catalog)
}

func (m meshAPI) Edit(ctx context.Context, edit func(*catalog.Catalog) ([]catalog.Write, error)) error {
	return m.node.Edit(ctx, edit)
}

func (m meshAPI) Check(s *room.Settings) error { return m.follower.check(s) }

func (m meshAPI) CheckLimit(r *limit.Rule) error { return m.follower.checkLimit(r) }

func (m meshAPI) Room(id crdt.RoomID, now time.Time) (st admin.RoomState, served bool) {
	v := m.node.View(id)
	if v == nil {
		return st, false
	}
	st = admin.RoomState{Status: "not_queueing", Waiting: int64(v.Waiting), Active: int64(v.Active), Wait: -1}
	if v.Event.Active || v.Event.Prequeueing {
		st.Event = v.Event.Name
	}
	if wait, known := v.WaitOfNew(now); known {
		st.Wait = wait
	}
	switch {
	case v.Settings.Suspended:
		st = admin.RoomState{Status: "suspended", Wait: -1}
	case v.Event.Prequeueing:
		st.Status = "event_prequeueing"
	case v.Waiting > 0 || !v.OpenToNew || v.Full():
		st.Status = "queueing"
	}
	return st, true
}

func (m meshAPI) Preview(html string) (path string, err error) {
	return m.previews.Keep(html, time.Now())
}
