package crdt

import (
	"maps"
	"math"
	"slices"
)

const (
	minRoomSummary  = idSize + 6
	minSummaryPiece = idSize + 8
	minSiteMark     = idSize + 4
	minSpan         = 2
)

func (w *writer) version(v Version) {
	w.uint(v.Epoch)
	w.owner(v.Publisher)
	w.uint(v.Seq)
}

func (r *reader) version() (v Version) {
	v.Epoch = r.uint(math.MaxUint64)
	v.Publisher = r.owner()
	v.Seq = r.uint(maxCount)
	return v
}

// versionSize bounds an encoded version.
const versionSize = 9 + idSize + 9 + 9

// AppendBinary appends the encoding of d to dst.
func (d SummaryDigest) AppendBinary(dst []byte) ([]byte, error) {
	w := newWriter(dst)
	w.array(len(d))
	for _, site := range slices.Sorted(maps.Keys(d)) {
		w.text(site)
		w.version(d[site])
	}
	return w.result()
}

// DecodeSummaryDigest reads what SummaryDigest.AppendBinary wrote.
func DecodeSummaryDigest(data []byte) (SummaryDigest, error) {
	r := newReader(data)
	n := r.array(minSiteMark)
	d := make(SummaryDigest, n)
	for range n {
		site := r.text(maxSite)
		d[site] = r.version()
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return d, nil
}

// AppendBinary appends the encoding of d to dst.
func (d SummaryDelta) AppendBinary(dst []byte) ([]byte, error) {
	w := newWriter(dst)
	w.array(len(d.Pieces))
	for _, p := range d.Pieces {
		p.encode(w)
	}
	return w.result()
}

// DecodeSummaryDelta reads what SummaryDelta.AppendBinary wrote. Whether the
// delta is possible is found out when it is applied.
func DecodeSummaryDelta(data []byte) (SummaryDelta, error) {
	r := newReader(data)
	d := SummaryDelta{Pieces: make([]SummaryPiece, 0, r.array(minSummaryPiece))}
	for range cap(d.Pieces) {
		d.Pieces = append(d.Pieces, decodeSummaryPiece(r))
	}
	if err := r.end(); err != nil {
		return SummaryDelta{}, err
	}
	return d, nil
}

func (p SummaryPiece) encode(w *writer) {
	w.text(p.Site)
	w.version(p.stream(p.To))
	w.uint(p.To - p.From)
	w.uint(uint64(p.Changed))
	w.uint(uint64(p.Closed))
	w.array(len(p.Rooms))
	for _, rs := range p.Rooms {
		rs.encode(w, p)
	}
}

// headSize bounds the encoding of the fields before the rooms.
func (p SummaryPiece) headSize(w *siteSummary) int {
	return bytesSize(len(p.Site)) + versionSize + uintSize(w.known.Seq) +
		uintSize(uint64(p.Changed)) + uintSize(uint64(w.closed)) + arraySize
}

func decodeSummaryPiece(r *reader) (p SummaryPiece) {
	p.Site = r.text(maxSite)
	v := r.version()
	p.Epoch, p.Publisher, p.To = v.Epoch, v.Publisher, v.Seq
	p.From = p.To - r.uint(p.To)
	p.Changed = int64(r.uint(maxTime))
	p.Closed = int64(r.uint(maxTick))
	if n := r.array(minRoomSummary); n > 0 {
		p.Rooms = make([]RoomSummary, n)
	}
	for i := range p.Rooms {
		p.Rooms[i] = decodeRoomSummary(r, p)
	}
	return p
}

// A version of the piece's own stream is written as its distance to the end,
// one above zero; zero announces a whole version.
func (rs RoomSummary) encode(w *writer, p SummaryPiece) {
	w.bytes(rs.Room[:])
	if rs.Version.compareStream(p.stream(0)) == 0 && rs.Version.Seq <= p.To {
		w.uint(p.To - rs.Version.Seq + 1)
	} else {
		w.uint(0)
		w.version(rs.Version)
	}
	w.int(p.Changed - rs.At)
	w.int(rs.Active)
	w.int(rs.Held)
	w.int(rs.HeldRate)
	encodeSpans(w, rs.Waiting, tickBase(Waiting, p.Changed))
	encodeSpans(w, rs.Seen, tickBase(Seen, p.Changed))
	encodeSpans(w, rs.Admitted, tickBase(Admitted, p.Changed))
}

func (rs RoomSummary) size(changed int64) int {
	return idSize + 9 + versionSize + intSize(changed-rs.At) + intSize(rs.Active) + intSize(rs.Held) + intSize(rs.HeldRate) +
		spansSize(rs.Waiting, tickBase(Waiting, changed)) +
		spansSize(rs.Seen, tickBase(Seen, changed)) +
		spansSize(rs.Admitted, tickBase(Admitted, changed))
}

func decodeRoomSummary(r *reader, p SummaryPiece) (rs RoomSummary) {
	r.id((*[16]byte)(&rs.Room))
	if back := r.uint(maxCount); back > p.To+1 {
		r.fail("version %d before the first", back)
	} else if back > 0 {
		rs.Version = p.stream(p.To + 1 - back)
	} else {
		rs.Version = r.version()
	}
	rs.At = p.Changed - r.int(maxTime)
	rs.Active = r.int(math.MaxInt64)
	if r.coded >= codecHeld {
		rs.Held = r.int(math.MaxInt64)
		rs.HeldRate = r.int(math.MaxInt64)
	}
	rs.Waiting = decodeSpans(r, tickBase(Waiting, p.Changed))
	rs.Seen = decodeSpans(r, tickBase(Seen, p.Changed))
	rs.Admitted = decodeSpans(r, tickBase(Admitted, p.Changed))
	return rs
}

// Spans are written as steps from the one before; the first from base.
func encodeSpans(w *writer, spans []Span, base int64) {
	w.array(len(spans))
	for _, s := range spans {
		w.int(s.Tick - base)
		w.int(s.N)
		base = s.Tick
	}
}

func spansSize(spans []Span, base int64) int {
	size := arraySize
	for _, s := range spans {
		size += intSize(s.Tick-base) + intSize(s.N)
		base = s.Tick
	}
	return size
}

func decodeSpans(r *reader, base int64) []Span {
	n := r.array(minSpan)
	if n == 0 {
		return nil
	}
	spans := make([]Span, n)
	for i := range spans {
		base += r.int(maxTick)
		if base > maxTick || base < -maxTick {
			r.fail("span at %d", base)
		}
		spans[i] = Span{base, r.int(math.MaxInt64)}
		if r.err != nil {
			return nil
		}
	}
	return spans
}

// AppendBinary appends the whole state to dst: summaries and what is known of
// them.
func (s *Summaries) AppendBinary(dst []byte) ([]byte, error) {
	w := newWriter(dst)
	w.array(len(s.sites))
	for _, site := range slices.Sorted(maps.Keys(s.sites)) {
		sum := s.sites[site]
		p := SummaryPiece{
			Site: site, Epoch: sum.head.Epoch, Publisher: sum.head.Publisher, To: sum.head.Seq,
			Changed: sum.changed, Closed: sum.closed,
		}
		for room, g := range sum.rooms {
			p.Rooms = append(p.Rooms, RoomSummary{room, g.version, g.at, g.Summary})
		}
		slices.SortFunc(p.Rooms, compareRoomSummaries)
		p.encode(w)
		w.version(sum.known)
	}
	return w.result()
}

// DecodeSummaries reads what Summaries.AppendBinary wrote, at most limit bytes
// of it.
func DecodeSummaries(data []byte, limit int) (*Summaries, error) {
	r := newReaderOf(data, limit)
	n := r.array(minSummaryPiece)
	s := &Summaries{sites: make(map[string]*siteSummary, n), shape: 1}
	for range n {
		p := decodeSummaryPiece(r)
		w := &siteSummary{
			head: p.stream(p.To), changed: p.Changed, closed: p.Closed,
			rooms: make(map[RoomID]register, len(p.Rooms)),
		}
		for _, rs := range p.Rooms {
			w.put(rs.Room, register{rs.Summary, rs.Version, rs.At})
		}
		w.known = r.version()
		s.sites[p.Site] = w
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return s, nil
}
