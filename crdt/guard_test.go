package crdt

import (
	"errors"
	"testing"
	"time"
)

var guardNow = time.Unix(1_800_000_000, 0)

func TestRowGuards(t *testing.T) {
	owner := Incarnation{testNode(0), 1}
	honest := func() RowPiece {
		return RowPiece{
			Owner: owner, Site: "s", From: 0, To: 5, Changed: guardNow.UnixMilli(), Closed: TickOf(guardNow) - 1,
			Rooms: []RoomChanges{{testRoom(0), []CellChange{{Seen, TickOf(guardNow), 3, Cell{4, 0}}}}},
		}
	}
	for name, spoil := range map[string]func(*RowPiece){
		"backwards":   func(p *RowPiece) { p.From = 9 },
		"seq beyond":  func(p *RowPiece) { p.Rooms[0].Cells[0].Seq = 6 },
		"seq before":  func(p *RowPiece) { p.Rooms[0].Cells[0].Seq = 0 },
		"future tick": func(p *RowPiece) { p.Rooms[0].Cells[0].Tick += 3 },
		"future arrival": func(p *RowPiece) {
			p.Rooms[0].Cells[0] = CellChange{Waiting, guardNow.Add(MaxPlaceAhead).Unix() + 13, 3, Cell{1, 0}}
		},
		"future change":  func(p *RowPiece) { p.Changed += 13_000 },
		"future close":   func(p *RowPiece) { p.Closed += 4 },
		"huge P":         func(p *RowPiece) { p.Rooms[0].Cells[0].P = 1<<62 + 1 },
		"huge N":         func(p *RowPiece) { p.Rooms[0].Cells[0].N = 1<<62 + 1 },
		"no kind":        func(p *RowPiece) { p.Rooms[0].Cells[0].Kind = 0 },
		"unknown kind":   func(p *RowPiece) { p.Rooms[0].Cells[0].Kind = lastKind + 1 },
		"active by tick": func(p *RowPiece) { p.Rooms[0].Cells[0].Kind = Active },
		"rights by tick": func(p *RowPiece) { p.Rooms[0].Cells[0].Kind = HeldRate },
	} {
		p, rows := honest(), new(Rows)
		spoil(&p)
		if _, err := rows.Apply(p, guardNow); !errors.Is(err, ErrHostile) {
			t.Errorf("%s: got %v, want ErrHostile", name, err)
		}
		if len(rows.rows) != 0 {
			t.Errorf("%s: a refused piece left something behind", name)
		}
	}
	if _, err := new(Rows).Apply(honest(), guardNow); err != nil {
		t.Errorf("honest piece: %v", err)
	}
	drawn := honest()
	drawn.Rooms[0].Cells[0] = CellChange{Waiting, guardNow.Add(MaxPlaceAhead).Unix(), 3, Cell{1, 0}}
	if _, err := new(Rows).Apply(drawn, guardNow); err != nil {
		t.Errorf("a place given to somebody who waits for a start: %v", err)
	}
}

func TestSummaryGuards(t *testing.T) {
	by := Incarnation{testNode(0), 1}
	honest := func() SummaryPiece {
		return SummaryPiece{
			Site: "s", Epoch: 7, Publisher: by, To: 5, Changed: guardNow.UnixMilli(),
			Rooms: []RoomSummary{{
				testRoom(0),
				Version{7, by, 3},
				guardNow.UnixMilli(),
				Summary{Seen: []Span{{TickOf(guardNow) - 1, 2}, {TickOf(guardNow), 2}}},
			}},
		}
	}
	for name, spoil := range map[string]func(*SummaryPiece){
		"backwards":      func(p *SummaryPiece) { p.From = 9 },
		"beyond":         func(p *SummaryPiece) { p.Rooms[0].Version.Seq = 6 },
		"later epoch":    func(p *SummaryPiece) { p.Rooms[0].Version.Epoch = 8 },
		"endless epoch":  func(p *SummaryPiece) { p.Epoch = 1 << 60 },
		"former, midway": func(p *SummaryPiece) { p.From, p.Rooms[0].Version.Epoch = 1, 6 },
		"future tick":    func(p *SummaryPiece) { p.Rooms[0].Seen[1].Tick += 3 },
		"unordered":      func(p *SummaryPiece) { p.Rooms[0].Seen[1].Tick -= 1 },
		"huge":           func(p *SummaryPiece) { p.Rooms[0].Seen[1].N = 1<<62 + 1 },
		"huge active":    func(p *SummaryPiece) { p.Rooms[0].Active = -1<<62 - 1 },
		"huge rights":    func(p *SummaryPiece) { p.Rooms[0].Held = 1<<62 + 1 },
		"future":         func(p *SummaryPiece) { p.Rooms[0].At += 13_000 },
		"future change":  func(p *SummaryPiece) { p.Changed += 13_000 },
		"future close":   func(p *SummaryPiece) { p.Closed = TickOf(guardNow) + 3 },
	} {
		p, sums := honest(), new(Summaries)
		spoil(&p)
		if _, err := sums.Apply(p, guardNow); !errors.Is(err, ErrHostile) {
			t.Errorf("%s: got %v, want ErrHostile", name, err)
		}
		if len(sums.sites) != 0 {
			t.Errorf("%s: a refused piece left something behind", name)
		}
	}
	if _, err := new(Summaries).Apply(honest(), guardNow); err != nil {
		t.Errorf("honest piece: %v", err)
	}
}

// TestStateIsBounded plays a member that says more and more.
func TestStateIsBounded(t *testing.T) {
	rows, sums, lww := new(Rows), new(Summaries), new(LWW)
	var clock Clock
	refused := [3]int{}
	at := Version{Epoch: 1, Seq: 1}
	for i := range maxLWWEntries + 10 {
		node := NodeID{byte(i), byte(i >> 8), byte(i >> 16), 'x'}
		if _, err := rows.Apply(RowPiece{Owner: Incarnation{node, 1}, To: 1}, guardNow); err != nil {
			refused[0]++
		}
		room := RoomID(node)
		p := SummaryPiece{Site: "s", Epoch: 1, From: uint64(i), To: uint64(i + 1)}
		at.Seq = p.To
		p.Rooms = []RoomSummary{{Room: room, Version: at}}
		if _, err := sums.Apply(p, guardNow); err != nil {
			refused[1]++
		}
		w := LWWPiece{Writer: testNode(0), From: uint64(min(i, maxLWWEntries)), To: uint64(i + 1), Writes: []Write{{Key: room.String(), At: uint64(i + 1)}}}
		if _, err := lww.Apply(w, &clock, guardNow); err != nil {
			refused[2]++
		}
	}
	if got := [3]int{len(rows.rows), len(sums.sites["s"].rooms), lww.entries.len()}; got != [3]int{maxRows, 2 * maxSiteRooms, maxLWWEntries} {
		t.Errorf("kept %v", got)
	}
	if want := [3]int{maxLWWEntries + 10 - maxRows, maxLWWEntries + 10 - 2*maxSiteRooms, 10}; refused != want {
		t.Errorf("refused %v, want %v", refused, want)
	}
	if err := lww.Set("one more", nil, clock.Now(guardNow, testNode(1))); err == nil {
		t.Error("a full map took one more key")
	}
}

func TestClockRefusesRunawayStamps(t *testing.T) {
	var a, b Clock
	m := new(LWW)
	far := a.Now(guardNow.Add(501*time.Millisecond), testNode(0))
	if err := m.Set("k", []byte("v"), far); err != nil {
		t.Fatal(err)
	}
	other := new(LWW)
	for _, p := range m.Delta(nil, 0).Pieces {
		if _, err := other.Apply(p, &b, guardNow); !errors.Is(err, ErrHostile) {
			t.Errorf("501 ms ahead: got %v, want ErrHostile", err)
		}
		if _, _, ok := other.Get("k"); ok || b.Refused() != 1 {
			t.Errorf("refused write is there: %v, refusals %d", ok, b.Refused())
		}
		if _, err := other.Apply(p, &b, guardNow.Add(time.Millisecond)); err != nil {
			t.Errorf("500 ms ahead: %v", err)
		}
	}
	if next := b.Now(guardNow, testNode(1)); next.Compare(far) <= 0 {
		t.Errorf("a write after %v got %v", far, next)
	}
}

func TestClockNeverRepeats(t *testing.T) {
	var c Clock
	last := Stamp{}
	for i := range 200_000 {
		at := guardNow.Add(-time.Duration(i) * time.Microsecond) // a clock that goes back
		next := c.Now(at, testNode(0))
		if next.Compare(last) <= 0 {
			t.Fatalf("%v after %v", next, last)
		}
		last = next
	}
}

func TestCompareAndSet(t *testing.T) {
	var c Clock
	m := new(LWW)
	first := c.Now(guardNow, testNode(0))
	if err := m.CompareAndSet("k", []byte("1"), Stamp{}, first); err != nil {
		t.Fatal(err)
	}
	if err := m.CompareAndSet("k", []byte("2"), Stamp{}, c.Now(guardNow, testNode(0))); !errors.Is(err, ErrConflict) {
		t.Errorf("a second creation: got %v, want ErrConflict", err)
	}
	if err := m.CompareAndSet("k", nil, first, c.Now(guardNow, testNode(0))); err != nil {
		t.Errorf("deletion: %v", err)
	}
	if _, at, ok := m.Get("k"); ok || at.IsZero() {
		t.Errorf("after a deletion: there %v, stamp %v", ok, at)
	}
}

func TestLowerBootIsSuperseded(t *testing.T) {
	rows, node := new(Rows), testNode(0)
	old, young := Incarnation{node, 1}, Incarnation{node, 2}
	rows.Open(old, "s", guardNow)
	rows.Add(old, Key{Room: testRoom(0), Kind: Active}, 5, 1, guardNow)
	rows.Add(old, Key{testRoom(0), Seen, TickOf(guardNow)}, 7, 0, guardNow)
	rows.Open(young, "s", guardNow)
	// The later start dies before it has taken over; the next one reads past it.
	for boot := range uint64(2) {
		if got := rows.LastActive(node, 2+boot, testRoom(0)); got != 4 {
			t.Errorf("last active before boot %d: got %d, want 4", 2+boot, got)
		}
	}
	count := func(when string, active int64) {
		t.Helper()
		c := rows.CountSite("s", testRoom(0), guardNow, Retention{})
		if c.Active != active || c.Seen[TickOf(guardNow)] != 7 {
			t.Errorf("%s: got active %d, seen %v, want %d and 7", when, c.Active, c.Seen, active)
		}
	}
	count("before the restarted node has taken over", 4)
	rows.Add(young, Key{Room: testRoom(0), Kind: Active}, 6, 0, guardNow)
	count("after it has", 6)
	rows.Add(young, Key{Room: testRoom(0), Kind: Active}, 0, 6, guardNow)
	count("when all have left", 0)
	if got := rows.LastActive(node, 3, testRoom(0)); got != 0 {
		t.Errorf("last active of a start that let all go: got %d, want 0", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("writing the row of an earlier start did not panic")
		}
	}()
	rows.Add(old, Key{Room: testRoom(0), Kind: Active}, 1, 0, guardNow)
}

func TestFading(t *testing.T) {
	ret := Retention{Room: func(RoomID) Fading { return Fading{Session: time.Minute, Refresh: 20 * time.Second} }}
	owner := Incarnation{testNode(0), 1}
	src := new(Rows)
	src.Open(owner, "s", guardNow)
	src.Add(owner, Key{Room: testRoom(0), Kind: Active}, 5, 0, guardNow)
	src.Add(owner, Key{testRoom(0), Waiting, guardNow.Unix()}, 3, 0, guardNow)
	src.Add(owner, Key{testRoom(0), Seen, TickOf(guardNow)}, 7, 0, guardNow)
	rows := new(Rows)
	rows.Merge(src)
	for _, step := range []struct {
		after                 time.Duration
		active, waiting, seen int64
		rows                  int
	}{
		{0, 5, 3, 7, 1},
		{50 * time.Second, 5, 3, 7, 1},
		{50*time.Second + time.Millisecond, 5, 0, 7, 1},
		{60*time.Second + leaseGuard, 5, 0, 7, 1},
		{60*time.Second + leaseGuard + time.Millisecond, 0, 0, 7, 1},
		{10*time.Minute + TickSpan, 0, 0, 7, 1},
		{10*time.Minute + TickSpan + time.Millisecond, 0, 0, 0, 0},
	} {
		now := guardNow.Add(step.after)
		rows.Expire(now, ret)
		c := rows.CountSite("s", testRoom(0), now, ret)
		if c.Active != step.active || c.Waiting[guardNow.Unix()] != step.waiting || c.Seen[TickOf(guardNow)] != step.seen || len(rows.rows) != step.rows {
			t.Errorf("after %v: got %+v in %d rows, want %+v", step.after, c, len(rows.rows), step)
		}
	}
}
