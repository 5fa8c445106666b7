package room

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestNeighboursAreApart: a room is added, or refused with the same words, as by Apart with all that were added
// before, in their order.
func TestNeighboursAreApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	hosts := []string{"", "a.example", "b.example", "c.example", "d.example", "e.example", "f.example"}
	route := func() Route { return Route{pick(hosts[rng.IntN(2):]...), pick("/", "/x", "/x/", "/y")} }
	added, refused := 0, 0
	for range 2000 {
		var n Neighbours
		var before []*Settings
		for i := range 8 {
			s := &Settings{Name: fmt.Sprint(i), CookieSuffix: pick("", "p", "q", "r")}
			r := route()
			s.Host, s.Path = r.Host, r.Path
			for range rng.IntN(3) {
				s.AdditionalRoutes = append(s.AdditionalRoutes, route())
			}
			var want error
			for _, o := range before {
				if want = Apart(o, s); want != nil {
					break
				}
			}
			if got := n.Add(s); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%+v after %d others: got %v, want %v", s, len(before), got, want)
			}
			if want == nil {
				before = append(before, s)
				added++
			} else {
				refused++
			}
		}
	}
	if added < 4000 || refused < 4000 {
		t.Errorf("%d were added and %d refused: the test does not try both", added, refused)
	}
}

// BenchmarkNeighbours adds the last of so many rooms, each on a host of its own.
func BenchmarkNeighbours(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			rooms := make([]Settings, n)
			for b.Loop() {
				var all Neighbours
				for i := range rooms {
					rooms[i].Host = hostNames[i]
					if err := all.Add(&rooms[i]); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/room")
		})
	}
}

var hostNames = func() (all [10_000]string) {
	for i := range all {
		all[i] = fmt.Sprintf("shop-%05d.example", i)
	}
	return all
}()
