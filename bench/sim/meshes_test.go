package sim

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

var (
	firstSeed = flag.Uint64("sim-seed", 1, "first seed of TestMeshesWithFaults")
	seeds     = flag.Int("sim-seeds", 50, "how many seeds TestMeshesWithFaults runs")
)

// TestMeshesWithFaults runs meshes, rooms and faults drawn from seeds. Whatever
// happens to nodes and network, no place is lost, nobody is let in twice by one
// node, all who stay get in, and what was counted ends at zero.
func TestMeshesWithFaults(t *testing.T) {
	n := *seeds
	if testing.Short() {
		n /= 4
	}
	for i := range n {
		seed := *firstSeed + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			cfg := drawn(seed)
			r, err := Run(t.Context(), cfg)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for _, v := range r.Violations {
				t.Errorf("%v\nreplay: go test -run TestMeshesWithFaults ./bench/sim -sim-seeds 1 -sim-seed %d\n%s", v, seed, describe(cfg))
			}
			if r.LetIn+r.GaveUp+r.TurnedAway != r.Visitors || r.Visitors == 0 {
				t.Errorf("seed %d: of %d visitors %d were let in, %d gave up, %d were turned away", seed, r.Visitors, r.LetIn, r.GaveUp, r.TurnedAway)
			}
		})
	}
}

func describe(c Config) string {
	return fmt.Sprintf("%d sites × %d nodes, %s %s, %d active, %d per minute, sessions of %v, faults %+v",
		c.Sites, c.Nodes, c.Room.Policy, c.Room.QueueingMethod, c.Room.TotalActiveUsers, c.Room.NewUsersPerMinute, c.Room.SessionDuration, c.Faults)
}

// drawn is a mesh with a crowd and troubles of its own.
func drawn(seed uint64) Config {
	rng := rand.New(rand.NewPCG(seed, 99))
	pick := func(from, to int) int { return from + rng.IntN(to-from+1) }
	span := func(from, to time.Duration) time.Duration { return from + time.Duration(rng.Int64N(int64(to-from)+1)) }
	cfg := Config{
		Seed: seed, Sites: pick(1, 3), Nodes: pick(1, 3),
		Room: room.Settings{
			TotalActiveUsers: pick(1, 30), NewUsersPerMinute: pick(10, 120),
			SessionDuration: span(10*time.Second, 40*time.Second).Round(time.Second),
			QueueingMethod:  []room.Method{room.FIFO, room.FIFO, room.Random}[rng.IntN(3)],
			Policy:          []room.Policy{room.Even, room.Curve, room.Counter, room.Open}[rng.IntN(4)],
			RefreshInterval: time.Duration(pick(4, 12)) * time.Second,
			BucketSpan:      time.Duration(pick(5, 60)) * time.Second,
		},
		Arrivals: Counts{Every: 30 * time.Second, N: []int{pick(1, 30), pick(0, 30)}},
		Stay:     span(0, 30*time.Second), Think: 5 * time.Second, Uneven: rng.Float64(),
		Roam: rng.Float64() / 4, Abandon: rng.Float64() / 4, Lost: rng.Float64() / 20,
		Network: Network{
			Delay: span(time.Millisecond, 200*time.Millisecond), Jitter: rng.Float64() / 2,
			Loss: rng.Float64() / 10, Duplicate: rng.Float64() / 10, Reorder: rng.Float64() / 10,
		},
		Clocks: Clocks{Offset: 200 * time.Millisecond, Drift: 1e-4},
	}
	for range pick(0, 3) {
		cfg.Faults = append(cfg.Faults, drawnFault(rng, cfg, span(0, time.Minute), span(time.Second, 20*time.Second)))
	}
	return cfg
}

func drawnFault(rng *rand.Rand, cfg Config, from, long time.Duration) Fault {
	kinds := slices.DeleteFunc(FaultKinds(), func(k FaultKind) bool { return k == Policy }) // these are never under escrow
	f := Fault{Kind: kinds[rng.IntN(len(kinds))], Site: 1 + rng.IntN(cfg.Sites), From: from, For: long}
	if f.Kind == HandOver {
		f.Kind = Leave // who never comes back might leave visitors to nobody
	}
	if f.Kind == Remake && cfg.Room.Policy != room.Escrow {
		f.Kind = Crash
	}
	between := f.Kind == Partition || f.Kind == Link
	if between && cfg.Sites == 1 {
		f.Kind, between = Pause, false
	}
	switch {
	case between && rng.IntN(2) == 0:
		f.Peer = 1 + f.Site%cfg.Sites
	case f.Kind != Link && rng.IntN(3) > 0:
		f.Node = 1 + rng.IntN(cfg.Nodes)
	}
	switch f.Kind {
	case Skew:
		f.By = time.Duration(rng.Int64N(int64(time.Second))) - 500*time.Millisecond + 1
	case Link:
		f.By, f.Loss = 300*time.Millisecond, 0.3
	case DiskSlow:
		f.By = time.Duration(1 + rng.Int64N(int64(5*time.Second)))
	case Join, Declare:
		f.For = 0
	case Limits:
		f.For, f.Active, f.Rate = 0, 1+rng.IntN(30), 10+rng.IntN(110)
	}
	f.OneWay = between && rng.IntN(3) == 0
	return f
}
