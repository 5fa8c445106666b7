package history

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ropeline/ropeline/crdt"
)

// leave has all that from has recorded go to another one, a few minutes at a time, and on its disk as well.
func leave(t interface{ Fatal(...any) }, from, to, disk *Recorder) {
	data, err := from.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	in, err := NewInheritance(data)
	for done := false; err == nil && !done; {
		done, err = to.Inherit(in, 3)
	}
	if err == nil {
		data, err = in.AppendBinary(nil)
	}
	if err == nil {
		err = disk.Restore(data)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestNothingIsLostWithWhoLeaves: nodes record, and leave to each other until one is left. It knows what all of them
// would have said together, and so does its disk.
func TestNothingIsLostWithWhoLeaves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := make([]*Recorder, rapid.IntRange(2, 5).Draw(t, "nodes"))
		const minutes = 6
		end := noon.Add(minutes * time.Minute)
		for i := range nodes {
			nodes[i] = newRecorder(t)
			for range rapid.IntRange(0, 20).Draw(t, "visits") {
				now := noon.Add(time.Duration(rapid.IntRange(0, minutes-1).Draw(t, "minute")) * time.Minute)
				room := roomNo(rapid.IntRange(0, 2).Draw(t, "room"))
				nodes[i].See(room, Seen{Active: rapid.Int64Range(0, 9).Draw(t, "active")}, now)
				nodes[i].Count(room, Counts{New: 1, Admitted: 1}, now)
				nodes[i].Waited(room, time.Minute, now)
			}
			nodes[i].Advance(end.Add(time.Hour))
		}
		var want [3]Series
		for room := range want {
			for _, r := range nodes {
				want[room] = Merge(want[room], r.dayBefore(t, room, end))
			}
		}
		disk := newRecorder(t)
		for len(nodes) > 1 {
			last := len(nodes) - 1
			to := rapid.IntRange(0, last-1).Draw(t, "heir")
			leave(t, nodes[last], nodes[to], disk)
			nodes = nodes[:last]
		}
		for room := range want {
			if got := nodes[0].dayBefore(t, room, end); len(got)+len(want[room]) > 0 && !reflect.DeepEqual(got, want[room]) {
				t.Errorf("room %d: got %+v, want %+v", room, got, want[room])
			}
		}
	})
}

// TestWhatWasInheritedIsOnDisk: it is there again after a start, beside what the node recorded itself.
func TestWhatWasInheritedIsOnDisk(t *testing.T) {
	from, to, again := newRecorder(t), newRecorder(t), newRecorder(t)
	busyDay(t, from, 2, 90)
	for _, frame := range busyDay(t, to, 3, 30) {
		if err := again.Restore(frame); err != nil {
			t.Fatal(err)
		}
	}
	leave(t, from, to, again)
	for room := range 3 {
		got, want := again.dayBefore(t, room, noon.Add(2*time.Hour)), to.dayBefore(t, room, noon.Add(2*time.Hour))
		if len(got) == 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("room %d has %d minutes, want %d", room, len(got), len(want))
		}
	}
}

// TestInheritedBytesAreBounded: however many nodes leave, what they recorded takes half of the memory at most, of what
// this node recorded something stays, and a day later nothing of theirs is left.
func TestInheritedBytesAreBounded(t *testing.T) {
	const most = 256 << 10
	r, err := New(Config{Bytes: most})
	if err != nil {
		t.Fatal(err)
	}
	busyDay(t, r, 3, 600)
	from := newRecorder(t)
	busyDay(t, from, 3, 600)
	for range 40 {
		leave(t, from, r, newRecorder(t))
		if r.inherited > most/2 || r.Bytes() > most {
			t.Fatalf("%d bytes, %d of them inherited", r.Bytes(), r.inherited)
		}
	}
	for room := range 3 {
		s := r.dayBefore(t, room, noon.Add(10*time.Hour))
		if len(s) == 0 || s[len(s)-1].Nodes != 41 {
			t.Errorf("room %d has %d minutes, the newest %+v", room, len(s), s[max(0, len(s)-1):])
		}
	}
	r.Advance(noon.Add(10*time.Hour + Span + 2*time.Hour))
	if r.inherited != 0 {
		t.Errorf("a day later %d bytes are inherited", r.inherited)
	}
	r.Forget(roomNo(0))
}

// TestAnInheritanceThatMakesNoSense: rooms of which it does are taken over, and what is left out is said.
func TestAnInheritanceThatMakesNoSense(t *testing.T) {
	bad := Minute{At: 1, Nodes: 2}
	good := Minute{At: 1, Nodes: 1}
	data, err := appendFrame(nil, []ofRoom{{room: roomNo(0), records: appendRecord(nil, &bad, 0)}, {room: roomNo(1), records: appendRecord(nil, &good, 0)}})
	if err != nil {
		t.Fatal(err)
	}
	in, err := NewInheritance(data)
	if err != nil {
		t.Fatal(err)
	}
	r := newRecorder(t)
	if done, err := r.Inherit(in, 10); err == nil || done {
		t.Errorf("a minute of two nodes, of one: done %v, %v", done, err)
	}
	if done, err := r.Inherit(in, 10); err != nil || !done || len(r.Rooms()) != 1 {
		t.Errorf("done %v, %v, of rooms %v", done, err, r.Rooms())
	}
	if _, err := NewInheritance(data[:len(data)-1]); err == nil {
		t.Error("an inheritance that is cut off is read")
	}
}

// TestANodeThatIsAnsweredForIsLeftOut: while a node still answers whose history another one has, it counts once.
func TestANodeThatIsAnsweredForIsLeftOut(t *testing.T) {
	minute := func(n uint64) Series { return Series{{At: 100, Nodes: 1, Counts: Counts{New: n}}} }
	both := Answer{Series: Series{{At: 100, Nodes: 2, Counts: Counts{New: 5}}}, For: []crdt.NodeID{{2}}}
	b, err := both.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	if both, err = DecodeAnswer(b); err != nil {
		t.Fatal(err)
	}
	got := Join(map[crdt.NodeID]Answer{{1}: both, {2}: {Series: minute(3)}, {3}: {Series: minute(10)}})
	if len(got) != 1 || got[0].Counts.New != 15 || got[0].Nodes != 3 {
		t.Errorf("got %+v, want 15 visitors of 3 nodes", got)
	}
	for n := range b {
		if _, err := DecodeAnswer(b[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are an answer", n, len(b))
		}
	}
}

func FuzzQuestion(f *testing.F) {
	f.Add(Question{Room: roomNo(1), From: noon, To: noon.Add(time.Hour)}.AppendBinary(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if q, err := DecodeQuestion(b); err == nil && string(q.AppendBinary(nil)) != string(b) {
			t.Errorf("%x is read as %+v", b, q)
		}
	})
}
