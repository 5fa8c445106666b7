package transport

import (
	"context"
	"crypto/x509"
	"errors"
	"slices"
	"strings"

	"github.com/quic-go/quic-go"
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

// Probe finds out whether a node at address, host:port, is of the mesh that identity is of.
// It joins nobody. The error is [ErrStranger] for a node of another mesh.
func Probe(ctx context.Context, identity *Identity, address string) error {
	addrs, err := resolve(ctx, address)
	if err != nil {
		return err
	}
	var errs []error
	for _, addr := range addrs {
		conn, err := quic.DialAddr(ctx, addr.String(), identity.tlsConfig(), nil)
		if err == nil {
			return conn.CloseWithError(closeIdle, "only a question")
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
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
