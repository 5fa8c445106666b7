package boot

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/node/bootstrap"
)

// replay has a history happen, and returns what is broken by it, also when all has come to rest;
// "": nothing.
func replay(m *model, history []string) (broken string, err error) {
	w := m.root()
	for _, event := range history {
		happened := false
		m.each(w, func(e move, next world, is string) bool {
			if happened = m.text(e) == event; happened {
				w, broken = next, is
			}
			return !happened
		})
		switch {
		case broken != "":
			return broken, nil
		case !happened:
			return "", fmt.Errorf("%q cannot happen there, or changes nothing", event)
		}
	}
	return m.unsettled(w), nil
}

// anything is a world in which all may happen that takes no third node that is named.
func anything(joins bool) *model {
	return newModel(Config{Named: 2, Joins: joins, Restarts: 255, Losses: 255})
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
		r := c.Search(t.Context(), 0)
		if r.Broken != "" || !r.Whole {
			t.Errorf("%+v: %q after %d states, all of them: %v\n%s", c, r.Broken, r.States, r.Whole, strings.Join(r.Trace, "\n"))
		}
		if r.States < 500 {
			t.Errorf("%+v: only %d states", c, r.States)
		}
	}
}

// lateAnswersCount has answers to questions of earlier rounds count. That they do not is what the
// nonce is for.
func lateAnswersCount(m *model) { m.late = true }

// saidBeforeWritten has a node with an empty disk say to the minter that it holds its record.
func saidBeforeWritten(m *model) {
	m.gets = func(to *host, x bootstrap.Message) bootstrap.Message {
		if is := to.disk.Record; x.Holds.Mesh.IsZero() && is.Minter == m.self(to) {
			x.Holds = is
		}
		return x
	}
}

// TestFaultsAreFound does something wrong to messages, and has the search say what then happens.
// What it prints happens again.
func TestFaultsAreFound(t *testing.T) {
	for _, c := range []struct {
		Config
		fault func(*model)
		rest  int
		want  string
	}{
		{Config{Named: 2, Order: "12", Losses: 1}, lateAnswersCount, 1, "holds the mesh of a1's disk 2"},
		{Config{Named: 2, Order: "21", Losses: 1}, saidBeforeWritten, settledEvery, "and another one has minted before"},
	} {
		m := newModel(c.Config)
		c.fault(m)
		r := m.search(t.Context(), 0, c.rest)
		if !strings.Contains(r.Broken, c.want) {
			t.Errorf("%+v: got %q after %d states, which are all: %v; want %q", c.Config, r.Broken, r.States, r.Whole, c.want)
			continue
		}
		again := newModel(c.Config)
		c.fault(again)
		if broken, err := replay(again, r.Trace); err != nil || broken != r.Broken {
			t.Errorf("%q: got %q, %v, want %q", r.Trace, broken, err, r.Broken)
		}
	}
}

// TestOrderOfIDsMakesNoDifference: as many states are found in each.
func TestOrderOfIDsMakesNoDifference(t *testing.T) {
	states := map[int]bool{}
	for _, order := range Orders(2) {
		for _, falling := range []bool{false, true} {
			states[Config{Named: 2, Losses: 1, Order: order, Falling: falling}.Search(t.Context(), 0).States] = true
		}
	}
	if len(states) != 1 {
		t.Errorf("got %v states, want one number", states)
	}
	if got := len(Orders(4)); got != 24 {
		t.Errorf("got %d orders of four ids, want 24", got)
	}
}

// TestLateQuestion replays what the search found once: a2 said that the disk of its minter was
// gone, since the question of the disk before it came late.
func TestLateQuestion(t *testing.T) {
	const history = "a1: a round passes; a1: a round passes; a1: tick; a1: lose the disk, and start; " +
		"a1: a round passes; a1: a round passes; a1: tick; a2: receive question of a1's disk 2, which holds nothing; " +
		"a1: receive answer of a2, which holds nothing; a1: save; a2: receive answer of a1's disk 2, which holds the mesh of a1's disk 2; a2: save; " +
		"a2: receive late question of a1, which holds nothing"
	if broken, err := replay(anything(false), strings.Split(history, "; ")); err != nil || broken != "" {
		t.Errorf("got %q, %v", broken, err)
	}
}

// TestPromiseOfALostDisk replays what the search found once: a2 took from x what the first disk of
// a1 had promised, after it had said to the second that it holds nothing.
func TestPromiseOfALostDisk(t *testing.T) {
	const before = "a1: a round passes; a1: a round passes; a1: tick; a1: tick without x; " +
		"a2: receive question of a1, which holds nothing; a1: receive answer of a2, which holds nothing; a1: save; a1: lose the disk, and start; " +
		"a1: a round passes; a1: a round passes; a1: tick without x; a2: receive question of a1's disk 2, which holds nothing; " +
		"x: receive answer of a1, which holds the mesh of a1; x: save"
	if broken, err := replay(anything(true), strings.Split(before, "; ")); err != nil || broken != "" {
		t.Errorf("got %q, %v", broken, err)
	}
	broken, err := replay(anything(true), strings.Split(before+"; a2: receive answer of x, which holds the mesh of a1", "; "))
	if broken != "" || err == nil || !strings.Contains(err.Error(), "changes nothing") {
		t.Errorf("got %q, %v; want that a2 does not take it", broken, err)
	}
}
