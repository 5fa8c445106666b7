package server

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/history"
	"github.com/ropeline/ropeline/transport"
)

// A question about a room's past is its id, and two times in Unix seconds (8 bytes, big
// endian). The answer is a history.Series.
const historyBytes = len(crdt.RoomID{}) + 16

// History returns how a room was over the whole mesh, minute by minute, for a day at most,
// and the names of nodes that did not say what they know of it: those that do not answer, and
// those that have failed and not left.
func (m *managed) History(ctx context.Context, room crdt.RoomID, from, to time.Time) (history.Series, []string, error) {
	own, err := m.Node.History(ctx, room, from, to)
	if err != nil {
		return nil, nil, err
	}
	all := []history.Series{own}
	req := append(make([]byte, 0, historyBytes), room[:]...)
	req = binary.BigEndian.AppendUint64(req, uint64(from.Unix()))
	req = binary.BigEndian.AppendUint64(req, uint64(to.Unix()))
	missing := m.ask(ctx, methodHistory, req, func(_ transport.Peer, b []byte) error {
		s, err := history.DecodeSeries(b)
		if err == nil {
			all = append(all, s)
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
	return history.Merge(all...), missing, nil
}

// history is History for those who need not know what is missing. The last day is known,
// whatever is asked for.
func (m *managed) history(ctx context.Context, room crdt.RoomID, from, to time.Time) (history.Series, error) {
	if earliest := to.Add(-history.Span); from.Before(earliest) {
		from = earliest
	}
	s, _, err := m.History(ctx, room, from, to)
	return s, err
}

func (m *managed) answerHistory(ctx context.Context, _ transport.Peer, req []byte) ([]byte, error) {
	if len(req) != historyBytes {
		return nil, fmt.Errorf("history: %d bytes are no room and no times", len(req))
	}
	room := crdt.RoomID(req[:len(crdt.RoomID{})])
	moment := func(at int) time.Time { return time.Unix(int64(binary.BigEndian.Uint64(req[at:])), 0) }
	from, to := moment(len(room)), moment(len(room)+8)
	if from.Unix() < 0 || to.Unix() < 0 {
		return nil, errors.New("history: times before 1970")
	}
	s, err := m.Node.History(ctx, room, from, to)
	if err != nil {
		return nil, err
	}
	return s.AppendBinary(nil)
}
