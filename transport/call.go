package transport

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/quic-go/quic-go"
)

// maxServeTime bounds how long a handler may take, whatever the caller says.
const maxServeTime = 30 * time.Second

// Call asks a peer and waits for its answer. Without a deadline in ctx the
// call ends after Timing.CallTimeout. The answer of a handler that gave an
// error is a *[RemoteError]. [ErrUnreachable] is wrapped when the peer is
// unknown or the connection broke, [ErrTooLarge] when req is over [MaxCall];
// when time ran out the error wraps that of ctx. Whether the peer did
// something is known in the first case only.
func (m *Mesh) Call(ctx context.Context, to PeerID, method uint8, req []byte) ([]byte, error) {
	if len(req) > MaxCall {
		return nil, fmt.Errorf("call %s: %w: request of %d bytes", to.Short(), ErrTooLarge, len(req))
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, m.cfg.Timing.CallTimeout)
		defer cancel()
	}
	addr, known := m.members.addr(to)
	if !known && m.links.get(to) == nil {
		return nil, fmt.Errorf("call %s: %w: no such member", to.Short(), ErrUnreachable)
	}
	m.count.callsOut.Add(1)
	l, err := m.links.open(ctx, to, addr)
	if err != nil {
		return nil, callError(ctx, to, err)
	}
	l.touch()
	body, err := l.call(ctx, streamCall, method, req)
	if err != nil {
		return nil, callError(ctx, to, err)
	}
	return body, nil
}

// callError says in one error what failed and in what way.
func callError(ctx context.Context, to PeerID, err error) error {
	if _, ok := errors.AsType[*RemoteError](err); ok {
		return fmt.Errorf("call %s: %w", to.Short(), err)
	}
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("call %s: %w", to.Short(), cause)
	}
	return fmt.Errorf("call %s: %w: %w", to.Short(), ErrUnreachable, err)
}

// call asks on one stream of its own. ctx must have a deadline.
func (l *link) call(ctx context.Context, kind, method uint8, req []byte) ([]byte, error) {
	s, err := l.conn.OpenStreamSync(ctx)
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	// Not a deadline on the stream: it would pass a moment before that of
	// ctx, and the error would not say why.
	stop := context.AfterFunc(ctx, func() {
		s.CancelRead(0)
		s.CancelWrite(0)
	})
	defer stop()
	defer s.CancelRead(0)

	allowed := max(time.Until(deadline).Milliseconds(), 1)
	out := append(make([]byte, 0, 1+requestHead+len(req)), kind)
	out = appendRequest(out, request{method: method, timeout: uint32(min(allowed, maxServeTime.Milliseconds())), body: req})
	if _, err := s.Write(out); err != nil {
		return nil, err
	}
	_ = s.Close()
	body, err := readAnswer(s)
	if errors.Is(err, errMalformed) {
		l.blame(err)
	}
	return body, err
}

// serveCall answers one request with handle.
func (l *link) serveCall(s *quic.Stream, handle callHandler) {
	req, err := readRequest(s)
	if err != nil {
		l.refuse(s, err)
		return
	}
	allowed := min(time.Duration(req.timeout)*time.Millisecond, maxServeTime)
	// The stream's context ends when the caller gives up.
	ctx, cancel := context.WithTimeout(s.Context(), allowed)
	defer cancel()
	_ = s.SetWriteDeadline(time.Now().Add(allowed + serveTimeout))

	body, err := handle(ctx, l, req.method, req.body)
	if err == nil && len(body) > MaxCall {
		err = &RemoteError{Code: CodeTooLarge, Text: fmt.Sprintf("answer of %d bytes", len(body))}
	}
	out := make([]byte, 0, answerHead+len(body))
	if err != nil {
		remote, ok := errors.AsType[*RemoteError](err)
		if !ok {
			remote = &RemoteError{Text: err.Error()}
		}
		text := remote.Text[:min(len(remote.Text), maxErrorText)]
		out = appendAnswer(out, statusError, remote.Code, []byte(text))
	} else {
		out = appendAnswer(out, statusOK, 0, body)
	}
	if _, err := s.Write(out); err != nil {
		s.CancelWrite(0)
		return
	}
	_ = s.Close()
}

type callHandler func(ctx context.Context, l *link, method uint8, req []byte) ([]byte, error)

// onCall hands a request to the owner of the mesh. A panic there costs this
// one call.
func (m *Mesh) onCall(ctx context.Context, l *link, method uint8, req []byte) (body []byte, err error) {
	m.count.callsIn.Add(1)
	l.touch()
	if m.cfg.OnCall == nil {
		return nil, &RemoteError{Code: CodeNoHandler, Text: "no handler"}
	}
	defer func() {
		if r := recover(); r != nil {
			m.panicked("call handler", r)
			body, err = nil, &RemoteError{Code: CodePanic, Text: "handler panicked"}
		}
	}()
	return m.cfg.OnCall(ctx, m.members.describe(l), method, req)
}

// Control methods: what meshes ask each other.
const (
	controlPing  = 1 // answer: 1 if the caller is alive in the callee's list, else 0
	controlReach = 2 // request: id of a peer; answer: 1 if the callee reaches it, else 0
)

func (m *Mesh) onControl(ctx context.Context, l *link, method uint8, req []byte) ([]byte, error) {
	switch {
	case method == controlPing && len(req) == 0:
		return []byte{asByte(m.members.lists(l.id, l.hello.boot))}, nil
	case method == controlReach && len(req) == len(PeerID{}):
		// Only members are tried, at the address known here: nobody can
		// use a node to knock somewhere.
		return []byte{asByte(m.members.reachable(ctx, PeerID(req)))}, nil
	}
	err := malformed("control request %d of %d bytes", method, len(req))
	l.blame(err)
	return nil, err
}

func asByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// panicked records a panic in code that the mesh called.
func (m *Mesh) panicked(where string, value any) {
	m.count.panics.Add(1)
	m.log.Error("panic recovered", "where", where, "panic", fmt.Sprint(value), "stack", string(debug.Stack()))
}
