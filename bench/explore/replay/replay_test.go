package replay

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/ticket"
)

func parse(t *testing.T, text string) History {
	t.Helper()
	h, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func run(t *testing.T, text string, leaveOut ticket.Rules) Result {
	t.Helper()
	r, err := Run(parse(t, text), leaveOut, nil)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return r
}

// TestTextOfHistories: what is printed is read again as the same.
func TestTextOfHistories(t *testing.T) {
	for _, text := range []string{
		"abc/123: raise@2",
		"aab/312: raise@2, m leave@1, t kill@1",
		"rate ab/12: raise@2, 1 dead@1>2",
		"ab/21: dead@1>2, s policy@2, 1 remake@2, lower@2, restart@2 | lost transfer 1>2 #1; before write 2 #3; cut links 1 #1",
	} {
		if got := parse(t, text).String(); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
	}
	for _, text := range []string{
		"", "abc", "abc/124: raise@1", "abc/12: raise@1", "ab/12: raise@3", "ab/12: fly@1", "ab/12: x raise@1", "ab/12: dead@1", "ab/12: dead@1>1",
		"ab/12: raise@1 | lost", "ab/12: raise@1 | lost nothing 1>2 #1", "ab/12: raise@1 | before write 3 #1", "ab/12: raise@1 | late facts 1>2 #x",
	} {
		if h, err := Parse(text); err == nil {
			t.Errorf("%q is read as %s, want an error", text, h)
		}
	}
}

// TestMinterThatRaisesAndLeaves: the one that makes rights has just made more when it leaves.
// Its successor knows of that by the ledger it takes over, and not only by hearsay.
func TestMinterThatRaisesAndLeaves(t *testing.T) {
	for _, text := range []string{"ab/12: raise@2, m leave@1 | late facts 1>2 #1", "aab/123: raise@2, leave@1 | lost facts 1>2 #1", "aab/123: raise@2, m leave@1, t kill@1 | lost facts 1>2 #1"} {
		if r := run(t, text, 0); r.Broken != "" || r.Useless || r.Peak != 2*firstCap {
			t.Errorf("%s: %q, useless: %v, %d inside; want nothing of it and %d", text, r.Broken, r.Useless, r.Peak, 2*firstCap)
		}
		if r := run(t, text, ticket.FreshMint); !strings.Contains(r.Broken, "rights") && !strings.Contains(r.Broken, "inside") {
			t.Errorf("%s, without the rule: %q, want more rights than the limit", text, r.Broken)
		}
	}
}

// TestRulesShow leaves rules out in histories that need them.
func TestRulesShow(t *testing.T) {
	for text, rule := range map[string]ticket.Rules{
		"aab/213: raise@2":             ticket.OneMinter,
		"abc/123: leave@1, s dead@3>2": ticket.FinalLedgers,
	} {
		if r := run(t, text, rule); r.Broken == "" {
			t.Errorf("%s: nothing is wrong without a rule that it needs", text)
		}
		if r := run(t, text, 0); r.Broken != "" {
			t.Errorf("%s: %s", text, r.Broken)
		}
	}
}

// TestSmallHistories runs each act at each node of some meshes, and a few with deviations.
func TestSmallHistories(t *testing.T) {
	for _, h := range singles("abc/213 aab/132 aa/21", false) {
		r := run(t, h.String(), 0)
		if r.Broken != "" {
			t.Errorf("%s: %s", h, r.Broken)
		}
		if most := int64(firstCap); r.Peak < most {
			t.Errorf("%s: %d are inside at most: the crowd does not use the %d rights that there are", h, r.Peak, most)
		}
	}
	for _, text := range []string{
		"abc/123: raise@2 | lost facts 2>1 #1; twice transfer 1>2 #1",
		"abc/123: leave@1 | before write 2 #1",
		"aab/321: dead@1>3, t dead@3>2 | cut links 3 #1", // nobody is told of those who die while one is cut off
		"abc/123: remake@1, s kill@1 | cut links 1 #1",   // nobody else has heard of the new room
		"aab/321: dead@3>2, m lower@1, leave@2",          // whoever recovered and its heir both say that they did
		"ab/12: lower@1, t policy@2",                     // while rights limit nothing nobody burns those that are too many
		"ab/12: lower@1, t policy@2, policy@1",
		// A gift to a node that has left before it heard of the new room, and whose heir said so first.
		"abcd/1432: raise@4, 1 restart@1, s lower@1, m remake@4, m leave@3 | before write 1 #5",
	} {
		if r := run(t, text, 0); r.Broken != "" {
			t.Errorf("%s: %s", text, r.Broken)
		}
	}
}

// TestJudgeKnowsLimits gives the judge visitors that nobody may have let in.
func TestJudgeKnowsLimits(t *testing.T) {
	w := newWorld(parse(t, "ab/12: raise@1"), 0, nil)
	m := w.nodes[0]
	w.now = 1
	w.judge.limits[w.room] = []*limit{{most: 3, until: w.now}, {most: 2}}
	let := func(n int) string {
		w.result.Broken = ""
		w.judge.sessions = nil
		for range n {
			w.judge.sessions = append(w.judge.sessions, &session{room: w.room, from: w.now, pass: node.Pass{LeaseEnd: w.time().Add(sessionLength)}})
		}
		w.judge.admitted(w.judge.sessions[0], m)
		return w.result.Broken
	}
	for _, n := range w.nodes {
		n.core = nil // which is not ready, and would be in the way of news
	}
	if got := let(3); got != "" {
		t.Errorf("just after the limit was lowered from 3: %q", got)
	}
	w.now += heard
	if got := let(3); got != "" {
		t.Errorf("when news may just have come: %q", got)
	}
	w.now++
	if got := let(3); !strings.Contains(got, "3 are inside") {
		t.Errorf("3 of 2 two seconds later: %q, want it to be broken", got)
	}
	if got := let(2); got != "" {
		t.Errorf("2 of 2: %q", got)
	}
	w.judge.trouble = w.now
	if got := let(3); got != "" {
		t.Errorf("while something is in the way of news: %q", got)
	}
}

// TestJudgeForgetsLimits: a limit that all have had the time to give up does not come back with
// the next trouble, and rights are compared with none that was in force long ago.
func TestJudgeForgetsLimits(t *testing.T) {
	w := newWorld(parse(t, "ab/12: raise@1"), 0, nil)
	w.run(warmUp)
	w.judge.limits[w.room] = []*limit{{most: 9, until: w.now - 3*time.Second}, {most: 2}}
	if got := w.judge.inForce(w.room, w.now); got != 2 {
		t.Errorf("the greatest limit in force is %d 3 s after 9 was lowered to 2", got)
	}
	if w.judge.disturbed(); w.judge.inForce(w.room, w.now) != 2 {
		t.Error("a limit that was over is in force again since something is in the way of news")
	}
	if w.judge.inForce(w.room, w.now) != 2 || w.judge.inForce(w.room, w.now-2*time.Second) != 9 {
		t.Error("9 was not in force at any time since 2 s, or is now")
	}
	// The late message is the one that says what was minted last.
	const text = "ab/12: raise@2, s raise@2, s raise@2, s lower@2, s lower@2, s raise@2, m leave@1 | late facts 1>2 #76"
	if r := run(t, text, ticket.FreshMint); !strings.Contains(r.Broken, "made rights: there are 18, and the greatest limit in force is 12") {
		t.Errorf("%s, without the rule: %q, want 18 rights of 12", text, r.Broken)
	}
	if r := run(t, text, 0); r.Broken != "" || r.Useless {
		t.Errorf("%s: %q, useless: %v", text, r.Broken, r.Useless)
	}
}

// TestRateIsTheLimit runs histories in which the rate of new users is what is limited.
func TestRateIsTheLimit(t *testing.T) {
	for text, rule := range map[string]ticket.Rules{
		"rate ab/12: raise@2, m leave@1 | late facts 1>2 #1": ticket.FreshMint,
		"rate ab/12: restart@1":                              ticket.RestartCools,
		"rate aa/12: raise@2":                                ticket.RateCools,
	} {
		if r := run(t, text, rule); !strings.Contains(r.Broken, "within 60 s") && !strings.Contains(r.Broken, "rights") {
			t.Errorf("%s, without a rule that it needs: %q", text, r.Broken)
		}
		if r := run(t, text, 0); r.Broken != "" || r.Useless || r.Peak < firstCap {
			t.Errorf("%s: %q, useless: %v, %d let in", text, r.Broken, r.Useless, r.Peak)
		}
	}
	for _, text := range []string{"rate ab/12: raise@2, 1 dead@1>2", "rate abc/123: raise@2, m leave@1, t kill@1"} {
		if r := run(t, text, 0); r.Broken != "" || r.Peak != 2*firstCap {
			t.Errorf("%s: %q, %d let in within 60 s; want nothing of it and %d", text, r.Broken, r.Peak, 2*firstCap)
		}
	}
}

// TestSameHistorySameRun: a history can be run again.
func TestSameHistorySameRun(t *testing.T) {
	h := parse(t, "aab/231: raise@3, 1 restart@1, m leave@2 | late facts 1>3 #1; after write 2 #2")
	var runs [2][]string
	for i := range runs {
		if _, err := Run(h, 0, func(format string, a ...any) { runs[i] = append(runs[i], fmt.Sprintf(format, a...)) }); err != nil {
			t.Fatal(err)
		}
	}
	if len(runs[0]) < 20 || !slices.Equal(runs[0], runs[1]) {
		t.Errorf("two runs of one history differ, of %d and %d lines", len(runs[0]), len(runs[1]))
	}
}

// TestFindingsAreMadeShort: what a history does not need to break a promise is taken out.
func TestFindingsAreMadeShort(t *testing.T) {
	long := parse(t, "aab/321: policy@3, s remake@3, m leave@3 | twice facts 2>1 #1")
	if r, err := Run(long, ticket.FreshMint, nil); err != nil || r.Broken == "" {
		t.Fatalf("%s: %q, %v; want it to be broken", long, r.Broken, err)
	}
	if h := (Search{LeaveOut: ticket.FreshMint}).Shortest(long); len(h.Steps) != 2 || len(h.Twists) != 0 {
		t.Errorf("got %s, want two steps and no deviation", h)
	}
}

// TestPartsAreWhole: what is said to be all histories of one act, or of two, is, and each comes once.
func TestPartsAreWhole(t *testing.T) {
	s := Search{Seed: 7}
	parts := s.Parts()
	for i, want := range []int{388, 388, 48_860, 48_860} {
		seen, n := map[string]bool{}, 0
		for h, ok := s.History(parts[i], 0); ok; h, ok = s.History(parts[i], n) {
			seen[h.String()] = true
			n++
		}
		if len(seen) != want || n != want || parts[i].Drawn() {
			t.Errorf("%s: %d histories, %d of them different, want %d", parts[i].Name, n, len(seen), want)
		}
	}
}

// TestDrawnHistories have as many acts and deviations as is said, and are the same in every run.
func TestDrawnHistories(t *testing.T) {
	s := Search{Seed: 7}
	for _, p := range s.Parts() {
		if !p.Drawn() {
			continue
		}
		acts := len(p.Histories[0].Steps) + p.acts
		for n := range 2 {
			h, _ := s.History(p, n)
			if len(h.Steps) != acts || len(h.Twists) > p.twists || len(h.Twists) == 0 && p.twists > 0 || p.keep != nil && !parting(h) {
				t.Errorf("%s: %s", p.Name, h)
			}
			if again, _ := s.History(p, n); again.String() != h.String() {
				t.Errorf("%s: the same number is %s, and then %s", p.Name, h, again)
			}
		}
	}
	for text, want := range map[string]bool{
		"ab/12: raise@1, leave@1, dead@2>1": true, "ab/12: raise@1, lower@1, leave@1": false, "ab/12: kill@1, leave@1, leave@2": false,
	} {
		if parting(parse(t, text)) != want {
			t.Errorf("%s: %v, want the other", text, !want)
		}
	}
}
