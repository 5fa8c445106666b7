package agreement

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/tiers/single"
	"github.com/ropeline/ropeline/node/catalog"
)

// TestActsHoldOrAreOverruled is the law, in some of the sequences that ropeline-bench agreement runs.
func TestActsHoldOrAreOverruled(t *testing.T) {
	single.Goroutine(t)
	s := Set{N: 50, Seed: 1, Workers: 2}
	tally := s.Run(t.Context(), func(_ int, q Sequence, r *Result) {
		if len(r.Violations) > 0 {
			t.Errorf("seed %d: %s", q.Seed, strings.Join(r.Violations, "\n"))
		}
	})
	if tally.Answered < 350 || tally.Named == 0 || tally.Troubles < 80 {
		t.Errorf("%+v: these sequences show nothing", tally)
	}
}

// cases are sequences that once broke the law.
var cases = map[string][]Step{
	"a room is deleted and, before the other node hears that, changed": {
		{MakeRoom, 0, 0, 1, 0}, {DropRoom, 0, 1, 1, 2500 * time.Millisecond}, {ChangeRoom, 1, 1, 4, 20 * time.Millisecond},
	},
	"both limits are changed at once, each at another node": {{ChangeRoom, 0, 0, 8, 0}, {ChangeRoom, 1, 0, 9, 5 * time.Millisecond}},
	"a rate limit of the file is deleted, and a node joins with that file": {
		{DropLimit, 0, 0, 1, 0}, {Join, 0, 0, 1, 2500 * time.Millisecond},
	},
	"a page is replaced, and the message changed elsewhere": {
		{GivePage, 0, 0, 100, 0}, {GivePage, 0, 0, 200, 2500 * time.Millisecond}, {ChangeRoom, 1, 0, 13, 20 * time.Millisecond},
	},
	"two rules are moved at once, each at another node": {
		{MakeRule, 0, 0, 1, 0}, {MakeRule, 0, 0, 1, 0}, {MakeRule, 0, 0, 1, 0}, {MoveRule, 0, 0, 2, 2500 * time.Millisecond}, {MoveRule, 1, 0, 0, 5 * time.Millisecond},
	},
	"changes are made at a node whose clock is ahead, and that starts again with the right one": {
		{CutNode, 0, 0, 0, 0},
		{WrongTime, 0, 0, 1, 0},
		{MakeRoom, 0, 0, 1, time.Second},
		{ChangeRoom, 0, 0, 8, 0},
		{Heal, 0, 0, 0, 2 * time.Second},
		{ChangeRoom, 1, 0, 8, 2 * time.Second},
	},
	"changes are made at a node whose clock is ahead, and that starts again with one that is ahead by more, and then with the right one": {
		{ChangeLimit, 5, 0, 4, 0},
		{CutSite, 5, 0, 0, 2500 * time.Millisecond},
		{WrongTime, 5, 0, 997, 0},
		{ChangeLimit, 5, 0, 8, 5 * time.Second},
		{MakeLimit, 5, 0, 1, 100 * time.Millisecond},
		{WrongTime, 5, 0, 898, 3500 * time.Millisecond},
	},
	"deletions are forgotten while a node is out of reach, and after it is back": {
		{CutNode, 1, 0, 0, 0}, {DropLimit, 0, 0, 1, 2500 * time.Millisecond}, {Pause, 0, 0, 1, 0}, {Heal, 0, 0, 0, 0}, {Pause, 0, 0, 900, 0}, {Join, 0, 0, 0, 0},
	},
	"a node joins and is cut off before others hear of it, and deletions are forgotten": {
		{MakeLimit, 0, 0, 1, 0},
		{Join, 0, 1, 2, 2500 * time.Millisecond},
		{CutNode, 11, 0, 0, 540 * time.Millisecond},
		{DropLimit, 0, 1, 1, 2500 * time.Millisecond},
		{Pause, 0, 0, 900, 0},
		{Heal, 0, 0, 0, 0},
	},
	"a node joins, is cut off while it does, and starts again before it has heard all": {
		{MakeLimit, 0, 0, 1, 0},
		{Join, 0, 1, 2, 2500 * time.Millisecond},
		{CutNode, 11, 0, 0, 440 * time.Millisecond},
		{Restart, 11, 0, 1, 0},
		{DropLimit, 0, 1, 1, 2500 * time.Millisecond},
		{Pause, 0, 0, 900, 0},
		{Heal, 0, 0, 0, 0},
	},
	"a node leaves with what it was just told": {{ChangeRoom, 1, 0, 8, 0}, {Leave, 1, 0, 0, 0}, {DropLimit, 0, 0, 1, 0}},
	"the content of a rate limit is replaced, and its limit changed elsewhere": {
		{ChangeLimit, 0, 0, 3, 0}, {ChangeLimit, 0, 0, 7, 2500 * time.Millisecond}, {ChangeLimit, 1, 0, 4, 20 * time.Millisecond},
	},
}

func TestWhatOnceBroke(t *testing.T) {
	single.Goroutine(t)
	for name, steps := range cases {
		for _, layout := range []string{"ab", "aab"} {
			q := Sequence{Seed: 1, Layout: layout, Steps: steps}
			if r := q.Run(true, nil); len(r.Violations) > 0 || r.Answered == 0 {
				t.Errorf("%s: %d acts were answered; %s\n%s", name, r.Answered, strings.Join(r.Violations, "\n"), strings.Join(r.Trace, "\n"))
			}
		}
	}
}

// TestBrokenRulesAreNoticed has operators' acts write what they must not, and wants that found in a few sequences.
func TestBrokenRulesAreNoticed(t *testing.T) {
	single.Goroutine(t)
	for name, fault := range map[string]Fault{
		"a change makes the room again":   func(cat *catalog.Catalog, _, is *catalog.Room) []catalog.Write { return cat.Writes(nil, is) },
		"an answered change is forgotten": func(*catalog.Catalog, *catalog.Room, *catalog.Room) []catalog.Write { return nil },
		"a change takes others back": func(cat *catalog.Catalog, was, is *catalog.Room) []catalog.Write {
			if is != nil {
				is = is.Clone()
				is.Description = "of yesterday"
			}
			return cat.Writes(was, is)
		},
	} {
		if !slices.ContainsFunc([]uint64{1, 2, 3, 4, 5, 6, 7, 8}, func(seed uint64) bool { return len(Draw(seed).Run(false, fault).Violations) > 0 }) {
			t.Errorf("%s: nothing is found in eight sequences", name)
		}
	}
}

// TestReduceKeepsWhatFails has a sequence reduced, and wants the few steps that break the law.
func TestReduceKeepsWhatFails(t *testing.T) {
	single.Goroutine(t)
	forget := func(*catalog.Catalog, *catalog.Room, *catalog.Room) []catalog.Write { return nil }
	q := Sequence{Seed: 1, Layout: "ab", Steps: []Step{{MakeRoom, 0, 0, 1, 0}, {ChangeRoom, 0, 0, 8, 0}, {MakeLimit, 1, 0, 1, 0}}}
	if less := Reduce(q, forget); len(less.Steps) != 1 || less.Steps[0].Do != ChangeRoom {
		t.Errorf("got %v, want the change alone", less.Steps)
	}
}
