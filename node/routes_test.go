package node

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/node/room"
)

func TestRoutesFindTheLongestPath(t *testing.T) {
	add := func(name, host, path string) *Room {
		r := &Room{}
		r.settings.Store(&room.Settings{Name: name, Host: host, Path: path, Suspended: name == "suspended"})
		return r
	}
	table := newRoutes([]*Room{
		add("everything", "", "/"), add("any tickets", "", "/tickets"),
		add("shop", "shop.example", "/"), add("sale", "shop.example", "/sale"), add("sale vip", "shop.example", "/sale/vip/"),
		add("suspended", "shop.example", "/sale/old"),
	})
	tests := []struct{ host, path, want string }{
		{"other.example", "/", "everything"},
		{"", "/tickets", "any tickets"},
		{"", "/tickets/1", "any tickets"},
		{"", "/ticketsandmore", "everything"},
		{"", "/Tickets", "everything"},
		{"shop.example", "/", "shop"},
		{"shop.example", "/sale", "sale"},
		{"shop.example", "/sale/", "sale"},
		{"shop.example", "/sale/vip", "sale vip"},
		{"shop.example", "/sale/vip/1", "sale vip"},
		{"shop.example", "/tickets", "shop"},
	}
	for _, tt := range tests {
		if got := table.find(tt.host, tt.path); got == nil || got.settings.Load().Name != tt.want {
			t.Errorf("room of %q %q = %v, want %q", tt.host, tt.path, got, tt.want)
		}
	}
	// A suspended room lets its requests pass; none goes to the room around it.
	if got := table.find("shop.example", "/sale/old/1"); got != nil {
		t.Errorf("room of a suspended path = %q, want none", got.settings.Load().Name)
	}
	if got := newRoutes([]*Room{add("shop", "shop.example", "/a")}).find("shop.example", "/b"); got != nil {
		t.Errorf("room of a path that none has = %q", got.settings.Load().Name)
	}
}

func TestRoutesOfOneRoom(t *testing.T) {
	r := &Room{}
	r.settings.Store(&room.Settings{Host: "shop.example", Path: "/", AdditionalRoutes: []room.Route{
		{Host: "tickets.example"}, {Host: "shop.example", Path: "/sale/"}, {Path: "/anywhere"},
	}})
	inner := &Room{}
	inner.settings.Store(&room.Settings{Host: "tickets.example", Path: "/vip"})
	table := newRoutes([]*Room{r, inner})
	for _, tt := range []struct {
		host, path string
		want       *Room
	}{
		{"shop.example", "/", r},
		{"shop.example", "/sale", r},
		{"tickets.example", "/a", r},
		{"tickets.example", "/vip/a", inner},
		{"other.example", "/anywhere/a", r},
		{"other.example", "/", nil},
		{"", "/anywhere", r},
		{"tickets.example", "*", nil},
	} {
		if got := table.find(tt.host, tt.path); got != tt.want {
			t.Errorf("room of %q %q = %p, want %p", tt.host, tt.path, got, tt.want)
		}
	}
	s := *r.settings.Load()
	s.Suspended = true
	r.settings.Store(&s)
	for route := range s.Routes() {
		if got := newRoutes([]*Room{r, inner}).find(route.Host, route.Prefix()+"/"); got != nil {
			t.Errorf("a suspended room takes requests on %v", route)
		}
	}
}

// TestRoutesAgreeWithAPlainSearch makes tables and paths of few names, so that they
// meet often, and looks through all routes for what holds a path.
func TestRoutesAgreeWithAPlainSearch(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	path := func() string {
		var b strings.Builder
		for range rng.IntN(5) {
			b.WriteString("/" + "aab"[:1+rng.IntN(3)])
		}
		if b.Len() == 0 || rng.IntN(4) == 0 {
			b.WriteString("/")
		}
		return b.String()
	}
	hosts := []string{"", "a", "b"}
	for range 2000 {
		var rooms []*Room
		for range 1 + rng.IntN(5) {
			r := &Room{}
			s := room.Settings{Host: hosts[rng.IntN(3)], Path: path(), Suspended: rng.IntN(4) == 0}
			for range rng.IntN(3) {
				s.AdditionalRoutes = append(s.AdditionalRoutes, room.Route{Host: hosts[rng.IntN(3)], Path: path()})
			}
			r.settings.Store(&s)
			rooms = append(rooms, r)
		}
		table := newRoutes(rooms)
		for range 20 {
			host, path := hosts[rng.IntN(3)], path()
			if got, want := table.find(host, path), plainFind(rooms, host, path); got != want {
				t.Fatalf("%q %q: got %+v, want %+v", host, path, got, want)
			}
		}
	}
}

// plainFind takes the exact host before every host, then the longest path, then the
// first room.
func plainFind(rooms []*Room, host, path string) (best *Room) {
	rank := -1
	for _, r := range rooms {
		s := r.settings.Load()
		for e := range s.Routes() {
			rest, ok := strings.CutPrefix(path, e.Prefix())
			if e.Host != "" && e.Host != host || !ok || rest != "" && rest[0] != '/' {
				continue
			}
			n := 2 * len(e.Prefix())
			if e.Host != "" {
				n += 1 << 20
			}
			if n > rank {
				if rank, best = n, r; s.Suspended {
					best = nil
				}
			}
		}
	}
	return best
}

func TestFindingARoomDoesNotAllocate(t *testing.T) {
	table, deep := manyRoutes(1000), strings.Repeat("/a", 4000)
	if n := testing.AllocsPerRun(100, func() {
		table.find("shop-7.example", "/tickets/2026/seat")
		table.find("nobody.example", deep)
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func manyRoutes(n int) *routes {
	rooms := make([]*Room, n)
	for i := range rooms {
		rooms[i] = &Room{}
		rooms[i].settings.Store(&room.Settings{Host: fmt.Sprintf("shop-%d.example", i), Path: "/tickets"})
	}
	return newRoutes(rooms)
}

func BenchmarkRoutes(b *testing.B) {
	table := manyRoutes(10_000)
	for name, path := range map[string]string{"short": "/tickets/2026", "deep": strings.Repeat("/a", 4000)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				table.find("shop-77.example", path)
			}
		})
	}
}
