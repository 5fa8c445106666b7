package httpfront

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
	"unsafe"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/conn/address"
	"github.com/ropeline/ropeline/httpfront/gate/setassoc"
)

// FuzzAddressTable holds the table to buckets that are kept apart, as long as no more
// keys come than one set has slots: each byte is a key and how long after the last one
// it comes.
func FuzzAddressTable(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 0}, uint16(3))
	f.Add([]byte("\x00\x10\x21\x33\x07\xf7\xff\x00\x00\x00"), uint16(1))
	f.Add([]byte("the quick brown fox jumps over the lazy dog"), uint16(7))
	f.Fuzz(func(t *testing.T, steps []byte, limit uint16) {
		perMinute := int(limit%200) + 1
		table := newAddressTable()
		type bucket struct {
			level float64 // in visitors
			at    int64
		}
		apart := map[uint64]bucket{}
		now := time.Now().UnixNano()
		for i, s := range steps {
			key := uint64(s&(addressWays-1)) * addressSets // all in one set
			now += int64(s>>3) * int64(time.Second)
			b := apart[key]
			b.level = max(0, b.level-float64(now-b.at)*float64(perMinute)/float64(time.Minute))
			b.at = now
			want := b.level+1 <= float64(perMinute)
			near := b.level+1-float64(perMinute) < 1e-3 && b.level+1-float64(perMinute) > -1e-3
			got := table.take(key, perMinute, now)
			if got != want && !near {
				t.Fatalf("step %d, key %d: %v at %f of %d", i, key, got, b.level, perMinute)
			}
			if got {
				b.level++
			}
			apart[key] = b
		}
	})
}

// TestRandomAddressesHideNobody has an address go on far beyond its limit, while others
// that come once each try to have it forgotten.
func TestRandomAddressesHideNobody(t *testing.T) {
	if size := addressSets * addressWays * unsafe.Sizeof(setassoc.Slot[struct{}]{}); size != 1<<20 {
		t.Errorf("the slots take %d bytes, want 1 MiB", size)
	}
	c := newCrowd()
	id := crdt.RoomID{1}
	hot := c.key(id, address.Counted(netip.MustParseAddr("2001:db8::1")))
	r := rand.New(rand.NewPCG(1, 2))
	now := time.Now().UnixNano()
	const limit = 100
	others := 2_000_000 // come within 20 s
	if testing.Short() {
		others /= 5 // within 4 s
	}
	taken, asked := 0, 0
	for i := range others {
		now += int64(10 * time.Microsecond)
		c.addresses.take(r.Uint64(), limit, now)
		if i%100 == 0 {
			asked++
			if c.addresses.take(hot, limit, now) {
				taken++
			}
		}
	}
	if most := limit + limit/3 + asked/100; taken > most || taken < limit {
		t.Errorf("%d of %d were taken, want between %d and %d", taken, asked, limit, most)
	}
}

func TestAddressesAreCountedApartByRoom(t *testing.T) {
	c := newCrowd()
	seen := map[uint64]string{}
	for _, text := range []string{"192.0.2.1/32", "192.0.2.2/32", "2001:db8::/64", "2001:db8:0:1::/64"} {
		for _, id := range []crdt.RoomID{{1}, {2}} {
			k := c.key(id, netip.MustParsePrefix(text))
			if other, ok := seen[k]; ok {
				t.Errorf("%s and %s are one", text, other)
			}
			seen[k] = text
		}
	}
	a, b := address.Counted(netip.MustParseAddr("2001:db8::1")), address.Counted(netip.MustParseAddr("2001:db8::ffff:1"))
	if c.key(crdt.RoomID{1}, a) != c.key(crdt.RoomID{1}, b) {
		t.Error("two addresses of one /64 are two")
	}
	if other := newCrowd(); other.key(crdt.RoomID{1}, a) == c.key(crdt.RoomID{1}, a) {
		t.Error("another process has the same key")
	}
}
