package http1

import (
	"math/rand/v2"
	"testing"
)

func TestControlCharactersAreFoundWhereverTheyStand(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for c := range 256 {
		for at := range 24 {
			b := make([]byte, at+1+rnd.IntN(12))
			for i := range b {
				if b[i] = byte(' ' + rnd.IntN(224)); b[i] == 0x7f {
					b[i] = '\t'
				}
			}
			b[at] = byte(c)
			want := c >= ' ' && c != 0x7f || c == '\t'
			if got := isValue(b); got != want {
				t.Fatalf("%q may be a value: %v, want %v", b, got, want)
			}
		}
	}
}
