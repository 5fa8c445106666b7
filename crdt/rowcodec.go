package crdt

import (
	"maps"
	"math"
	"slices"
	"time"
)

// Least encoded sizes, by which lengths are checked before allocating.
const (
	minCell  = 5
	minRoom  = idSize + 1
	minPiece = idSize + 6
	minMark  = idSize + 2
)

const roomHeadSize = idSize + arraySize

// AppendBinary appends the encoding of d to dst.
func (d RowDigest) AppendBinary(dst []byte) ([]byte, error) {
	w := newWriter(dst)
	w.array(len(d))
	for _, owner := range slices.SortedFunc(maps.Keys(d), Incarnation.Compare) {
		w.owner(owner)
		w.uint(d[owner])
	}
	return w.result()
}

// DecodeRowDigest reads what RowDigest.AppendBinary wrote.
func DecodeRowDigest(data []byte) (RowDigest, error) {
	r := newReader(data)
	n := r.array(minMark)
	d := make(RowDigest, n)
	for range n {
		owner := r.owner()
		d[owner] = r.uint(maxCount)
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return d, nil
}

// AppendBinary appends the encoding of d to dst.
func (d RowDelta) AppendBinary(dst []byte) ([]byte, error) {
	w := newWriter(dst)
	w.array(len(d.Pieces))
	for _, p := range d.Pieces {
		p.encode(w)
	}
	return w.result()
}

// DecodeRowDelta reads what RowDelta.AppendBinary wrote. Whether the delta is
// possible is found out when it is applied.
func DecodeRowDelta(data []byte) (RowDelta, error) {
	r := newReader(data)
	d := RowDelta{Pieces: make([]RowPiece, 0, r.array(minPiece))}
	for range cap(d.Pieces) {
		d.Pieces = append(d.Pieces, decodePiece(r))
	}
	if err := r.end(); err != nil {
		return RowDelta{}, err
	}
	return d, nil
}

func (p RowPiece) encode(w *writer) {
	w.owner(p.Owner)
	w.text(p.Site)
	w.uint(p.From)
	w.uint(p.To - p.From)
	w.uint(uint64(p.Changed))
	w.uint(uint64(p.Closed))
	encodeRooms(w, p.Rooms, p.Changed, p.To)
}

// headSize bounds the encoding of the fields before the cells.
func (p RowPiece) headSize(w *row) int {
	return idSize + uintSize(p.Owner.Boot) + bytesSize(len(p.Site)) + uintSize(p.From) + uintSize(w.known) +
		uintSize(uint64(p.Changed)) + uintSize(uint64(w.closed)) + arraySize
}

func decodePiece(r *reader) (p RowPiece) {
	p.Owner = r.owner()
	p.Site = r.text(maxSite)
	p.From = r.uint(maxCount)
	p.To = p.From + r.uint(maxCount)
	p.Changed = int64(r.uint(maxTime))
	p.Closed = int64(r.uint(maxTick))
	p.Rooms = decodeRooms(r, p.Changed, p.To)
	return p
}

// A tick is written as its distance from the row's last change and a change as
// its distance from the newest: both are small where traffic is.

func tickBase(kind Kind, changed int64) int64 {
	switch at := time.UnixMilli(changed); kind {
	case Waiting:
		return at.Unix()
	case Seen, Admitted:
		return TickOf(at)
	}
	return 0
}

func cellSize(c CellChange, changed int64) int {
	// The distance to the newest change is not known while a piece is still
	// growing; it is at most the number of the change that may end it.
	return uintSize(uint64(c.Kind)) + intSize(tickBase(c.Kind, changed)-c.Tick) + seqSize + uintSize(c.P) + uintSize(c.N)
}

// seqSize bounds an encoded distance between changes: cuts are computed for the
// widest, which costs at most a few bytes of a message that is full.
const seqSize = 9

func encodeRooms(w *writer, rooms []RoomChanges, changed int64, newest uint64) {
	w.array(len(rooms))
	for _, rc := range rooms {
		w.bytes(rc.Room[:])
		w.array(len(rc.Cells))
		for _, c := range rc.Cells {
			w.uint(uint64(c.Kind))
			w.int(tickBase(c.Kind, changed) - c.Tick)
			w.uint(newest - c.Seq)
			w.uint(c.P)
			w.uint(c.N)
		}
	}
}

func decodeRooms(r *reader, changed int64, newest uint64) []RoomChanges {
	n := r.array(minRoom)
	if n == 0 {
		return nil
	}
	rooms := make([]RoomChanges, n)
	for i := range rooms {
		r.id((*[16]byte)(&rooms[i].Room))
		rooms[i].Cells = make([]CellChange, r.array(minCell))
		for j := range rooms[i].Cells {
			rooms[i].Cells[j] = decodeCell(r, changed, newest)
		}
	}
	return rooms
}

func decodeCell(r *reader, changed int64, newest uint64) (c CellChange) {
	c.Kind = Kind(r.uint(math.MaxUint8))
	c.Tick = tickBase(c.Kind, changed) - r.int(maxTick)
	c.Seq = newest - r.uint(newest)
	c.P = r.uint(math.MaxUint64)
	c.N = r.uint(math.MaxUint64)
	return c
}

// AppendBinary appends the whole state to dst: rows, what is known of them, and
// which of them were opened here.
func (r *Rows) AppendBinary(dst []byte) ([]byte, error) {
	w := newWriter(dst)
	w.array(len(r.rows))
	for _, row := range r.order {
		p := RowPiece{Owner: row.owner, Site: row.site, To: row.seq, Changed: row.changed, Closed: row.closed}
		p.Rooms = group(row.all())
		p.encode(w)
		w.uint(row.known)
		w.uint(boolBit(row.mine))
	}
	return w.result()
}

// DecodeRows reads what Rows.AppendBinary wrote. The input may be larger than a
// message: limit is the most that is taken.
func DecodeRows(data []byte, limit int) (*Rows, error) {
	r := newReaderOf(data, limit)
	n := r.array(minPiece + 2)
	rows := &Rows{rows: make(map[Incarnation]*row, n)}
	for range n {
		p := decodePiece(r)
		w := &row{
			owner: p.Owner, site: p.Site, seq: p.To, changed: p.Changed, closed: p.Closed,
			rooms: make(map[RoomID]*roomCells, len(p.Rooms)),
		}
		for _, rc := range p.Rooms {
			for _, c := range rc.Cells {
				w.put(Key{rc.Room, c.Kind, c.Tick}, entry{c.Cell, c.Seq}, larger)
			}
		}
		w.known = r.uint(p.To)
		w.mine = r.uint(1) == 1
		rows.insert(w)
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return rows, nil
}

func boolBit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// all lists every cell, oldest change first.
func (w *row) all() []roomChange {
	c := *w
	c.known = math.MaxUint64
	return c.since(0)
}
