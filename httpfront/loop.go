package httpfront

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"

	"github.com/ropeline/ropeline/httpfront/http1"
)

// hopsMax is how many nodes a request may pass. Rooms in front of rooms have two.
const hopsMax = 8

const selfSize = 16

var (
	errLoop = errors.New("an origin leads back to this node: look at the addresses of the origins, and at what their names resolve to")
	looping = failure{http.StatusLoopDetected, "The site cannot be reached", "Its address leads back to where this answer comes from. Whoever runs it has to change that."}
)

// newSelf returns a name that no other node has. Nobody can tell it in advance,
// so nobody's requests can be made to look as if they came back.
func newSelf() string { return fmt.Sprintf("%0*x", selfSize, rand.Uint64()) }

// hasPassed reports whether the request has been at the node self before, or at
// more nodes than make sense.
func (r *request) hasPassed(self string) bool {
	n := 0
	for hop := range http1.Elements(r.Loop) {
		if n++; n >= hopsMax || string(hop) == self {
			return true
		}
	}
	return false
}

// appendLoop appends the field with self at its end. What others wrote stays
// only as far as it looks like theirs, since it may be a client's.
func (r *request) appendLoop(dst []byte, self string) []byte {
	dst = append(dst, "Ropeline-Via: "...)
	for hop := range http1.Elements(r.Loop) {
		if isSelf(hop) {
			dst = append(dst, hop...)
			dst = append(dst, ", "...)
		}
	}
	dst = append(dst, self...)
	return append(dst, "\r\n"...)
}

func isSelf(b []byte) bool {
	for _, c := range b {
		if strings.IndexByte("0123456789abcdefABCDEF", c) < 0 {
			return false
		}
	}
	return len(b) == selfSize
}
