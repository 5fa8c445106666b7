package traffic

import (
	"math"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// within is how far a mesh may be off what it was found to say.
const within = 0.15

// TestMeshesSayAsMuchAsTheyDid counts what small meshes say: what they say more, or less, than
// they did when this was written is news for docs/measurements.md.
func TestMeshesSayAsMuchAsTheyDid(t *testing.T) {
	const start, day = 5 * time.Second, 65 * time.Second // of whole nodes: until as many leave as come
	for _, x := range []struct {
		shape
		all, far float64 // bytes a second: of a node, and of a relay to other sites
	}{
		{shape{Sites: 1, Nodes: 3, Rooms: 10, Policy: room.Escrow, Before: start, Span: 20 * time.Second}, 350, 0},
		{shape{Sites: 3, Nodes: 2, Rooms: 1, Policy: room.Even, Before: start, Span: 40 * time.Second}, 55, 27},
		{shape{Sites: 1, Nodes: 3, Rooms: 10, Policy: room.Escrow, Visitors: 1, Before: day, Span: 20 * time.Second}, 1458, 0},
		{shape{Sites: 3, Nodes: 2, Rooms: 10, Policy: room.Escrow, Visitors: 1. / 3, Before: day, Span: 40 * time.Second}, 1557, 932},
		{shape{Sites: 8, Nodes: 1, Rooms: 10, Policy: room.Even, Visitors: 1, Before: day, Span: 20 * time.Second}, 4450, 4450},
	} {
		t.Run(x.String(), func(t *testing.T) {
			t.Parallel()
			got, err := simulate(x.shape, 1)
			if err != nil {
				t.Fatal(err)
			}
			hold(t, "all", got.Mean.Near+got.Mean.Far, x.all)
			if x.Sites > 1 {
				hold(t, "of a relay to other sites", got.Relay.Far, x.far)
			}
		})
	}
}

func hold(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got/want-1) > within {
		t.Errorf("%s: a node sends %.0f bytes a second, and sent %.0f", what, got, want)
	}
}

// TestSameSeedSameTraffic holds that nothing but the seed decides.
func TestSameSeedSameTraffic(t *testing.T) {
	s := shape{Sites: 2, Nodes: 2, Rooms: 3, Policy: room.Escrow, Visitors: 1, Full: true, Before: 5 * time.Second, Span: 10 * time.Second}
	var all [2]result
	for i := range all {
		var err error
		if all[i], err = simulate(s, 7); err != nil {
			t.Fatal(err)
		}
	}
	if all[0] != all[1] {
		t.Errorf("the same twice:\n%+v\n%+v", all[0], all[1])
	}
}
