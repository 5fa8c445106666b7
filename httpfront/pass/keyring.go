// Package pass seals what a visitor carries into the text of a cookie, and
// opens it again.
//
// A sealed pass is opaque and bound to one room and one host: changed, cut,
// made up, sealed with another key, or shown to another room or host, it does
// not open, and the visitor is new. What it does not do is bind a pass to a
// person or a machine: who copies a cookie copies the pass.
package pass

import (
	"crypto/cipher"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/crypto/chacha20poly1305"
)

// KeySize is the length of a key's secret in bytes.
const KeySize = chacha20poly1305.KeySize

// Key is one secret and the number that passes name it by.
type Key struct {
	ID     byte
	Secret [KeySize]byte // uniformly random, such as the output of a key derivation
}

// Keyring holds the keys that passes may be sealed with. It does not change
// after it was made and may be used from several goroutines at once; to rotate
// keys, make another one.
type Keyring struct {
	sealing byte
	aead    [256]cipher.AEAD // by key id; nil: no such key
	scratch sync.Pool        // of *scratch
}

// NewKeyring returns a keyring that opens passes of all keys and seals with
// the one whose id is sealing.
func NewKeyring(sealing byte, keys ...Key) (*Keyring, error) {
	r := &Keyring{sealing: sealing}
	r.scratch.New = func() any { return new(scratch) }
	for _, k := range keys {
		if r.aead[k.ID] != nil {
			return nil, fmt.Errorf("pass key %d is given twice", k.ID)
		}
		if k.Secret == [KeySize]byte{} {
			return nil, fmt.Errorf("pass key %d is all zero", k.ID)
		}
		aead, err := chacha20poly1305.NewX(k.Secret[:])
		if err != nil {
			return nil, fmt.Errorf("pass key %d: %w", k.ID, err)
		}
		r.aead[k.ID] = aead
	}
	if r.aead[sealing] == nil {
		return nil, fmt.Errorf("pass key %d shall seal but is not given", sealing)
	}
	return r, nil
}

// ErrInvalid is the error of everything that does not open. It does not say
// why, so that nobody can learn from it.
var ErrInvalid = errors.New("not a pass for this room and host")
