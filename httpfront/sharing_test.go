package httpfront

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/ropeline/ropeline/httpfront/gate/setassoc"
	"github.com/ropeline/ropeline/node/room"
)

// shares has the pass of somebody at the first address be shared as a room says.
func (c *crowded) shares(sharing room.Sharing, want Outcome) (pass string) {
	c.t.Helper()
	s := smallRoom()
	s.Front.Sharing = sharing
	configure(c.t, c.front, s)
	pass = c.ask("192.0.2.1", "").is(c.t, want).Cookie
	c.pass(time.Second)
	return pass
}

// inside is how many of so many people with one pass are let in, each of whom has an address. The first is.
func (c *crowded) inside(people int, pass string) (n int) {
	c.t.Helper()
	for i := range people {
		a := c.awaited("192.0.2."+strconv.Itoa(1+i), pass)
		if i == 0 {
			a.is(c.t, Admitted, "whose pass it is")
		}
		if a.Outcome == Admitted {
			n++
		} else if a.is(c.t, Queued); a.Cookie == "" || a.Cookie == pass {
			c.t.Fatalf("who queues gets %+v", a)
		}
	}
	return n
}

func TestASharedPassIsWhatTheRoomSays(t *testing.T) {
	const people = 50
	for _, tt := range []struct {
		sharing room.Sharing
		inside  int
		told    bool
	}{
		{room.Sharing{}, people, false},
		{room.Sharing{Action: room.SharedIgnore, Addresses: 4}, people, false},
		{room.Sharing{Action: room.SharedLog, Addresses: 4}, people, true},
		{room.Sharing{Action: room.SharedQueue, Addresses: 4}, 4, true},
		{room.Sharing{Action: room.SharedQueue, Addresses: 1}, 1, true},
	} {
		c := newCrowded(t, room.NewVisitors{})
		pass := c.shares(tt.sharing, Admitted)
		for round := range 3 {
			equal(t, fmt.Sprintf("%+v, round %d: inside", tt.sharing, round), c.inside(people, pass), tt.inside)
			c.pass(10 * time.Second)
		}
		times := strings.Count(c.log.text(), "a pass is used from more addresses")
		if times > 1 || times == 1 != tt.told || c.log.has("192.0.2.5 ") || tt.told && !c.log.has("192.0.2.0/24") {
			t.Errorf("%+v: the log tells\n%s", tt.sharing, c.log.text())
		}
	}
}

// TestAWaitingPassIsSharedLikeItsSession hands round the pass of somebody who waits: for a
// while after its turn it is as good as the one that it was exchanged for, and no better.
func TestAWaitingPassIsSharedLikeItsSession(t *testing.T) {
	c := newCrowded(t, room.NewVisitors{})
	c.fill()
	pass := c.shares(room.Sharing{Action: room.SharedQueue, Addresses: 4}, Queued)
	c.pass(80 * time.Second)
	for round := range 5 {
		equal(t, fmt.Sprintf("round %d: inside", round), c.inside(50, pass), 4)
		c.pass(30 * time.Second)
	}
	has(t, "the log", c.log.text(), "a pass is used from more addresses")
}

func TestSharedPassesAreCounted(t *testing.T) {
	r := newRoom(always)
	r.settings.Front.Sharing = room.Sharing{Action: room.SharedLog, Addresses: 2}
	f := judges(t, fakeRooms{room: r})
	configure(t, f, r.settings)
	req, keys, s := admittedRequest(t, room.Binding{})
	for _, address := range []string{
		"192.0.2.0", "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5", "192.0.2.6", "192.0.2.7", "192.0.2.8",
		"127.0.0.1", "::1", // count for nothing
	} {
		req.via.Client = netip.MustParseAddr(address)
		var p carried
		req.openPass(&p, keys, s, nil)
		f.isShared(req, &p.Pass, r, s.Name, 2, time.Unix(1_700_000_000, 0))
	}
	equal(t, "how many are counted", r.shared.Load(), 7)
}

// TestWhoIsOnTheWaySharesNothing has one visitor take a new address every 20 seconds, of
// both families.
func TestWhoIsOnTheWaySharesNothing(t *testing.T) {
	c := newCrowded(t, room.NewVisitors{})
	pass := c.shares(room.Sharing{Action: room.SharedQueue, Addresses: 4}, Admitted)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 30 {
		for range 4 {
			address := "198.51.100." + strconv.Itoa(i)
			if i%2 == 0 {
				address = someAddress(netip.MustParsePrefix("2001:db8::/64"), r)
			}
			pass = cmp.Or(c.ask(address, pass).is(t, Admitted, "address", i).Cookie, pass)
			c.pass(5 * time.Second)
		}
	}
	lacks(t, "the log", c.log.text(), "a pass is used")
}

// FuzzPassTable holds the table to one that remembers all, as long as no more passes come
// than one set has slots.
func FuzzPassTable(f *testing.F) {
	f.Add([]byte("\x00\x01\x00\x02\x00\x03\x00\x04\x00\x05\x00\x01"), uint8(4))
	f.Add([]byte("\x00\x01\xf0\x02\xf0\x03\xf0\x04\xf1\x05\x00\x01"), uint8(1))
	f.Fuzz(func(t *testing.T, steps []byte, n uint8) {
		limit := int(n)%room.MaxSharedAddresses + 1
		table := newPassTable()
		type use struct {
			address uint32
			at      int64
		}
		all := map[uint64][]use{}
		now := time.Now().Unix()
		for i := 0; i+1 < len(steps); i += 2 {
			key := uint64(steps[i]%passWays) * passSets
			now += int64(steps[i] / passWays)
			address := uint32(steps[i+1]%16) + 1
			var live []use
			known := false
			for _, u := range all[key] {
				switch {
				case u.address == address:
					live, known = append(live, use{address, now}), true
				case now-u.at < 60:
					live = append(live, u)
				}
			}
			want := known || len(live) < limit
			if want && !known {
				live = append(live, use{address, now})
			}
			all[key] = live
			if got := table.use(key, address, limit, now); got != want {
				t.Fatalf("step %d: %v, want %v of %+v", i, got, want, live)
			}
		}
	})
}

// TestRandomPassesHideNoSharing has a pass shared while far more come than there is room
// for.
func TestRandomPassesHideNoSharing(t *testing.T) {
	slot := unsafe.Sizeof(setassoc.Slot[passUses]{})
	if size := passSets * passWays * slot; size != 4<<20 || slot != 64 {
		t.Errorf("the slots take %d bytes, want 4 MiB, and each %d, want 64", size, slot)
	}
	sh := newSharing()
	r := rand.New(rand.NewPCG(1, 2))
	others := 2_000_000 // come within 20 s
	if testing.Short() {
		others /= 5 // within 4 s
	}
	within, asked := 0, 0
	for i := range others {
		now := 1_700_000_000 + int64(i)/100_000
		sh.passes.use(r.Uint64()|1, 1, 4, now)
		if i%1000 == 0 {
			asked++
			if sh.passes.use(42, uint32(1+asked%50), 4, now) {
				within++
			}
		}
	}
	if within > asked/10 {
		t.Errorf("%d of %d uses by 50 addresses count as those of 4", within, asked)
	}
}
