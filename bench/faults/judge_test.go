//go:build linux

package faults

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/faults/check"
	"github.com/ropeline/ropeline/bench/faults/record"
)

// TestFullnessLeavesTheLimitAlone gives a place again while it rests: that makes the
// room fuller than it can be, and not one visitor too many.
func TestFullnessLeavesTheLimitAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a1.rec")
	w, err := record.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, at := range []time.Duration{time.Second, time.Second, 2*time.Second + guard/2} {
		n := uint64(i + 1)
		w.Add(record.Event{Kind: record.Entered, Room: 1, Anchor: 7, Boot: 1, Seq: n, Visitor: n << 32, At: int64(at), Left: time.Second})
	}
	f, err := judge([]record.Source{{Node: "a1", Path: path}}, roomArgs{session: time.Second}, check.Limits{{Active: 2, PerMinute: 10}})
	if err != nil {
		t.Fatal(err)
	}
	if f.active.Peak != 2 || f.active.Over != 0 || len(f.strict) != 0 || len(f.broken) != 0 {
		t.Errorf("got %d active, %q, %q; want 2 active and nothing wrong", f.active.Peak, f.strict, f.broken)
	}
	if f.taken.Peak != 3 || f.resting.Peak != 3 {
		t.Errorf("got %d places taken, %d without requests; want 3 and 3", f.taken.Peak, f.resting.Peak)
	}
}

func TestRoomHasToGetFull(t *testing.T) {
	for _, of := range []struct {
		active, taken, lost int
		want                string // "": nothing is wrong
	}{
		{185, 194, 0, ""},
		{185, 200, 0, ""},
		{193, 193, 0, "never more than 193"},
		{200, 201, 0, "count as taken"},
		{194, 194, 1, "lost their session"},
	} {
		r := &run{options: options{policy: escrow, out: t.Output()}, found: &findings{taken: check.Taken{Peak: of.taken}}}
		r.Room, r.loaded.SessionsLost = roomArgs{active: 200}, of.lost
		wrong := strings.Join(checkFull(r), "; ")
		if (wrong == "") != (of.want == "") || !strings.Contains(wrong, of.want) {
			t.Errorf("%d taken, %d lost: got %q, want %q", of.taken, of.lost, wrong, of.want)
		}
	}
}
