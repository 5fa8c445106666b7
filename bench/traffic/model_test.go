package traffic

import (
	"math"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// within is how far the model may be off, as docs/measurements.md says.
const within = 0.15

// TestModelPredicts counts what small meshes say: what they say more, or less, than before is
// news for the model, and for the page.
func TestModelPredicts(t *testing.T) {
	const start, day = 5 * time.Second, 65 * time.Second // of whole nodes: until as many leave as come
	for _, s := range []shape{
		{Sites: 1, Nodes: 3, Rooms: 10, Policy: room.Escrow, Before: start, Span: 20 * time.Second},
		{Sites: 3, Nodes: 2, Rooms: 1, Policy: room.Even, Before: start, Span: 40 * time.Second},
		{Sites: 1, Nodes: 3, Rooms: 10, Policy: room.Escrow, Visitors: 1, Before: day, Span: 20 * time.Second},
		{Sites: 3, Nodes: 2, Rooms: 10, Policy: room.Escrow, Visitors: 1. / 3, Before: start, Span: 40 * time.Second, Thin: true},
		{Sites: 8, Nodes: 1, Rooms: 10, Policy: room.Even, Visitors: 1, Before: start, Span: 20 * time.Second, Thin: true},
	} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			got, err := simulate(s, 1)
			if err != nil {
				t.Fatal(err)
			}
			want := predict(s)
			hold(t, "all", got.Mean.all().Bytes, want.Mean.all().Bytes)
			if s.Sites > 1 {
				hold(t, "of a relay to other sites", got.Relay.Far.Bytes, want.Relay.Far.Bytes)
			}
		})
	}
}

func hold(t *testing.T, what string, got, want float64) {
	t.Helper()
	t.Logf("%s: %.0f B/s, predicted %.0f", what, got, want)
	if math.Abs(want/got-1) > within {
		t.Errorf("%s: a node sends %.0f bytes a second, the model says %.0f", what, got, want)
	}
}

// TestThinSaysTheSame holds what replicas say alone against what whole nodes do.
func TestThinSaysTheSame(t *testing.T) {
	s := shape{Sites: 3, Nodes: 2, Rooms: 3, Policy: room.Even, Visitors: 1, Before: 65 * time.Second, Span: 40 * time.Second}
	whole, err := simulate(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	s.Thin = true
	alone, err := simulate(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := alone.Mean.all().Bytes, whole.Mean.all().Bytes; math.Abs(a/b-1) > 0.1 {
		t.Errorf("replicas alone send %.0f bytes a second, whole nodes %.0f", a, b)
	}
}

// TestSameSeedSameTraffic holds that nothing but the seed decides.
func TestSameSeedSameTraffic(t *testing.T) {
	s := shape{Sites: 2, Nodes: 2, Rooms: 3, Policy: room.Escrow, Visitors: 1, Full: true, Before: 5 * time.Second, Span: 10 * time.Second}
	var all [2]result
	for i := range all {
		var err error
		if all[i], err = simulate(s, 7); err != nil {
			t.Fatal(err)
		}
	}
	if all[0] != all[1] {
		t.Errorf("the same twice:\n%+v\n%+v", all[0], all[1])
	}
}

// TestSizesAreThoseOfTheCodec holds the sizes that the model goes by against what is encoded.
func TestSizesAreThoseOfTheCodec(t *testing.T) {
	const now, seq = int64(1_800_000_000_000), 1000
	self := crdt.Incarnation{Node: crdt.NodeID{1}, Boot: 1}
	size := func(d interface {
		AppendBinary([]byte) ([]byte, error)
	},
	) int {
		b, err := d.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		return len(b)
	}
	row := func(rooms ...crdt.RoomChanges) int {
		return size(crdt.RowDelta{Pieces: []crdt.RowPiece{{Owner: self, Site: siteName(0), From: seq - 1, To: seq, Changed: now, Closed: now / 10_000, Rooms: rooms}}})
	}
	pair := crdt.CellChange{Kind: crdt.Active, Seq: seq, Cell: crdt.Cell{P: 200, N: 200}}
	cell := crdt.CellChange{Kind: crdt.Seen, Tick: now / 10_000, Seq: seq, Cell: crdt.Cell{P: 10}}
	sum := func(ticks int) int {
		s := crdt.RoomSummary{Room: roomID(0), Version: crdt.Version{Epoch: uint64(now), Publisher: self, Seq: seq}, At: now, Summary: crdt.Summary{Active: 60}}
		for i := range ticks {
			s.Seen = append(s.Seen, crdt.Span{Tick: now/10_000 - int64(ticks-i), N: 10})
		}
		return size(crdt.SummaryDelta{Pieces: []crdt.SummaryPiece{{Site: siteName(0), Epoch: uint64(now), Publisher: self, From: seq - 1, To: seq, Changed: now, Closed: now / 10_000, Rooms: []crdt.RoomSummary{s}}}})
	}
	none := size(crdt.SummaryDelta{Pieces: []crdt.SummaryPiece{{Site: siteName(0), Epoch: uint64(now), Publisher: self, From: seq - 1, To: seq, Changed: now, Closed: now / 10_000}}})
	empty := row()
	of := func(cells ...crdt.CellChange) int { return row(crdt.RoomChanges{Room: roomID(0), Cells: cells}) }
	claim := func(n int) int { return len(ticket.AppendClaims(nil, make([]ticket.RoomClaim, n))) }
	for _, x := range []struct {
		what             string
		got, want, slack int
	}{
		{"the head of a row", empty, rowHead, 2},
		{"a room in it", of() - empty, rowRoom, 0},
		{"a pair of counts", of(pair) - of(), pairBytes, 0},
		{"a count of a tick", of(cell) - of(), cellBytes, 0},
		{"an acknowledgement of a row", size(crdt.RowDigest{self: seq}), rowKnown, 0},
		{"a row that is not asked for", size(crdt.RowDigest{self: 1 << 62}) - 2, rowLeft, 0},
		{"the head of a summary", none, sumHead, 2},
		{"a room in it", sum(0) - none, sumRoom, 3},
		{"a tick in it", sum(10) - sum(9), sumTick, 0},
		{"many ticks in it", sum(30) - sum(0), 30*sumTick + tickList, 0},
		{"an acknowledgement of a summary", size(crdt.SummaryDigest{siteName(0): {Epoch: uint64(now), Publisher: self, Seq: seq}}), sumKnown + part, 1},
		{"a writer", size(crdt.LWWDigest{self.Node: uint64(now) << 16}) - part, writer, 0},
		{"a claim", claim(2) - claim(1), claimRoom - 8, 0}, // zero times are short
	} {
		if max(x.got, x.want)-min(x.got, x.want) > x.slack {
			t.Errorf("%s takes %d bytes, and the model says %d", x.what, x.got, x.want)
		}
	}
}

// TestExchangesOfLargeMeshes holds memberlist's formula.
func TestExchangesOfLargeMeshes(t *testing.T) {
	for nodes, want := range map[float64]float64{3: 30, 32: 30, 33: 60, 64: 60, 65: 90, 300: 150, 3000: 240} {
		if got := exchangeEvery(nodes); got != want {
			t.Errorf("%g nodes: an exchange every %g s, want %g", nodes, got, want)
		}
	}
}

// TestModelOfHundreds: of all that a node sends, what everybody has to know is a part, and relays send most.
func TestModelOfHundreds(t *testing.T) {
	for _, s := range hundreds() {
		nodes := s.Sites * s.Nodes
		mean, relay, known := predictWire(s).UDP, onWire(nodes, predict(s).Relay.all()), membership(nodes)
		if !(known > 0 && known < mean && mean <= relay*1.0001) {
			t.Errorf("%s: members %.0f, mean %.0f, relay %.0f B/s", s, known, mean, relay)
		}
	}
}
