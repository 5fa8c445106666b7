package transport

import (
	"context"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/ropeline/ropeline/transport/internal/skew"
)

// ErrStranger is returned for a node whose certificate no authority of this one has signed:
// it was given another secret, or is of another mesh.
var ErrStranger = errors.New("that node is of another mesh, or has another secret")

// strangerOf returns err, as ErrStranger if that is what it says.
func strangerOf(err error) error {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return ErrStranger
	}
	return err
}

// errTime is why a connection is not kept on which only the time was asked.
var errTime = errors.New("it asked for the time alone")

const timeSize = 16

// Probe finds out whether a node at address, host:port, is of the mesh that identity is of, and how far its clock is ahead of
// this one. It joins nobody. The error is [ErrStranger] for a node of another mesh.
func Probe(ctx context.Context, identity *Identity, address string) (ahead time.Duration, err error) {
	addrs, err := resolve(ctx, address)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, addr := range addrs {
		conn, err := quic.DialAddr(ctx, addr.String(), identity.tlsConfig(), nil)
		if err == nil {
			ahead, err = askTime(ctx, conn)
			_ = conn.CloseWithError(closeIdle, "only a question")
		}
		if err == nil {
			return ahead, nil
		}
		errs = append(errs, err)
	}
	return 0, errors.Join(errs...)
}

// askTime asks the node at the other end of a connection how far its clock is ahead.
func askTime(ctx context.Context, conn *quic.Conn) (time.Duration, error) {
	s, err := conn.OpenStreamSync(ctx)
	if err != nil {
		return 0, err
	}
	defer s.CancelRead(0)
	deadline, _ := ctx.Deadline()
	_ = s.SetDeadline(deadline)
	sent := time.Now()
	if _, err := s.Write([]byte{streamTime}); err != nil {
		return 0, err
	}
	_ = s.Close()
	var b [timeSize]byte
	if err := readHead(s, b[:]); err != nil {
		return 0, err
	}
	is, ok := skew.New(sent.UnixNano(), int64(binary.BigEndian.Uint64(b[:])), int64(binary.BigEndian.Uint64(b[8:])), time.Since(sent))
	if !ok {
		return 0, malformed("times that make no sense")
	}
	return is.Offset, nil
}

// tellTime answers askTime.
func (m *Mesh) tellTime(ctx context.Context, conn *quic.Conn, s *quic.Stream) error {
	asked := m.clock()
	b := binary.BigEndian.AppendUint64(make([]byte, 0, timeSize), uint64(asked))
	if _, err := s.Write(binary.BigEndian.AppendUint64(b, uint64(m.clock()))); err != nil {
		return err
	}
	_ = s.Close()
	select { // closing now would take the answer back
	case <-conn.Context().Done():
	case <-ctx.Done():
	}
	return errTime
}

// seedsTold decides what the log is told of a node that has joined nobody: not of the first
// attempt, which fails whenever a whole mesh starts at once, and from then on of what has
// changed, now and then. The zero value has told nothing.
type seedsTold struct {
	failed int // attempts in a row
	why    string
}

// tellEvery is how many attempts there are from one look at the reasons to the next: some
// are worded a little differently each time.
const tellEvery = 20

// after takes what came of an attempt, and whether the node knew nobody before it. It returns
// what is to be said, if anything is.
func (s *seedsTold) after(alone bool, errs []error) (why string, say bool) {
	if !alone || len(errs) == 0 {
		*s = seedsTold{}
		return "", false
	}
	reasons := make([]string, len(errs))
	for i, err := range errs {
		reasons[i] = err.Error()
	}
	slices.Sort(reasons)
	why = strings.Join(reasons, "; ")
	s.failed++
	if s.failed%tellEvery != 2 || why == s.why {
		return "", false
	}
	s.why = why
	return why, true
}
