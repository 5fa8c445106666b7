package crdt

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// maxCount bounds P and N, far above anything that can be counted and far
// enough below the top that sums of peers' counts do not wrap.
const maxCount = 1 << 62

// RowDigest says, per row, up to which change a replica holds everything.
type RowDigest map[Incarnation]uint64

// RowDelta is a set of changes of rows.
type RowDelta struct {
	Pieces []RowPiece
}

// RowPiece holds the cells of one row whose last change lies in (From, To].
type RowPiece struct {
	Owner    Incarnation
	Site     string
	From, To uint64
	Changed  int64 // Unix milliseconds
	Closed   int64 // newest closed tick; 0 if something was left out
	Rooms    []RoomChanges
}

// RoomChanges are the changed cells of one room.
type RoomChanges struct {
	Room  RoomID
	Cells []CellChange
}

// CellChange is one cell after the change Seq.
type CellChange struct {
	Kind Kind
	Tick int64
	Seq  uint64
	Cell
}

// Empty reports whether the delta carries nothing.
func (d RowDelta) Empty() bool { return len(d.Pieces) == 0 }

// Digest returns what r may promise to hold.
func (r *Rows) Digest() RowDigest {
	d := make(RowDigest, len(r.rows))
	for owner, w := range r.rows {
		d[owner] = w.known
	}
	return d
}

// Delta returns what r knows and a replica with the digest have does not, in an
// encoding of at most limit bytes; 0 means no limit. What does not fit is left
// out newest first within a row, so that every piece follows from what the
// receiver has.
func (r *Rows) Delta(have RowDigest, limit int) RowDelta {
	b := newBudget(limit)
	var d RowDelta
	for _, w := range r.order {
		from := have[w.owner]
		if w.known <= from {
			continue
		}
		if p := w.piece(w.owner, from, b); p.To > from {
			d.Pieces = append(d.Pieces, p)
		}
	}
	return d
}

// DeltaOf is Delta for the row of one owner.
func (r *Rows) DeltaOf(owner Incarnation, from uint64, limit int) RowDelta {
	w, ok := r.rows[owner]
	if !ok || w.known <= from {
		return RowDelta{}
	}
	p := w.piece(owner, from, newBudget(limit))
	if p.To == from {
		return RowDelta{}
	}
	return RowDelta{Pieces: []RowPiece{p}}
}

// piece collects the changes after from, oldest first, until b is used up. It
// ends at from when not even one fits.
func (w *row) piece(owner Incarnation, from uint64, b *budget) RowPiece {
	p := RowPiece{Owner: owner, Site: w.site, From: from, To: from, Changed: w.changed}
	if !b.take(p.headSize(w)) {
		return p
	}
	seen := make(map[RoomID]int)
	for _, c := range w.since(from) {
		size := cellSize(c.CellChange, w.changed)
		i, ok := seen[c.room]
		if !ok {
			size += roomHeadSize
		}
		if !b.take(size) {
			return p
		}
		if !ok {
			i = len(p.Rooms)
			seen[c.room] = i
			p.Rooms = append(p.Rooms, RoomChanges{Room: c.room})
		}
		p.Rooms[i].Cells = append(p.Rooms[i].Cells, c.CellChange)
		p.To = c.Seq
	}
	p.To, p.Closed = w.known, w.closed
	return p
}

type roomChange struct {
	room RoomID
	CellChange
}

// since lists the cells whose last change lies in (from, known], oldest first.
func (w *row) since(from uint64) []roomChange {
	var out []roomChange
	for room, rc := range w.rooms {
		if rc.last <= from {
			continue
		}
		for s, e := range rc.cells.all() {
			if e.seq > from && e.seq <= w.known {
				out = append(out, roomChange{room, CellChange{s.kind, s.tick, e.seq, e.Cell}})
			}
		}
	}
	slices.SortFunc(out, func(a, b roomChange) int { return cmp.Compare(a.Seq, b.Seq) })
	return out
}

// Apply merges one piece. gap reports that changes before the piece are
// missing: its cells count from now on, but others are not promised them until
// a digest has filled the hole. A piece that no honest owner writes is refused
// whole, with an error that wraps ErrHostile. The piece is copied.
func (r *Rows) Apply(p RowPiece, now time.Time) (gap bool, err error) {
	if err := p.check(now); err != nil {
		return false, err
	}
	if w, ok := r.rows[p.Owner]; !ok && len(r.rows) >= maxRows || ok && w.size()+p.size() > maxRowCells {
		return false, fmt.Errorf("row %s: more than is kept: %w", p.Owner, ErrHostile)
	}
	w := r.row(p.Owner, p.Site)
	w.header(p.To, p.Changed)
	for _, rc := range p.Rooms {
		for _, c := range rc.Cells {
			w.put(Key{rc.Room, c.Kind, c.Tick}, entry{c.Cell, c.Seq}, larger)
		}
	}
	if w.known, gap = advance(w.known, p.From, p.To); !gap {
		w.closed = max(w.closed, p.Closed)
	}
	return gap, nil
}

func (w *row) size() (n int) {
	for _, rc := range w.rooms {
		n += rc.cells.len()
	}
	return n
}

func (p RowPiece) size() (n int) {
	for _, rc := range p.Rooms {
		n += len(rc.Cells)
	}
	return n
}

func (p RowPiece) check(now time.Time) error {
	if p.From > p.To || p.To > maxCount {
		return fmt.Errorf("row %s: changes %d to %d: %w", p.Owner, p.From, p.To, ErrHostile)
	}
	if at := time.UnixMilli(p.Changed); at.After(now.Add(maxAhead)) {
		return fmt.Errorf("row %s: changed at %s, which is to come: %w", p.Owner, at.UTC(), ErrAhead)
	}
	if ahead(Seen, p.Closed, now) {
		return fmt.Errorf("row %s: closed tick %d, which is to come: %w", p.Owner, p.Closed, ErrAhead)
	}
	for _, rc := range p.Rooms {
		for _, c := range rc.Cells {
			if err := c.check(p.From, p.To, now); err != nil {
				return fmt.Errorf("row %s, room %s: %w", p.Owner, rc.Room, err)
			}
		}
	}
	return nil
}

func (c CellChange) check(from, to uint64, now time.Time) error {
	switch {
	case c.Kind < Active || c.Kind > lastKind:
		return fmt.Errorf("kind %d: %w", c.Kind, ErrHostile)
	case c.Kind.timeless() && c.Tick != 0:
		return fmt.Errorf("kind %d at tick %d: %w", c.Kind, c.Tick, ErrHostile)
	case c.P > maxCount || c.N > maxCount:
		return fmt.Errorf("count %d/%d: %w", c.P, c.N, ErrHostile)
	case c.Seq <= from || c.Seq > to:
		return fmt.Errorf("change %d outside of (%d, %d]: %w", c.Seq, from, to, ErrHostile)
	case ahead(c.Kind, c.Tick, now):
		return fmt.Errorf("tick %d, which is to come: %w", c.Tick, ErrAhead)
	}
	return nil
}

// Join returns one delta that has the effect of both. It shares nothing with
// them.
func (d RowDelta) Join(o RowDelta) RowDelta {
	var all []RowPiece
	for _, p := range slices.Concat(d.Pieces, o.Pieces) {
		all = append(all, p.clone())
	}
	return RowDelta{coalesce(all,
		func(a, b RowPiece) int { return cmp.Or(a.Owner.Compare(b.Owner), cmp.Compare(a.From, b.From)) },
		func(a, b RowPiece) bool { return a.Owner == b.Owner && b.From <= a.To },
		(*RowPiece).absorb)}
}

func (p RowPiece) clone() RowPiece {
	p.Rooms = slices.Clone(p.Rooms)
	for i := range p.Rooms {
		p.Rooms[i].Cells = slices.Clone(p.Rooms[i].Cells)
	}
	return p
}

// absorb joins o, which touches p from above.
func (p *RowPiece) absorb(o RowPiece) {
	w := &row{rooms: make(map[RoomID]*roomCells)}
	for _, part := range []RowPiece{*p, o} {
		for _, rc := range part.Rooms {
			for _, c := range rc.Cells {
				w.put(Key{rc.Room, c.Kind, c.Tick}, entry{c.Cell, c.Seq}, larger)
			}
		}
	}
	w.known = max(p.To, o.To)
	p.To = w.known
	p.Site = max(p.Site, o.Site)
	p.Changed = max(p.Changed, o.Changed)
	p.Closed = max(p.Closed, o.Closed)
	p.Rooms = group(w.since(p.From))
}

// group gathers changes by room, rooms in the order in which they first appear.
func group(changes []roomChange) []RoomChanges {
	var out []RoomChanges
	at := make(map[RoomID]int)
	for _, c := range changes {
		i, ok := at[c.room]
		if !ok {
			i = len(out)
			at[c.room] = i
			out = append(out, RoomChanges{Room: c.room})
		}
		out[i].Cells = append(out[i].Cells, c.CellChange)
	}
	return out
}
