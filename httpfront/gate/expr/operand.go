package expr

import (
	"net/netip"
	"sync"
	"unsafe"
)

// kind is the type of a value.
type kind uint8

const (
	truth kind = iota
	number
	text
	address
)

func (k kind) String() string {
	return [...]string{"true or false", "a number", "a string", "an IP address"}[k]
}

// shape says how many values an operand stands for.
type shape uint8

const (
	single shape = iota
	each         // one element at a time, which any or all goes through
	mapped       // one for each element, as a function makes them of each
	array        // all elements
	table        // arrays by name
)

// What operands are compiled to. None of them allocates; ok is false where the
// request does not have the value.
type (
	textOf    func(r *Request, s *scratch) (v string, ok bool)
	numberOf  func(r *Request, s *scratch) (v int64, ok bool)
	addressOf func(r *Request, s *scratch) (v netip.Addr, ok bool)
	predicate func(r *Request, s *scratch) bool
)

// typed is an operand that was checked. The function of its kind is set where
// its shape is single, each or mapped.
type typed struct {
	at    int // offset in the source
	label string
	kind  kind
	shape shape

	constant bool // a literal
	buffered bool // makes text in the scratch
	ready    bool // text of a request that need not be looked for
	ofFields bool // elements are of header fields
	length   length

	text    textOf
	number  numberOf
	address addressOf
	truth   predicate

	elements elements                   // of an array
	named    func(name string) elements // of a table
	fold     bool                       // whether the names of a table are in lower case
	lower    bool                       // whether elements are taken in lower case
}

// scratch is what one match needs besides the request.
type scratch struct {
	element string // at which any or all is
	buf     []byte // text that was made
}

// scratchMax is how many bytes of text are kept for the next match.
const scratchMax = 64 << 10

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func (s *scratch) release() {
	s.element = ""
	if cap(s.buf) <= scratchMax {
		s.buf = s.buf[:0]
		scratches.Put(s)
	}
}

// since returns what was appended to the buffer after it was from bytes long, as
// a string without a copy. Its bytes are not written again while it is needed:
// until its comparison is over, or concat has moved it. Where appending moves the
// buffer, the string keeps the old one.
func (s *scratch) since(from int) string {
	made := s.buf[from:]
	return unsafe.String(unsafe.SliceData(made), len(made))
}

// settle wraps a predicate that makes text, so that the text's room is used
// again by the next.
func settle(p predicate, buffered bool) predicate {
	if !buffered {
		return p
	}
	return func(r *Request, s *scratch) bool {
		from := len(s.buf)
		yes := p(r, s)
		s.buf = s.buf[:from]
		return yes
	}
}
