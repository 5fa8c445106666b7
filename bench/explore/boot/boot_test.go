package boot

import (
	"strings"
	"testing"
)

func search(t *testing.T, c Config) Result {
	t.Helper()
	r, err := Search(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestOneMeshInSmallWorlds goes through everything that can happen in worlds that are small
// enough for every run of the tests.
func TestOneMeshInSmallWorlds(t *testing.T) {
	for _, c := range []Config{
		{Named: 2, Restarts: 1, Losses: 2},
		{Named: 1, Joins: true, Losses: 1},
		{Named: 2, Joins: true},
		{Named: 3, Restarts: 1},
	} {
		r := search(t, c)
		if r.Broken != "" || !r.Whole {
			t.Errorf("%v with %s: %q after %d states, all of them: %v\n%s", c, c.Budget(), r.Broken, r.States, r.Whole, c.History(r.Trace))
		}
		if r.States < 500 {
			t.Errorf("%v with %s: only %d states", c, c.Budget(), r.States)
		}
	}
}

// TestFaultsAreFound does something wrong to messages, and has the search say what then happens.
// What it prints runs again, and is all well without the fault.
func TestFaultsAreFound(t *testing.T) {
	for _, c := range []struct {
		Config
		want string
	}{
		{Config{Named: 2, Order: "12", Losses: 1, Rest: 1, Fault: LateAnswersCount}, "holds the mesh of a1's disk 2"},
		{Config{Named: 2, Order: "21", Losses: 1, Fault: SaidBeforeWritten}, "and another one has minted before"},
	} {
		r := search(t, c.Config)
		if !strings.Contains(r.Broken, c.want) {
			t.Errorf("%v: got %q after %d states, which are all: %v; want %q", c, r.Broken, r.States, r.Whole, c.want)
			continue
		}
		history := c.History(r.Trace)
		if again, err := Replay(history, c.Fault); err != nil || again != r.Broken {
			t.Errorf("%s: got %q, %v, want %q", history, again, err, r.Broken)
		}
	}
}

// TestOrderOfIDsMakesNoDifference: as many states are found in each.
func TestOrderOfIDsMakesNoDifference(t *testing.T) {
	states := map[int]bool{}
	for _, order := range Orders(2) {
		for _, falling := range []bool{false, true} {
			states[search(t, Config{Named: 2, Losses: 1, Order: order, Falling: falling}).States] = true
		}
	}
	if len(states) != 1 {
		t.Errorf("got %v states, want one number", states)
	}
	if got := len(Orders(4)); got != 24 {
		t.Errorf("got %d orders of four ids, want 24", got)
	}
}

// TestHistoriesThatCannotBe are refused, and say why.
func TestHistoriesThatCannotBe(t *testing.T) {
	for text, want := range map[string]string{
		"boot 2/12: a1: save":  "cannot happen there",
		"boot 2/13: a1: tick":  "order of ids",
		"boot x/12: a1: tick":  "want it to begin as",
		"boot 2: a1: tick":     "want it to begin as",
		"boot 4+x/1234: tick":  "want it to begin as",
		"boot 2/12/up: a1: no": "want it to begin as",
	} {
		if _, err := Replay(text, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// TestLateQuestion replays what the search found once: a2 said that the disk of its minter was
// gone, since the question of the disk before it came late.
func TestLateQuestion(t *testing.T) {
	const history = "boot 2/12: a1: a round passes; a1: a round passes; a1: tick; a1: lose the disk, and start; " +
		"a1: a round passes; a1: a round passes; a1: tick; a2: receive question of a1's disk 2, which holds nothing; " +
		"a1: receive answer of a2, which holds nothing; a1: save; a2: receive answer of a1's disk 2, which holds the mesh of a1's disk 2; a2: save; " +
		"a2: receive late question of a1, which holds nothing"
	if broken, err := Replay(history, 0); err != nil || broken != "" {
		t.Errorf("got %q, %v", broken, err)
	}
}

// TestPromiseOfALostDisk replays what the search found once: a2 took from x what the first disk of
// a1 had promised, after it had said to the second that it holds nothing.
func TestPromiseOfALostDisk(t *testing.T) {
	const before = "boot 2+x/123: a1: a round passes; a1: a round passes; a1: tick; a1: tick without x; " +
		"a2: receive question of a1, which holds nothing; a1: receive answer of a2, which holds nothing; a1: save; a1: lose the disk, and start; " +
		"a1: a round passes; a1: a round passes; a1: tick without x; a2: receive question of a1's disk 2, which holds nothing; " +
		"x: receive answer of a1, which holds the mesh of a1; x: save"
	if broken, err := Replay(before, 0); err != nil || broken != "" {
		t.Errorf("got %q, %v", broken, err)
	}
	broken, err := Replay(before+"; a2: receive answer of x, which holds the mesh of a1", 0)
	if broken != "" || err == nil || !strings.Contains(err.Error(), "changes nothing") {
		t.Errorf("got %q, %v; want that a2 does not take it", broken, err)
	}
}
