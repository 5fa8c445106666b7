package pass

import (
	"crypto/subtle"
	"net/netip"

	"golang.org/x/crypto/blake2b"
)

// Binding says from where a pass may be shown. What a pass is bound to cannot be read
// from it, not even with the key: it holds a short keyed hash, from which at best
// guesses can be tried. One that names no part, and nil, bind it to nothing.
type Binding struct {
	// ByAddress and ByAgent are the parts that count for passes that are sealed. One
	// that is opened is looked at by the parts that it was sealed with, so Address and
	// Agent are to be given in any case.
	ByAddress, ByAgent bool

	Address netip.Prefix // the network that the visitor is in
	Agent   []byte       // what the browser says it is
}

// The parts that a pass may be bound to.
const (
	partAddress = 1 << iota
	partAgent
	partsKnown = partAddress | partAgent
)

const (
	sumSize   = 6 // so that hardly any two networks or browsers are taken for one
	boundSize = 1 + sumSize
)

// parts returns what b counts.
func (b *Binding) parts() (parts byte) {
	if b == nil {
		return 0
	}
	if b.ByAddress {
		parts |= partAddress
	}
	if b.ByAgent {
		parts |= partAgent
	}
	return parts
}

// sum returns the hash of parts of b. It allocates nothing.
func (b *Binding) sum(parts byte, key *[blake2b.Size256]byte) (sum [sumSize]byte) {
	// Every field has a fixed length, so no two bindings give the same bytes; and a
	// hash of this kind, unlike older ones, is a keyed one with the key in front.
	var in [len(key) + 1 + 16 + 2 + blake2b.Size256]byte
	to := append(in[:0], key[:]...)
	to = append(to, parts)
	if parts&partAddress != 0 {
		a := b.Address.Masked()
		of := a.Addr().As16()
		to = append(to, of[:]...)
		to = append(to, byte(a.Bits()), byte(a.Addr().BitLen()))
	}
	if parts&partAgent != 0 {
		agent := blake2b.Sum256(b.Agent)
		to = append(to, agent[:]...)
	}
	whole := blake2b.Sum256(to)
	copy(sum[:], whole[:])
	return sum
}

// holds reports whether a pass that is bound to parts comes from b. Where nothing is
// asked for, it comes from anywhere.
func (b *Binding) holds(parts byte, sum []byte, key *[blake2b.Size256]byte) bool {
	if b.parts() == 0 {
		return true
	}
	if parts == 0 || parts&^partsKnown != 0 {
		return false // nothing that this version has sealed
	}
	want := b.sum(parts, key)
	return subtle.ConstantTimeCompare(sum, want[:]) == 1
}

// bindingKey derives the key of bindings from that of passes.
func bindingKey(k Key) [blake2b.Size256]byte {
	return blake2b.Sum256(append([]byte("ropeline pass binding\x00"), k.Secret[:]...))
}
