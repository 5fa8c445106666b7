package catalog

import (
	"reflect"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// start has a node read its file.
func start(t *testing.T, s *store, file room.Settings) {
	t.Helper()
	c := Read(s)
	brought := FileRoom(DefaultZone, "", file, s.now)
	before := ReadPrints(s, file.ID, s.node)
	s.write(t, new(Catalog).Writes(c.Room(file.ID), c.Bring(brought, before)))
	s.write(t, PrintsOf(brought).Remember(before, file.ID, s.node))
}

// patch has an operator change the room by the API.
func patch(t *testing.T, s *store, id crdt.RoomID, change func(*Room)) {
	t.Helper()
	was := Read(s).Room(id)
	is := was.Clone()
	change(is)
	s.write(t, new(Catalog).Writes(was, is))
}

func TestWhatTheFileSaysIsTakenOnce(t *testing.T) {
	file := plain(1).Settings
	file.Events = []room.Event{plainEvent(1).Event}
	file.Front.Rules = []room.Rule{plainRule(1).Rule}
	file.Front.CustomPage = "the file's page"
	a, b := newStore(1), newStore(2)
	both := func() { a.hear(b); b.hear(a) }
	now := func() *Room { both(); return Read(b).Room(file.ID) }

	start(t, a, file)
	both()
	start(t, b, file)
	if got := now(); !reflect.DeepEqual(got.Whole(), file.Clone()) {
		t.Fatalf("the file says\n%+v\nand the room is\n%+v", file, got.Whole())
	}

	patch(t, b, file.ID, func(r *Room) { r.Settings.TotalActiveUsers = 5; r.Rules = nil })
	both()
	start(t, a, file)
	start(t, b, file)
	if got := now(); got.Settings.TotalActiveUsers != 5 || len(got.Rules) != 0 {
		t.Errorf("a start with the same file undid what the API had set: %+v", got)
	}

	// The file changes at one node, in one place. The other starts once more with the old one.
	next := file.Clone()
	next.Front.CustomPage, next.QueueAll = "another", true
	start(t, a, next)
	both()
	start(t, b, file)
	got := now()
	if got.Settings.Front.CustomPage != "another" || !got.Settings.QueueAll {
		t.Errorf("what has changed in the file is not taken, or undone by an older file: %+v", got.Settings)
	}
	if got.Settings.TotalActiveUsers != 5 || len(got.Rules) != 0 || len(got.Events) != 1 {
		t.Errorf("what has not changed in the file was taken as well: %+v", got)
	}

	start(t, b, next)
	start(t, b, file) // back again, on purpose
	if got := now(); got.Settings.Front.CustomPage != "the file's page" || got.Settings.QueueAll {
		t.Errorf("the file was changed back, and the room is %+v", got.Settings)
	}

	third := newStore(3)
	third.hear(a)
	old := file.Clone()
	old.TotalActiveUsers, old.SessionDuration = 77, time.Hour
	start(t, third, old)
	if got := Read(third).Room(file.ID); got.Settings.TotalActiveUsers != 5 || got.Settings.SessionDuration == time.Hour {
		t.Errorf("a node that starts for the first time changed a room of the others: %+v", got.Settings)
	}
}

func TestADeletedRoomStaysAway(t *testing.T) {
	file := plain(1).Settings
	s := newStore(1)
	start(t, s, file)
	s.write(t, new(Catalog).Writes(Read(s).Room(file.ID), nil))
	start(t, s, file)
	if got := Read(s).Room(file.ID); got != nil {
		t.Errorf("a start with the same file brought a deleted room back: %+v", got)
	}
	file.QueueAll = true
	start(t, s, file)
	if Read(s).Room(file.ID) != nil {
		t.Error("the file has changed, and the deleted room is there again, under the same id")
	}
}

func TestPrintsGoByWhatTheFileSays(t *testing.T) {
	file := plain(1).Settings
	file.Events, file.Front.Rules = []room.Event{plainEvent(1).Event}, []room.Rule{plainRule(1).Rule}
	first := FileRoom(DefaultZone, "", file, begin)
	again := FileRoom(DefaultZone, "", file, begin.Add(time.Hour))
	if !reflect.DeepEqual(PrintsOf(first), PrintsOf(again)) || first.Events[0].ID != again.Events[0].ID || first.Rules[0].ID != again.Rules[0].ID {
		t.Error("the same file an hour later is another")
	}
	if w := PrintsOf(again).Remember(PrintsOf(first), file.ID, crdt.NodeID{1}); w != nil {
		t.Errorf("%d writes for nothing new", len(w))
	}
	file.Events[0].Shuffle = true
	other := PrintsOf(FileRoom(DefaultZone, "", file, begin))
	for name, print := range PrintsOf(first) {
		if (other[name] == print) == (name == printEvents) {
			t.Errorf("an event has changed, and the fingerprint of %s: %v", name, other[name] != print)
		}
	}
}

// What a file makes has times of the precision of those that nodes note of changes: nothing
// seems to be changed before it was made.
func TestFilesMakeThingsAtWholeMilliseconds(t *testing.T) {
	file := plain(1).Settings
	file.Events, file.Front.Rules = []room.Event{plainEvent(1).Event}, []room.Rule{plainRule(1).Rule}
	at := begin.Add(1234567 * time.Nanosecond)
	r, l := FileRoom(DefaultZone, "", file, at), FileLimits([]limit.Rule{{Name: "a"}}, at)
	for what, got := range map[string]time.Time{"room": r.Created, "event": r.Events[0].Created, "rule": r.Rules[0].Created, "rate limit": l[0].Created} {
		if want := begin.Add(time.Millisecond); !got.Equal(want) {
			t.Errorf("a %s was made at %v, want %v", what, got, want)
		}
	}
}
