package room

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestNeighboursAreApart: a room is apart from others, or the error is the same, as by Apart with each of them
// in their order.
func TestNeighboursAreApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	hosts := []string{"", "a.example", "b.example", "c.example", "d.example", "e.example", "f.example"}
	route := func() Route { return Route{pick(hosts[rng.IntN(2):]...), pick("/", "/x", "/x/", "/y")} }
	apart, not := 0, 0
	for range 2000 {
		var n Neighbours
		var before []*Settings
		for i := range 8 {
			s := &Settings{Name: fmt.Sprint(i), CookieSuffix: pick("", "p", "q", "r")}
			r := route()
			s.Host, s.Path = r.Host, r.Path
			for range rng.IntN(6) {
				s.AdditionalRoutes = append(s.AdditionalRoutes, route())
			}
			var want error
			for _, o := range before {
				if want = Apart(o, s); want != nil {
					break
				}
			}
			if got := n.Apart(s); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%+v after %d others: got %v, want %v", s, len(before), got, want)
			}
			if want == nil {
				apart++
			} else {
				not++
			}
			if want == nil || rng.IntN(4) == 0 {
				n.Add(s)
				before = append(before, s)
			}
		}
	}
	if apart < 3000 || not < 3000 {
		t.Errorf("%d were apart and %d not: the test does not try both", apart, not)
	}
}

// BenchmarkNeighbours adds so many rooms, each on a host of its own, or with many routes on one host.
func BenchmarkNeighbours(b *testing.B) {
	for _, c := range []struct {
		name          string
		rooms, routes int
		host          func(int) string
	}{
		{"10 hosts", 10, 0, hostName},
		{"10000 hosts", 10_000, 0, hostName},
		{"one host, 50 rooms of 100 routes", 50, MaxRoutes, func(int) string { return "shop.example" }},
	} {
		b.Run(c.name, func(b *testing.B) {
			rooms := make([]Settings, c.rooms)
			for i := range rooms {
				rooms[i] = Settings{Host: c.host(i), Path: fmt.Sprintf("/%d", i), CookieSuffix: fmt.Sprint(i)}
				for r := range c.routes {
					rooms[i].AdditionalRoutes = append(rooms[i].AdditionalRoutes, Route{c.host(i), fmt.Sprintf("/%d/%d", i, r)})
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				var all Neighbours
				for i := range rooms {
					if err := all.Apart(&rooms[i]); err != nil {
						b.Fatal(err)
					}
					all.Add(&rooms[i])
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.rooms), "ns/room")
		})
	}
}

func hostName(i int) string { return fmt.Sprintf("shop-%05d.example", i) }
