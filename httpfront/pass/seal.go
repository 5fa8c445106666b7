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
// The tag covers version, key id, room id and host as well. Passes are sealed in
// the newest version. Older ones open as long as nodes may meet them: a visitor
// keeps the place while a mesh is upgraded. A node of an older version refuses
// the newer ones, and the visitor is new to it.
const (
	version    = 3
	versionMin = 1
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
func (s *scratch) associated(version, key byte, room crdt.RoomID, host string) []byte {
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
	s := r.scratch.Get().(*scratch)
	defer r.scratch.Put(s)

	head := s.raw[:headerSize]
	head[0], head[1] = version, r.sealing
	rand.Read(head[2:]) // crashes the program rather than return an error

	body := appendBody(s.body[:0], p)
	sealed := r.aead[r.sealing].Seal(head, head[2:], body, s.associated(version, r.sealing, p.Room, host))
	return encoding.AppendEncode(dst, sealed)
}

// Open returns the pass in text if it was sealed by a key of r for this room
// and host, and ErrInvalid otherwise. Whether the pass is still good for
// anything is not its business.
func (r *Keyring) Open(text []byte, room crdt.RoomID, host string) (node.Pass, error) {
	// The decoder skips line ends, which would give one pass many spellings.
	if len(text) > MaxSize || bytes.ContainsAny(text, "\r\n") {
		return node.Pass{}, ErrInvalid
	}
	s := r.scratch.Get().(*scratch)
	defer r.scratch.Put(s)

	n, err := encoding.Decode(s.raw[:], text)
	if err != nil || n < rawMin {
		return node.Pass{}, ErrInvalid
	}
	sealed, key := s.raw[0], s.raw[1] // the version it was sealed in
	if sealed < versionMin || sealed > version {
		return node.Pass{}, ErrInvalid
	}
	aead := r.aead[key]
	if aead == nil {
		return node.Pass{}, ErrInvalid
	}
	body, err := aead.Open(s.body[:0], s.raw[2:headerSize], s.raw[headerSize:n], s.associated(sealed, key, room, host))
	if err != nil {
		return node.Pass{}, ErrInvalid
	}
	p, ok := parseBody(sealed, body)
	if !ok {
		return node.Pass{}, ErrInvalid
	}
	p.Room = room
	return p, nil
}
