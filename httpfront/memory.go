package httpfront

import (
	"bytes"

	"github.com/ropeline/ropeline/httpfront/gate/pass"
	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/node/room"
)

// memory is what a connection remembers of the request before, since the next one is mostly
// from the same visitor. The zero value remembers nothing.
type memory struct {
	opened opened
	head   http1.Memory
}

// opened is the pass that a connection brought last, as it was opened. Browsers send the same
// cookies with every request of a connection, until they are given others, and to open a pass
// costs more than all else that a room does about somebody who is inside. Only passes of
// those are remembered: who waits is given another one with each answer. The zero value
// remembers nothing.
type opened struct {
	carried
	list []byte     // the Cookie field that it came in
	from openedFrom // zero: nothing is remembered
}

// openedFrom is all else that what a Cookie field opens to depends on, where passes are bound to
// nothing.
type openedFrom struct {
	keys     *pass.Keyring
	settings *room.Settings
	host     string
	secure   bool // the name of the cookie says so
}

// rememberedMax is the length of the longest Cookie field that is remembered.
const rememberedMax = 1 << 10

// is reports whether o is what the field opens to.
func (o *opened) is(list []byte, from openedFrom) bool {
	return o.from == from && bytes.Equal(o.list, list)
}

// remember notes what the field has opened to, in place of what was.
func (o *opened) remember(c *carried, list []byte, from openedFrom) {
	o.from = openedFrom{}
	if c.known && c.Accepted() && len(list) <= rememberedMax {
		o.carried, o.list, o.from = *c, append(o.list[:0], list...), from
	}
}

// onlyCookies returns the Cookie field of r; nil if there are several.
func (r *request) onlyCookies() (list []byte) {
	for v := range r.All("cookie") {
		if list != nil {
			return nil
		}
		list = v
	}
	return list
}
