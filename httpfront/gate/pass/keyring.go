// Package pass seals what a visitor carries into the text of a cookie, and
// opens it again.
//
// A sealed pass is opaque and bound to one room and one host: changed, cut,
// made up, sealed with another key, or shown to another room or host, it does
// not open, and the visitor is new. It is not bound to a person or a machine: who
// copies a cookie copies the pass, unless a [Binding] says from where it may come.
package pass

import (
	"crypto/cipher"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/crypto/blake2b"
	"golang.org/x/crypto/chacha20poly1305"
)

// KeySize is the length of a key's secret in bytes.
const KeySize = chacha20poly1305.KeySize

// Key is one secret and the number that passes name it by. Two secrets may have the
// same number; it only saves trying all of them.
type Key struct {
	ID byte
	// Retiring says that visitors shall be given other passes for those of this key: it
	// was used before the one that seals.
	Retiring bool
	Secret   [KeySize]byte // uniformly random, such as the output of a key derivation
}

// Keyring holds the keys that passes may be sealed with. It does not change
// after it was made and may be used from several goroutines at once; to rotate
// keys, make another one.
type Keyring struct {
	sealing sealer
	opening [256][]sealer // by key id
	scratch *sync.Pool    // of *scratch
	mesh    [meshSize]byte
}

// sealer is a key that is ready for use.
type sealer struct {
	id   byte
	old  bool // retiring
	aead cipher.AEAD
	bind [blake2b.Size256]byte // the key of what passes are bound to
}

// NewKeyring returns a keyring that seals with the key sealing and opens passes of it
// and of all others. A key that is given twice counts once.
func NewKeyring(sealing Key, others ...Key) (*Keyring, error) {
	r := &Keyring{scratch: &sync.Pool{New: func() any { return new(scratch) }}}
	type number struct {
		id     byte
		secret [KeySize]byte
	}
	seen := map[number]bool{}
	for _, k := range append([]Key{sealing}, others...) {
		if k.Secret == [KeySize]byte{} {
			return nil, fmt.Errorf("pass key %d is all zero", k.ID)
		}
		if seen[number{k.ID, k.Secret}] {
			continue
		}
		seen[number{k.ID, k.Secret}] = true
		aead, err := chacha20poly1305.NewX(k.Secret[:])
		if err != nil {
			return nil, fmt.Errorf("pass key %d: %w", k.ID, err)
		}
		r.opening[k.ID] = append(r.opening[k.ID], sealer{k.ID, k.Retiring, aead, bindingKey(k)})
	}
	r.sealing = r.opening[sealing.ID][0] // the first of all
	return r, nil
}

// Of returns a keyring with the same keys for passes of a mesh. Sessions of another one are
// none there; what is kept of them is the arrival.
func (r *Keyring) Of(mesh [16]byte) *Keyring {
	of := *r
	sum := blake2b.Sum256(append([]byte("ropeline pass mesh\x00"), mesh[:]...))
	copy(of.mesh[:], sum[:])
	return &of
}

// ErrInvalid is the error of everything that does not open. It does not say
// why, so that nobody can learn from it.
var ErrInvalid = errors.New("not a pass for this room, host and visitor")
