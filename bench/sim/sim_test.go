package sim

import (
	"bytes"
	"encoding/json"
	"runtime"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// small is a run of a few seconds of a small mesh; tests change what they are
// about.
func small(visitors int, over time.Duration) Config {
	n := make([]int, max(1, int(over/time.Minute)))
	for i := range n {
		n[i] = visitors / len(n)
	}
	return Config{
		Seed: 1, Sites: 2, Nodes: 2,
		Room: room.Settings{
			TotalActiveUsers: 60, NewUsersPerMinute: 300, SessionDuration: time.Minute,
			RefreshInterval: 10 * time.Second,
		},
		Arrivals: Counts{Every: time.Minute, N: n},
		Stay:     40 * time.Second, Think: 8 * time.Second,
	}
}

// simulate runs cfg and fails the test on violations.
func simulate(t testing.TB, cfg Config) *Result {
	t.Helper()
	r, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Violations {
		t.Errorf("seed %d: %v", cfg.Seed, v)
	}
	return r
}

func bytesOf(t testing.TB, r *Result) []byte {
	t.Helper()
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSameSeedSameResult(t *testing.T) {
	visitors, arrive := 200, 3*time.Minute
	if testing.Short() {
		visitors, arrive = 100, 2*time.Minute
	}
	plain := small(visitors, arrive)
	bad := small(visitors, arrive)
	bad.Network = Network{Jitter: 0.3, Loss: 0.05, Duplicate: 0.02, Reorder: 0.05}
	bad.Clocks = Clocks{Offset: 100 * time.Millisecond, Drift: 1e-4}
	bad.Roam, bad.Abandon, bad.Lost = 0.1, 0.2, 0.02
	bad.Faults = []Fault{
		{Kind: Crash, Site: 1, Node: 1, From: time.Minute, For: 20 * time.Second},
		{Kind: Partition, Site: 2, From: 90 * time.Second, For: 30 * time.Second},
	}
	random := small(visitors, arrive)
	random.Room.QueueingMethod = room.Random
	for name, cfg := range map[string]Config{"plain": plain, "faults": bad, "random": random} {
		t.Run(name, func(t *testing.T) {
			first := bytesOf(t, simulate(t, cfg))
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			second := bytesOf(t, simulate(t, cfg))
			if !bytes.Equal(first, second) {
				t.Errorf("two runs of seed %d differ:\n%s\n%s", cfg.Seed, first[:800], second[:800])
			}
			cfg.Seed++
			if other := bytesOf(t, simulate(t, cfg)); bytes.Equal(first, other) {
				t.Error("another seed gives the same")
			}
		})
	}
}

// TestListsAreNeverNull is for those who read the result with something else.
func TestListsAreNeverNull(t *testing.T) {
	cfg := small(0, time.Minute)
	cfg.Arrivals = Moments{0, 3 * time.Minute} // and nobody in between
	if b := bytesOf(t, simulate(t, cfg)); bytes.Contains(b, []byte("null")) {
		t.Errorf("there is a null in %s", b)
	}
}
