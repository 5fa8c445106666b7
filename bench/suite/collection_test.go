package suite

import (
	"testing"
	"time"
)

func TestCollectingIsWhatGoSays(t *testing.T) {
	const log = `time=2026-11-24T09:29:48Z level=INFO msg="gc 1 is no line of Go"
gc 5 @1.234s 2%: 0.018+1.2+0.003 ms clock, 0.5+0.25/1.1/7+0.15 ms cpu, 4->4->1 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 1 P
gc 6 @1.3s 2%: 0+0+0 ms clock, 1+0/0/0+1 ms cpu, 4->4->1 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 1 P (forced)
gc 7 @1.4s 2%: cut off`
	if got, want := collecting(log), 4*time.Millisecond; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestHalfOfARateThatWasNotMeasured(t *testing.T) {
	h := harness{samples: map[string][]sample{"nginx": {{perSecond: 80_000}, {perSecond: 100_000}}}}
	if got, err := h.due(entry{halfOf: "nginx"}); err != nil || got != 50_000 { // of the last round
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := h.due(entry{halfOf: "HAProxy"}); err == nil {
		t.Error("it is missing, and has a rate")
	}
}
