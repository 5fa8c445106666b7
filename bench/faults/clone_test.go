//go:build linux

package faults

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/faults/record"
)

// TestTwinsTellGrantsApart has a node of start 3 stop at 10 s beside its copy, and the
// copy at 20 s; grants may rest on either for 5 s more.
func TestTwinsTellGrantsApart(t *testing.T) {
	const mine, other = 7, 8
	for _, of := range []struct {
		what                    string
		kind                    record.Kind
		anchor                  uint64
		boot                    uint32
		at                      time.Duration
		given, late, posthumous int
	}{
		{"a ticket of the original", record.Entered, mine, 3, 9 * time.Second, 0, 0, 0},
		{"one that it had lent", record.Entered, mine, 3, 14 * time.Second, 0, 0, 0},
		{"one that it cannot have lent", record.Entered, mine, 3, 16 * time.Second, 0, 1, 0},
		{"another one for a session", record.Reanchored, mine, 3, 16 * time.Second, 0, 1, 0},
		{"a session of it that the copy keeps", record.Renewed, mine, 3, 16 * time.Second, 0, 0, 0},
		{"a ticket of the copy", record.Entered, mine, 4, 16 * time.Second, 1, 0, 0},
		{"one that the copy had lent", record.Entered, mine, 4, 24 * time.Second, 1, 0, 0},
		{"one of nobody", record.Entered, mine, 4, 26 * time.Second, 0, 0, 1},
		{"one of a start after both", record.Entered, mine, 5, 26 * time.Second, 0, 0, 1},
		{"a session of nobody", record.Renewed, mine, 4, 26 * time.Second, 0, 0, 1},
		{"a gift of nobody", record.Gave, mine, 0, 26 * time.Second, 0, 0, 1},
		{"what was given before, heard of late", record.Received, mine, 0, 26 * time.Second, 0, 0, 0},
		{"a ticket of another node", record.Entered, other, 1, 26 * time.Second, 0, 0, 0},
	} {
		w := twins{anchor: mine, original: 3, alone: int64(10 * time.Second), over: int64(20 * time.Second)}
		w.add(record.Located{Event: record.Event{Kind: of.kind, Anchor: of.anchor, Boot: of.boot, At: int64(of.at)}}, int64(5*time.Second))
		if w.given != of.given || w.late != of.late || w.posthumous != of.posthumous {
			t.Errorf("%s: got %d given, %d late, %d posthumous; want %d, %d, %d", of.what, w.given, w.late, w.posthumous, of.given, of.late, of.posthumous)
		}
	}
}
