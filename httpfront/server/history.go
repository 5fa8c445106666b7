package server

import (
	"context"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/history"
	"github.com/ropeline/ropeline/transport"
)

// History returns how a room was over the whole mesh, minute by minute, for a day at most,
// and the names of nodes that did not say what they know of it: those that do not answer, and
// those that have failed and not left.
func (m *managed) History(ctx context.Context, room crdt.RoomID, from, to time.Time) (history.Series, []string, error) {
	q := history.Question{Room: room, From: from, To: to}
	own, err := m.Node.History(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	all := map[crdt.NodeID]history.Answer{m.ID(): own}
	missing := m.ask(ctx, methodHistory, q.AppendBinary(nil), func(from transport.Peer, b []byte) error {
		a, err := history.DecodeAnswer(b)
		if err == nil {
			all[crdt.NodeID(from.ID)] = a
		}
		return err
	})
	if m.mesh != nil {
		for _, p := range m.mesh.Members() {
			if p.State == transport.Failed {
				missing = append(missing, p.Name)
			}
		}
	}
	return history.Join(all), missing, nil
}

func (m *managed) answerHistory(ctx context.Context, _ transport.Peer, req []byte) ([]byte, error) {
	q, err := history.DecodeQuestion(req)
	if err != nil {
		return nil, err
	}
	a, err := m.Node.History(ctx, q)
	if err != nil {
		return nil, err
	}
	return a.AppendBinary(nil)
}
