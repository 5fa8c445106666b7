package transport

import (
	"errors"
	"fmt"
)

var (
	// ErrUnreachable is returned for a peer that is not known, or that
	// could not be reached in time.
	ErrUnreachable = errors.New("peer unreachable")
	// ErrTooLarge is returned for a message over its size limit.
	ErrTooLarge = errors.New("message too large")
	// ErrClosed is returned once a mesh has stopped.
	ErrClosed = errors.New("mesh closed")
	// ErrSuperseded ends [Mesh.Run] when another process proves, with a
	// certificate of this very node, that it is a newer incarnation, or an
	// older process of the same one: the data directory was copied or
	// rolled back, and only one of the two may go on.
	ErrSuperseded = errors.New("another process runs under this node's identity")
)

// Codes of a [RemoteError] that the transport itself gives. Handlers use
// codes below CodeReserved.
const (
	CodeReserved  uint16 = 0xff00
	CodeNoHandler uint16 = 0xfffd // the peer takes no calls
	CodeTooLarge  uint16 = 0xfffe // the answer was over MaxCall
	CodePanic     uint16 = 0xffff // the handler of the peer panicked
)

// RemoteError is the answer of a peer whose handler gave an error. A handler
// that returns a *RemoteError chooses the code; any other error travels as
// its text with code 0.
type RemoteError struct {
	Code uint16
	Text string
}

// Error returns the text of the peer.
func (e *RemoteError) Error() string {
	if e.Code == 0 {
		return "remote: " + e.Text
	}
	return fmt.Sprintf("remote: %s (code %d)", e.Text, e.Code)
}
