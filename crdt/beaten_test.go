package crdt

import (
	"bytes"
	"fmt"
	"testing"
	"time"
)

// TestWhatWasBeatenByAClockThatWasAhead: a node hears of a change before it hears that its clock is ahead, or, after it has started once more, that
// it is right. What it has itself is older then, and nobody tells it of the change again.
func TestWhatWasBeatenByAClockThatWasAhead(t *testing.T) {
	for _, ahead := range []time.Duration{0, 10 * time.Minute} {
		now := time.Unix(1_800_000_000, 0)
		self, other := Incarnation{NodeID{1}, 1}, NodeID{2}
		var m, o LWW
		var clock, right Clock
		m.NoteStart(self, Stamp{}, time.Time{}, now.Add(10*time.Minute))
		for _, key := range []string{"both", "here"} {
			if err := m.Set(key, []byte("here"), clock.Now(now.Add(10*time.Minute), self.Node)); err != nil {
				t.Fatal(err)
			}
		}
		ended := now.Add(10*time.Minute + time.Second)
		now = now.Add(time.Minute)
		for _, key := range []string{"both", "there"} {
			if err := o.Set(key, []byte("there"), right.Now(now, other)); err != nil {
				t.Fatal(err)
			}
		}
		if ahead == 0 {
			self.Boot++
			now = ended.Add(-10 * time.Minute)
			m.NoteStart(self, clock.Last(), ended, now)
		}
		now = now.Add(time.Minute)
		if err := m.hear(o.Delta(m.Digest(), 0), &clock, now.Add(ahead)); err != nil {
			t.Fatal(err)
		}
		if value, _, _ := m.Get("both"); string(value) != "here" {
			t.Fatalf("%v ahead: before the clocks are compared the value is %q", ahead, value)
		}
		m.Rewind(self.Node, 0, now.Add(ahead), now)
		if err := o.hear(m.Delta(o.Digest(), 0), &right, now); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"both", "here", "there"} {
			here, at, _ := m.Get(key)
			if there, is, _ := o.Get(key); string(here) != string(there) || at != is || key == "both" && string(here) != "there" {
				t.Errorf("%v ahead: %s is %q of %v here, and %q of %v there", ahead, key, here, at, there, is)
			}
		}
	}
}

// TestFewAreBeaten: what is kept of that is bounded, and is the newest.
func TestFewAreBeaten(t *testing.T) {
	for _, size := range []int{1, MaxValue} {
		var b beaten
		e, by := lwwEntry{value: string(bytes.Repeat([]byte("x"), size))}, lwwEntry{stamp: Stamp{Wall: 1 << 40, Node: NodeID{2}}}
		for i := range int64(2 * maxBeaten) {
			e.stamp = Stamp{Wall: 1 + i, Node: NodeID{1}}
			b.note(fmt.Sprint(i), e, by)
		}
		total := 0
		for key, e := range b.of {
			total += len(key) + len(e.value)
		}
		if total != b.size || total > maxBeatenBytes || len(b.of) > maxBeaten || len(b.of) < min(maxBeaten, maxBeatenBytes/(size+8)) {
			t.Errorf("%d of %d bytes are kept, which count as %d", len(b.of), total, b.size)
		}
		if _, ok := b.of[fmt.Sprint(2*maxBeaten-1)]; !ok {
			t.Error("the newest is not kept")
		}
		m, now := LWW{beaten: b}, time.Unix(1_800_000_000, 0)
		m.ForgetBeaten(now)
		if m.ForgetBeaten(now.Add(beatenFor - 1)); len(m.beaten.of) != len(b.of) {
			t.Error("it is forgotten early")
		}
		if m.ForgetBeaten(now.Add(beatenFor)); len(m.beaten.of) > 0 || m.beaten.size != 0 {
			t.Error("it is never forgotten")
		}
	}
}
