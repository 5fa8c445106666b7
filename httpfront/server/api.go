package server

import (
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/operator/admin"
	"github.com/ropeline/ropeline/httpfront/operator/status"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// meshAPI is what the API of operators is asked of.
type meshAPI struct {
	*node.Node
	follower *follower
	previews *status.Previews
}

var _ admin.Mesh = meshAPI{}

func (m meshAPI) Check(s *room.Settings) error { return m.follower.check(s) }

func (m meshAPI) CheckLimit(r *limit.Rule) (steps int, err error) { return m.follower.checkLimit(r) }

func (m meshAPI) Room(id crdt.RoomID, now time.Time) (st admin.RoomState, served bool) {
	v := m.View(id)
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
