package dashboard

import (
	"fmt"
	"net"
	"runtime/debug"
	"slices"
	"time"
)

// stream is what one reader gets, until the handler ends, the reader may look no more, or what it follows is gone.
//
// There is no queue. While the connection takes nothing, the hub is asked nothing, and whatever happens meanwhile is told by one
// snapshot afterwards. Nor is there a buffer: events are written as the hub has encoded them, once for all readers.
type stream struct {
	hub       *hub
	seen      *state          // the last that was told; nil: none yet
	allowed   func() bool     // whether the reader still may look
	over      <-chan struct{} // closed when the handler ends
	heartbeat time.Duration
	beat      *time.Timer // for the next heartbeat
}

// next waits for something to tell, a heartbeat at most. After the last event comes nothing; it is empty once the handler ends.
func (s *stream) next() (event []byte, last bool) {
	beat := false
	if s.seen != nil {
		s.beat.Reset(s.heartbeat)
		select {
		case <-s.seen.replaced:
		case <-s.over:
			return nil, true
		case <-s.beat.C:
			beat = true
		}
	}
	now := s.hub.current.Load()
	switch {
	case !s.allowed():
		return []byte("event: revoked\ndata: {}\n\n"), true
	case now.gone:
		return []byte("event: gone\ndata: {}\n\n"), true
	case beat && now == s.seen:
		return []byte(": still here\n\n"), false
	}
	event, s.seen = now.after(s.seen), now
	return event, false
}

// tell writes head and then events to conn, which it closes in the end.
func (h *Handler) tell(s *stream, conn net.Conn, head []byte) {
	defer conn.Close()
	defer func() {
		if p := recover(); p != nil { // it would end the process
			h.cfg.Logger.Error("panic in a stream of the dashboard", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	for event, last := head, false; h.send(conn, event) == nil && !last; {
		event, last = s.next()
	}
	s.beat.Stop()
}

// pieceMax is how much of an event the connection has to take within the same time.
const pieceMax = 4 << 10

// send writes an event, however long it takes as long as the connection takes some.
func (h *Handler) send(conn net.Conn, event []byte) error {
	for piece := range slices.Chunk(event, pieceMax) {
		// What fails here fails in the next line.
		_ = conn.SetWriteDeadline(time.Now().Add(h.pace.write))
		if _, err := conn.Write(piece); err != nil {
			return fmt.Errorf("write to a reader: %w", err)
		}
	}
	return nil
}
