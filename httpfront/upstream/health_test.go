package upstream

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var (
	testPassive = Passive{Failures: 3, Ejection: 10 * time.Second, EjectionMax: 40 * time.Second}
	testCheck   = Check{Healthy: 2, Unhealthy: 3}
)

// TestHealthStories tells what happens, word by word, and looks at the state
// after each.
func TestHealthStories(t *testing.T) {
	for name, story := range map[string]string{
		"one failure is nothing":         "fail:in ok:in fail:in fail:in ok:in fail:in fail:in",
		"three in a row eject":           "fail:in fail:in fail:ejected,goes-out",
		"and pass":                       "fail fail fail:ejected +10s:trial try:trial ok:in,comes-in",
		"a failed trial ejects longer":   "fail fail fail:ejected +10s try fail:ejected +19s:ejected +1s:trial try fail +40s:trial try fail +39s:ejected +1s:trial",
		"late failures say nothing":      "fail fail fail:ejected fail fail fail +10s:trial",
		"an answer ends an ejection":     "fail fail fail:ejected ok:in,comes-in",
		"a trial without a result":       "fail fail fail +10s try +9s:trial +1s:trial try ok:in",
		"soon again is longer":           "fail fail fail +10s try ok:in +5s fail fail fail:ejected +10s:ejected +10s:trial",
		"much later is as at first":      "fail fail fail +10s try ok:in +10s fail fail fail:ejected +10s:trial",
		"bad checks bring it down":       "bad bad:in bad:down,goes-out +1h:down",
		"good ones between do not":       "bad bad good bad bad:in",
		"good checks bring it up":        "bad bad bad:down good:down bad:down good:down good:in,comes-in",
		"answers do not":                 "bad bad bad:down ok:down ok:down",
		"good checks end an ejection":    "good good fail fail fail:ejected good:ejected good:in,comes-in",
		"ejected and down":               "fail fail fail:ejected,goes-out bad bad bad:down +10s:down good good:in,comes-in",
		"down and ejected":               "bad bad bad:down,goes-out fail fail fail:down good good:in,comes-in",
		"down, ejected, and an answer":   "bad bad bad fail fail fail ok:down good good:in,comes-in",
		"errors alone do nothing":        "err err err err err err err err err err err err:in",
		"probes alone do nothing":        "ill*20:in err ill*9:in ok ill*20:in",
		"probes settle a doubt":          "err ill*9:in ill:ejected,goes-out ill:ejected err:ejected well:in,comes-in",
		"a good one ends it":             "err ill*9 well ill*9:in err ill*9:in ill:ejected,goes-out",
		"half of all":                    "err ill*5 well err ill*3 ok err ill*9 well err ill*9:in",
		"a failure is a doubt":           "fail ill*10:ejected,goes-out ok:in,comes-in",
		"probes that are always bad":     "ok*16 ill*10:in err ill*20:in err ill*20:in fail fail fail:ejected,goes-out",
		"until one is good":              "ok*16 ill*10 err well err ill*10:ejected,goes-out",
		"they are tried once":            "ok*16 well ok ill*20 ok err ill*9:in ill:ejected,goes-out",
		"a doubt comes first":            "ok*16 ill*9 err ill*9:in ill:ejected,goes-out",
		"bad since the site was changed": "ok*16 well err ill*10:ejected ok:in,comes-in ill*10:in err ill*10:in",
		"no answer":                      "well slow slow slow slow:in lost:in slow lost:ejected,goes-out lost slow:ejected ok:in,comes-in",
		"slow, also to probes":           "ok*16 lost:in slow lost lost:in err lost lost:in well slow lost lost:ejected,goes-out",
		"slow from the start":            "slow lost*2:in ok*15 lost*2 slow lost*2:in fail fail fail:ejected",
		"a slow page":                    "ok*16 well slow well:in lost lost:in slow lost ok lost:in",
		"an error ends no ejection":      "fail fail fail err:ejected +10s try err:ejected +19s:ejected +1s:trial try ok:in,comes-in",
		"back before many were served":   "fail fail fail:ejected ok:in,comes-in ok ill*10:in err ill*10:in",
		"soon in doubt again":            "err ill*10 well:in err ill*10:ejected +10s:ejected +10s:trial",
		"failures are forgotten outside": "bad bad bad:down fail fail good good:in fail fail:in fail:ejected",
	} {
		t.Run(name, func(t *testing.T) { tellStory(t, story) })
	}
}

// happens has an event happen, or, where it is "+10s", time pass.
func (h *health) happens(event string, now *time.Time) change {
	switch event {
	case "ok":
		return h.succeed(*now)
	case "fail":
		return h.fail(&testPassive, *now)
	case "err":
		return h.err(&testPassive, *now)
	case "well":
		return h.probe(&testPassive, 0, *now)
	case "ill":
		return h.probe(&testPassive, aBadProbe, *now)
	case "lost":
		return h.probe(&testPassive, aLostProbe, *now)
	case "slow":
		return h.wait(*now)
	case "good", "bad":
		return h.check(&testCheck, event == "good", *now)
	case "try":
		h.try(*now)
	default:
		*now = now.Add(must(time.ParseDuration(event)))
	}
	return stays
}

func tellStory(t *testing.T, story string) {
	var h health
	now := start
	for step, word := range strings.Fields(story) {
		event, want, checked := strings.Cut(word, ":")
		if event == "try" && !h.isDue(now) {
			t.Fatalf("step %d: no trial is due", step+1)
		}
		event, times, _ := strings.Cut(event, "*")
		got := h.happens(event, &now)
		for n, _ := strconv.Atoi(times); n > 1; n-- {
			got = h.happens(event, &now)
		}
		state, changed, _ := strings.Cut(want, ",")
		if checked && (h.state(now) != state || changed != "" && got != map[string]change{"goes-out": goesOut, "comes-in": comesIn}[changed]) {
			t.Fatalf("step %d, %s: the origin is %s (change %d): %+v", step+1, word, h.state(now), got, h)
		}
	}
}

// TestHealthLaws holds what is true after any story.
func TestHealthLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h health
		now := start
		ill, wrong := 0, false // probes in a row, and whether a request went badly before
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			before := h
			pause := fmt.Sprintf("%ds", rapid.IntRange(0, 60).Draw(t, "pause"))
			event := rapid.SampledFrom([]string{"ok", "fail", "err", "slow", "well", "ill", "ill", "try", "good", "bad", pause}).Draw(t, "event")
			if event == "try" && !h.isDue(now) {
				continue
			}
			got := h.happens(event, &now)
			switch event {
			case "ok", "well":
				ill, wrong = 0, false
			case "fail", "err", "slow":
				wrong = true
			case "ill":
				ill++
			}
			want := stays
			switch {
			case !before.isOut() && h.isOut():
				want = goesOut
			case before.isOut() && !h.isOut():
				want = comesIn
			}
			switch {
			case got != want:
				t.Fatalf("%s told of change %d, want %d: %+v became %+v", event, got, want, before, h)
			case !h.until.IsZero() && h.until.Sub(now) > testPassive.EjectionMax:
				t.Fatalf("%s: ejected for another %v: %+v", event, h.until.Sub(now), h)
			case got == goesOut && (event == "err" || event == "slow" || event == "ill" && (ill < badProbes || !wrong)):
				t.Fatalf("%s takes it out, after %d bad probes: %+v became %+v", event, ill, before, h)
			case (event == "ok" || event == "well") && !h.down && h.isOut():
				t.Fatalf("an answer leaves it out: %+v", h)
			case want == comesIn && !h.since.Equal(now):
				t.Fatalf("came in without the time: %+v", h)
			case !h.isOut() && h.failures >= testPassive.Failures || h.trying && h.until.IsZero():
				t.Fatalf("impossible: %+v", h)
			}
		}
	})
}
