package sim

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
)

// Each purpose has random numbers of its own, so that what is drawn for one does
// not move another: a fault leaves the visitors as they were.
const (
	forArrivals = iota + 1
	forVisitors
	forNetwork
	forClocks
	forMembers
	forNodes
	forEntropy
	forIDs
	forTraits
	forDisks
	forOperator
	forTickets
)

func stream(seed, purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, purpose)) }

// scramble is a bijection that leaves no pattern of its input (the finisher of
// splitmix64).
func scramble(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// keyed draws one number for a purpose and up to two numbers that name what it
// is for.
func keyed(seed, purpose, a, b uint64) uint64 {
	return scramble(scramble(scramble(seed+purpose*0x9e3779b97f4a7c15)+a) + b)
}

// entropy returns a reader of bytes that nobody can guess who does not know the
// seed.
func entropy(seed, node, start uint64) *rand.ChaCha8 {
	var key [32]byte
	for i, part := range []uint64{seed, forEntropy, node, start} {
		binary.LittleEndian.PutUint64(key[8*i:], part)
	}
	return rand.NewChaCha8(key)
}

// dice are the random numbers of one visitor, in eight bytes.
type dice uint64

func (d *dice) next() uint64 {
	*d += 0x9e3779b97f4a7c15
	return scramble(uint64(*d))
}

// unit returns a number of [0, 1).
func (d *dice) unit() float64 { return float64(d.next()>>11) / (1 << 53) }

// exp returns an exponential number with the given mean.
func (d *dice) exp(mean float64) float64 { return -mean * math.Log1p(-d.unit()) }

// below returns a number of [0, n).
func (d *dice) below(n int) int { return int(d.unit() * float64(n)) }
