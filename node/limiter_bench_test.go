package node

import (
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/limit"
)

// addresses are those of a million clients, as the front writes them.
type addresses [18]byte

// of returns the values of one of them, good until the next call.
func (a *addresses) of(i int) []byte {
	x := uint64(i+1) * 0x9e3779b97f4a7c15 // no two alike
	a[0], a[1] = 1, 16
	binary.BigEndian.PutUint64(a[2:], 0x2001_0db8_0000_0000)
	binary.BigEndian.PutUint64(a[10:], x)
	return a[:]
}

const million = 1_000_000

// liveMeter is a meter with a million live keys.
func liveMeter(tb testing.TB, requests int, timeout time.Duration) (*Meter, time.Time) {
	l := newLimiter(DefaultLimitMemory, crdt.Incarnation{}, "site", []byte("owner"))
	now := time.UnixMilli(1_700_000_000_000)
	r := limit.Rule{ID: limit.ID{1}, Name: "all", Expression: "true", Period: time.Minute, RequestsPerPeriod: requests, MitigationTimeout: timeout}.WithDefaults()
	l.follow([]limit.Rule{r}, now)
	m := l.meters.Load().byID[r.ID]
	var a addresses
	for i := range million {
		m.Take(m.Key(a.of(i)), now)
	}
	return m, now.Add(time.Second)
}

// The whole decision about a request: from the values of its characteristics to the
// verdict.
func BenchmarkMeterTake(b *testing.B) {
	for _, of := range []int{1, 10_000, million} {
		b.Run("keys="+strconv.Itoa(of), func(b *testing.B) {
			m, now := liveMeter(b, 1<<29, 0)
			var a addresses
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if m.Take(m.Key(a.of(i)), now).Limited {
					b.Fatal("a key is limited")
				}
				if i++; i == of {
					i = 0
				}
			}
		})
	}
}

// As BenchmarkMeterTake, with keys drawn as crowds are: a few come often, and most seldom
// (Zipf's law with exponent 1.05).
func BenchmarkMeterTakeHeavyTail(b *testing.B) {
	m, now := liveMeter(b, 1<<29, 0)
	var a addresses
	rng := rand.New(rand.NewPCG(1, 2))
	zipf, who := rand.NewZipf(rng, 1.05, 1, million-1), rng.Perm(million)
	drawn := make([]uint32, 1<<20)
	for i := range drawn {
		drawn[i] = uint32(who[zipf.Uint64()])
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if m.Take(m.Key(a.of(int(drawn[i]))), now).Limited {
			b.Fatal("a key is limited")
		}
		i = (i + 1) % len(drawn)
	}
}

// The usual limiter of Go programs, for one key, and for many in a map.
func BenchmarkTimeRate(b *testing.B) {
	for _, of := range []int{1, 10_000, million} {
		b.Run("keys="+strconv.Itoa(of), func(b *testing.B) {
			all := make(map[limit.Key]*rate.Limiter, of)
			for i := range of {
				all[limit.Key(uint64(i+1)*0x9e3779b97f4a7c15)] = rate.NewLimiter(1e9, 1<<30)
			}
			var mu sync.Mutex
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				mu.Lock()
				l := all[limit.Key(uint64(i+1)*0x9e3779b97f4a7c15)]
				mu.Unlock()
				if !l.Allow() {
					b.Fatal("a key is limited")
				}
				if i++; i == of {
					i = 0
				}
			}
		})
	}
}

// What any limiter pays for a key that is in no cache: one read of memory, somewhere in 64
// MiB, that has to wait for the one before.
func BenchmarkMemory(b *testing.B) {
	type line struct {
		next uint32
		_    [60]byte
	}
	lines := make([]line, million)
	order := rand.New(rand.NewPCG(1, 2)).Perm(million)
	for i, at := range order {
		lines[at].next = uint32(order[(i+1)%million])
	}
	at := uint32(0)
	for b.Loop() {
		at = lines[at].next
	}
}

func BenchmarkMeterTakeLimited(b *testing.B) {
	for _, of := range []int{1, 1000, 10_000} {
		b.Run("keys="+strconv.Itoa(of), func(b *testing.B) {
			m, now := liveMeter(b, 1, time.Hour)
			var a addresses
			for i := range of {
				m.Count(m.Key(a.of(i)), now) // those few too that gave way to others
				m.Take(m.Key(a.of(i)), now)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if !m.Take(m.Key(a.of(i)), now).Limited {
					b.Fatal("a key is not limited")
				}
				if i++; i == of {
					i = 0
				}
			}
		})
	}
}
