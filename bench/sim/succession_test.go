package sim

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// raised is a mesh of three sites of one node in which the limit is raised at one of them, and
// another, which mints, leaves for good some time after that. It is killed after so long, which
// is about when its heir has what it had.
func raised(seed uint64, after, killed time.Duration) Config {
	at := 20 * time.Second
	return Config{
		Seed: seed, Sites: 3, Nodes: 1,
		Room: room.Settings{
			Policy: room.Escrow, TotalActiveUsers: 20, NewUsersPerMinute: 1000,
			SessionDuration: 30 * time.Second, RefreshInterval: time.Second,
		},
		Arrivals: Counts{Every: 30 * time.Second, N: []int{60, 60}},
		Stay:     time.Minute, Think: 3 * time.Second,
		Faults: []Fault{
			{Kind: Limits, Site: 2, From: at, Active: 40},
			{Kind: HandOver, Site: 1, From: at + after, For: killed},
		},
	}
}

// TestWhoTakesOverMintsWhatIsMissing: the successor of a minter that has just minted may not
// mint the same again. Those that went by what they had heard of its minting did, and three of
// these let in more than the limit.
func TestWhoTakesOverMintsWhatIsMissing(t *testing.T) {
	t.Parallel()
	for _, ms := range [][2]time.Duration{{400, 300}, {500, 150}, {500, 200}, {500, 300}, {600, 100}} {
		for seed := range quarter(3) {
			r := simulate(t, raised(seed+1, ms[0]*time.Millisecond, ms[1]*time.Millisecond))
			if r.PeakActive < 20 || r.LetIn < 60 {
				t.Errorf("%d were inside at most, %d let in: too little for this to tell anything", r.PeakActive, r.LetIn)
			}
		}
	}
}

// TestALostMintersRateIsNotMintedAgain: the limit of new users is raised, whoever mints follows it, is
// cut off and lost, and its heir knows nothing of that. Sessions are short, so that they are
// over long before those who were let in by the rights of the lost one have stopped counting.
func TestALostMintersRateIsNotMintedAgain(t *testing.T) {
	t.Parallel()
	for _, cut := range []time.Duration{500, 600, 700} {
		at := 30 * time.Second
		for seed := range quarter(2) {
			r := simulate(t, Config{
				Seed: seed + 1, Sites: 3, Nodes: 1,
				Room: room.Settings{
					Policy: room.Escrow, TotalActiveUsers: 5000, NewUsersPerMinute: 20,
					SessionDuration: 10 * time.Second, RefreshInterval: time.Second,
				},
				Arrivals: Counts{Every: 90 * time.Second, N: []int{900}},
				Stay:     5 * time.Second, Think: 2 * time.Second,
				Faults: []Fault{
					{Kind: Limits, Site: 2, From: at, Rate: 200},
					{Kind: Partition, Site: 1, From: at + cut*time.Millisecond, For: 12 * time.Second},
					{Kind: Wipe, Site: 1, From: 40 * time.Second, For: time.Minute},
					{Kind: Declare, Site: 1, From: 47 * time.Second},
				},
			})
			if r.PeakMinute < 100 {
				t.Errorf("%d were let in within a minute at most: too few for this to tell anything", r.PeakMinute)
			}
		}
	}
}

// quarter is how many of n seeds are run: a quarter of them, and one at least, in short.
func quarter(n uint64) uint64 {
	if testing.Short() {
		return max(n/4, 1)
	}
	return n
}
