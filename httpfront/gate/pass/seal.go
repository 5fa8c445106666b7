package pass

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
)

// A sealed pass is, in base64url without padding:
//
//	version 1 B | key id 1 B | nonce 24 B | body, encrypted | tag 16 B
//
// The tag covers version, key id, room id and host as well. A pass of another version
// does not open, and its visitor is new.
const (
	version    = 7
	headerSize = 2 + chacha20poly1305.NonceSizeX
	rawMax     = headerSize + bodyMax + chacha20poly1305.Overhead
	rawMin     = headerSize + bodyMin + chacha20poly1305.Overhead

	// MaxSize is the length of the longest sealed pass. Anything longer cannot
	// be one.
	MaxSize = (rawMax*8 + 5) / 6

	hostMax = 255
)

// scratch is the working memory of one call. It lives in a pool because the
// cipher is called through an interface, which would move it to the heap.
type scratch struct {
	raw  [rawMax]byte
	body [bodyMax]byte
	aad  [2 + len(crdt.RoomID{}) + hostMax]byte
}

// associated writes what the tag covers beside the body. The room id has a
// fixed length, so no two pairs of room and host give the same bytes.
func (s *scratch) associated(key byte, room crdt.RoomID, host string) []byte {
	b := append(s.aad[:0], version, key)
	b = append(b, room[:]...)
	return append(b, host[:min(len(host), hostMax)]...)
}

// encoding is strict: without it the unused bits of the last letter could be
// changed freely.
var encoding = base64.RawURLEncoding.Strict()

// AppendSeal appends p, sealed for its room and for host, to dst. The host is
// compared byte by byte when the pass is opened, so it must be in one form: as
// the front hands it to rooms. Times keep milliseconds; p.Room itself is not
// stored but bound. It panics if the system has no randomness.
func (r *Keyring) AppendSeal(dst []byte, p node.Pass, host string) []byte {
	return r.AppendSealTo(dst, p, host, nil)
}

// AppendSealTo is AppendSeal for a pass that is bound; nil binds it to nothing.
func (r *Keyring) AppendSealTo(dst []byte, p node.Pass, host string, to *Binding) []byte {
	s := r.scratch.Get().(*scratch)
	defer r.scratch.Put(s)
	k := &r.sealing

	var buf [boundSize]byte
	bound := buf[:0]
	if parts := to.parts(); parts != 0 {
		sum := to.sum(parts, &k.bind)
		bound = append(append(bound, parts), sum[:]...)
	}
	head := s.raw[:headerSize]
	head[0], head[1] = version, k.id
	rand.Read(head[2:]) // crashes the program rather than return an error

	body := appendBody(s.body[:0], p, bound, r.mesh)
	sealed := k.aead.Seal(head, head[2:], body, s.associated(k.id, p.Room, host))
	return encoding.AppendEncode(dst, sealed)
}

// Open returns the pass in text if it was sealed by a key of r for this room
// and host, and ErrInvalid otherwise. Whether the pass is still good for
// anything is not its business, nor what it is bound to.
func (r *Keyring) Open(text []byte, room crdt.RoomID, host string) (node.Pass, error) {
	p, _, err := r.OpenFrom(text, room, host, nil)
	return p, err
}

// OpenFrom is Open for a pass that comes from where by says: one that is bound to
// anything else is ErrInvalid, too. as reports whether it is as it would be sealed now: by
// a key that is not retiring, and bound to just those parts that by has. Nil asks for
// nothing.
func (r *Keyring) OpenFrom(text []byte, room crdt.RoomID, host string, by *Binding) (p node.Pass, as bool, err error) {
	// The decoder skips line ends, which would give one pass many spellings.
	if len(text) > MaxSize || bytes.IndexByte(text, '\r') >= 0 || bytes.IndexByte(text, '\n') >= 0 {
		return node.Pass{}, false, ErrInvalid
	}
	s := r.scratch.Get().(*scratch)
	defer r.scratch.Put(s)

	n, err := encoding.Decode(s.raw[:], text)
	if err != nil || n < rawMin || s.raw[0] != version {
		return node.Pass{}, false, ErrInvalid
	}
	keys := r.opening[s.raw[1]]
	for i := range keys {
		if p, as, ok := s.open(&keys[i], n, room, host, by, r.mesh); ok {
			return p, as, nil
		}
	}
	return node.Pass{}, false, ErrInvalid
}

// open opens the first n bytes of s.raw with a key, and leaves them as they are.
func (s *scratch) open(k *sealer, n int, room crdt.RoomID, host string, by *Binding, of [meshSize]byte) (p node.Pass, as, ok bool) {
	body, err := k.aead.Open(s.body[:0], s.raw[2:headerSize], s.raw[headerSize:n], s.associated(k.id, room, host))
	if err != nil {
		return node.Pass{}, false, false
	}
	p, bound, ok := parseBody(body, of)
	parts := byte(0)
	if len(bound) > 0 {
		if parts = bound[0]; !by.holds(parts, bound[1:], &k.bind) {
			return node.Pass{}, false, false
		}
	}
	p.Room = room
	return p, parts == by.parts() && !k.old, ok
}
