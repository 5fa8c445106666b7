package schedules

import (
	"flag"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/sim"
	"github.com/ropeline/ropeline/node/ticket"
)

var (
	seeds     = flag.Int("schedules", 40, "how many schedules TestLimitHolds runs")
	firstSeed = flag.Uint64("schedules-seed", 1, "seed of the first one")
)

// TestLimitHolds runs the shipped nodes through schedules of trouble. Only when
// places were short and sessions changed hands has it said anything.
func TestLimitHolds(t *testing.T) {
	n := *seeds
	if testing.Short() {
		n /= 4
	}
	var text strings.Builder
	all := Set{N: n, Seed: *firstSeed, Workers: 2}
	total, err := all.Run(t.Context(), &text, func(*Tally) {})
	if err != nil || total.Failed > 0 {
		t.Fatalf("%v\n%s", err, text.String())
	}
	if total.Schedules != n || total.Full < total.Schedules/4 || total.Rated < total.Schedules/8 || total.Reanchored == 0 || total.Borrowed == 0 {
		t.Errorf("%d schedules; all places taken in %d, the rate used up in %d; %d sessions re-anchored, %d borrowed: they ask too little",
			total.Schedules, total.Full, total.Rated, total.Reanchored, total.Borrowed)
	}
}

// TestSchedulesThatFailedOnce runs those in which something was found, in nodes or in
// what they are judged by: gifts of nodes that left, heirs who left or were lost with
// all who knew, an order to declare a node dead that a crash undid or that was lost with
// the only node that knew, rights that went to nobody, places and passes that were worth
// nothing any more, an order given at a node that was leaving, or had not heard of one that
// had joined or left, answers that let somebody in who had turned to another node, passes
// that became shorter, sessions of which nobody ever heard, a rate right that was ready by
// a part of a millisecond too early, counts of a room that nobody had made again, which
// fade as late as those of any room that a node does not keep. They are as they were drawn
// then. Later ones, with all that is drawn by now: a limit that was lowered, and that whoever
// mints did not follow, in places and in the rate; gifts that were recovered twice; a ticket
// number that a room which was made again had as well; limits that only a node behind a cut
// knew, which was killed or told a lower one; a node that restarted and took one that had
// died for alive; limits that came late, from a node that had died behind a cut, through a third
// site, or not at all, since who was told was about to go; a session of another length at two
// nodes; rights that were recovered twice, with the heirs of two that had left; one that stood still, was cut off
// meanwhile and was taken for alive when it went on; a limit of a room that was not made yet; a longer wait for who was let in, never saw that, and lost
// the session with its anchor; a limit that was lost on its way to another site and came again too late; sessions that were made longer
// while rights limited nothing, and then forgotten by a restart; the limit of a room that was made once more, as the only disk
// that knew of it was lost; and rights that came from a minter of which nobody had heard that it had minted them, before it died.
func TestSchedulesThatFailedOnce(t *testing.T) {
	for _, seed := range []uint64{
		42, 76, 82, 92, 125, 164, 166, 272, 391, 432, 461, 654, 5423, 5515, 6766, 7309, 10186, 200168, 400157, 500874, 620026, 630002, 2006026, 155807, 300439, 301182, 301237, 304199, 404651, 488843,
		4362, 5157, 17240, 17422, 18693, 24480, 25948, 35506, 47965, 49373, 56754,
	} {
		held(t, drawPlain(seed))
	}
	for _, seed := range []uint64{
		657, 6835, 20088, 30057, 40065, 50087, 60139, 60291, 60879, 61611, 100698, 2829, 8512, 21976, 37697,
		50828, 51945, 54132, 302635, 302658, 400829, 402389, 511880, 43458, 49725, 54825, 41135, 41673,
	} {
		held(t, draw(seed))
	}
}

func held(t *testing.T, cfg sim.Config) *sim.Result {
	t.Helper()
	r, err := sim.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if new(Set).tell(&text, cfg, r); text.Len() > 0 {
		t.Error(text.String())
	}
	return r
}

// TestRulesAreMissed leaves out rules that schedules like these catch; the others have
// stories of their own, in node/ticket. It begins where something is soon found.
func TestRulesAreMissed(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while; make test-all runs it")
	}
	for _, x := range []struct {
		name string
		from uint64
	}{
		{"lease-guard", 58},
		{"restart-block", 1},
		{"rate-cools", 2},
		{"restart-cools", 2},
		{"recovery-lock", 62},
		{"one-minter", 38},
		{"give-before-send", 10},
		{"fresh-mint", 88},
	} {
		bits, err := ticket.ParseRules(x.name)
		if err != nil {
			t.Fatal(err)
		}
		caught := false
		all := Set{N: 200, Seed: x.from, LeaveOut: bits, Workers: 2}
		err = sim.RunAll(t.Context(), all.Workers, all.all(), func(_ sim.Config, r *sim.Result) bool {
			caught = len(r.Violations) > 0
			return !caught
		})
		if err != nil || !caught {
			t.Errorf("without %s 200 schedules noticed nothing, %v", x.name, err)
		}
	}
}

// TestStories runs each story a few times, where the places are the limit and where the rate is; in short
// once, every other one of them where the rate is.
func TestStories(t *testing.T) {
	seeds := uint64(2)
	for i, name := range Stories() {
		rated := 0
		for seed := range seeds {
			if testing.Short() && uint64(i)%seeds != seed {
				continue
			}
			cfg := drawOf(seed+1, name)
			r := held(t, cfg)
			if rate := cfg.Room.NewUsersPerMinute; rate < plenty {
				rated++
				if r.PeakMinute < rate {
					t.Errorf("%s: at most %d of %d are let in within 60 s: too few for this to tell anything", name, r.PeakMinute, rate)
				}
			} else if r.PeakActive < 10 {
				t.Errorf("%s: at most %d are inside: too few for this to tell anything", name, r.PeakActive)
			}
		}
		if rated != 1 && !testing.Short() {
			t.Errorf("%s: the rate is the limit in %d of %d; want one", name, rated, seeds)
		}
	}
}

// TestStoriesAreMissed leaves out the rule that a story is about, and wants to see it, in the
// places and in the rate.
func TestStoriesAreMissed(t *testing.T) {
	for _, x := range []struct {
		name  string
		rule  ticket.Rules
		seeds map[uint64]string // and what is broken
	}{
		{"recoverer leaves", ticket.FreshMint, map[uint64]string{3: sim.OverLimit, 7: sim.OverRate}},
	} {
		for seed, kind := range x.seeds {
			without := Set{Story: x.name, LeaveOut: x.rule}
			if r, err := sim.Run(t.Context(), without.draw(seed)); err != nil || !slices.Contains(r.Kinds(), kind) {
				t.Errorf("%s, seed %d,%s: %v; want %s", x.name, seed, x.rule.Flag(), err, kind)
			}
			held(t, drawOf(seed, x.name))
		}
	}
}

// TestStoriesStandForARate: where the rate is the limit, every change of a story is one of the rate.
func TestStoriesStandForARate(t *testing.T) {
	rated, short := 0, 0
	for seed := range uint64(100) {
		cfg := drawOf(seed, "two limits")
		if cfg.Room.NewUsersPerMinute == plenty {
			continue
		}
		rated++
		if cfg.Room.SessionDuration < 15*time.Second {
			short++
		}
		for _, f := range cfg.Faults {
			if f.Kind == sim.Limits && (f.Active != 0 || f.Rate < 2) || cfg.Room.TotalActiveUsers != plenty {
				t.Errorf("seed %d: %+v, in a room for %d", seed, f, cfg.Room.TotalActiveUsers)
			}
		}
	}
	if rated < 35 || rated > 65 || short < 8 {
		t.Errorf("the rate is the limit in %d of 100, in %d of these sessions are short", rated, short)
	}
}

// TestDrawnSchedulesCanBeRun looks at what is drawn, without running it.
func TestDrawnSchedulesCanBeRun(t *testing.T) {
	kinds := map[sim.FaultKind]int{}
	for seed := range uint64(3000) {
		cfg := draw(seed)
		if err := cfg.Check(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if again := draw(seed); !reflect.DeepEqual(cfg, again) {
			t.Fatalf("seed %d draws something else the second time", seed)
		}
		apart := 2 * cfg.Clocks.Offset
		for _, f := range cfg.Faults {
			kinds[f.Kind]++
			if f.Kind == sim.Skew {
				apart += f.By.Abs()
			}
			if f.From+f.For > troubles {
				t.Errorf("seed %d: %+v lasts beyond %v", seed, f, troubles)
			}
		}
		if apart > guarded {
			t.Errorf("seed %d: clocks may be %v apart", seed, apart)
		}
	}
	for _, k := range sim.FaultKinds() {
		if kinds[k] < 50 {
			t.Errorf("%s was drawn %d times in 3000 schedules", k, kinds[k])
		}
	}
}

func TestEveryRuleHasAName(t *testing.T) {
	all := ticket.Rules(0)
	names := map[ticket.Rules]string{
		ticket.LeaseGuard: "lease-guard", ticket.RestartBlock: "restart-block", ticket.GiveBeforeSend: "give-before-send",
		ticket.BoundBeforeUse: "bound-before-use", ticket.OpenBlockOnly: "open-block-only",
		ticket.CountUntilBlockEnds: "count-until-block-ends", ticket.RecoveryLock: "recovery-lock",
		ticket.FinalLedgers: "final-ledgers", ticket.OneMinter: "one-minter", ticket.RateCools: "rate-cools",
		ticket.RestartCools: "restart-cools", ticket.LoanKept: "loan-kept", ticket.BornOnce: "born-once",
		ticket.ReceiveBeforeUse: "receive-before-use", ticket.Fence: "fence", ticket.PauseCheck: "pause-check",
		ticket.FreshMint: "fresh-mint", ticket.MintedWithGifts: "minted-with-gifts",
	}
	for rule, name := range names {
		all |= rule
		if got, err := ticket.ParseRules(name); err != nil || got != rule || got.Flag() != " --leave-out "+name {
			t.Errorf("%s: got %v, %v, %q", name, got, err, got.Flag())
		}
	}
	if len(names) != len(ticket.RuleNames()) {
		t.Errorf("there are %v", ticket.RuleNames())
	}
	if all&(all+1) != 0 || all == 0 {
		t.Errorf("the rules %b have a gap", all)
	}
	if got, err := ticket.ParseRules("fence,one-minter"); err != nil || got != ticket.Fence|ticket.OneMinter {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := ticket.ParseRules("fence,gravity"); err == nil || !strings.Contains(err.Error(), `no rule "gravity"`) {
		t.Errorf("got %v", err)
	}
}

// TestFailuresSayHowToRunThemAgain prints what nobody ran.
func TestFailuresSayHowToRunThemAgain(t *testing.T) {
	all := Set{Story: "heir leaves", LeaveOut: ticket.Fence}
	cfg, r := all.draw(17), new(sim.Result)
	for range 2 * shownViolations {
		r.Violations = append(r.Violations, sim.Violation{Kind: sim.OverLimit, Text: "one too many"})
	}
	r.Violations = append(r.Violations, sim.Violation{Kind: sim.RightsLost})
	var text strings.Builder
	all.tell(&text, cfg, r)
	for _, want := range []string{"seed 17: 11 broken promises (over_limit, rights_lost)", "--seed 17 --story \"heir leaves\" --leave-out fence\n", `"SessionDuration":`, `"kind":"`} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, text.String())
		}
	}
	if n := strings.Count(text.String(), "one too many"); n != shownViolations {
		t.Errorf("%d violations are printed, want %d", n, shownViolations)
	}
	total := Tally{kinds: map[string]int{}}
	total.add(cfg, r)
	total.add(cfg, new(sim.Result))
	if total.Broken() != "over_limit in 1, rights_lost in 1" || total.Failed != 1 || total.Schedules != 2 {
		t.Errorf("got %q, %d failed of %d", total.Broken(), total.Failed, total.Schedules)
	}
}
