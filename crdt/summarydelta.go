package crdt

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// SummaryDigest says, per site, up to which version a replica holds everything.
type SummaryDigest map[string]Version

// SummaryDelta is a set of changes of summaries.
type SummaryDelta struct {
	Pieces []SummaryPiece
}

// SummaryPiece holds what one publisher said of one site in one epoch: the
// rooms whose last version lies in (From, To]. A piece that starts at 0 may also
// carry rooms of former publishers.
type SummaryPiece struct {
	Site      string
	Epoch     uint64
	Publisher Incarnation
	From, To  uint64
	Changed   int64 // Unix milliseconds
	Closed    int64 // newest closed tick; 0 if something was left out
	Rooms     []RoomSummary
}

// RoomSummary is the summary of one room in one version.
type RoomSummary struct {
	Room    RoomID
	Version Version
	At      int64 // when it was published, Unix milliseconds
	Summary
}

// Empty reports whether the delta carries nothing.
func (d SummaryDelta) Empty() bool { return len(d.Pieces) == 0 }

// Digest returns what s may promise to hold.
func (s *Summaries) Digest() SummaryDigest {
	d := make(SummaryDigest, len(s.sites))
	for site, w := range s.sites {
		d[site] = w.known
	}
	return d
}

// Delta returns what s knows and a replica with the digest have does not, in an
// encoding of at most limit bytes; 0 means no limit. What does not fit is left
// out newest first within a site.
func (s *Summaries) Delta(have SummaryDigest, limit int) SummaryDelta {
	return s.DeltaOf(slices.Sorted(maps.Keys(s.sites)), have, limit)
}

// DeltaOf is Delta for some sites only, in the order given. It costs no time for
// the others.
func (s *Summaries) DeltaOf(sites []string, have SummaryDigest, limit int) SummaryDelta {
	b := newBudget(limit)
	var d SummaryDelta
	for _, site := range sites {
		w, ok := s.sites[site]
		if !ok {
			continue
		}
		if w.known.Compare(have[site]) <= 0 || w.known.compareStream(w.head) != 0 {
			continue // nothing new, or nothing but what a former publisher said
		}
		if p := w.piece(site, have[site], b); p.To > p.From {
			d.Pieces = append(d.Pieces, p)
		}
	}
	return d
}

func (w *siteSummary) piece(site string, have Version, b *budget) SummaryPiece {
	var from uint64 // a stream that the receiver has nothing of begins at 0
	if have.compareStream(w.known) == 0 {
		from = have.Seq
	}
	p := SummaryPiece{Site: site, Epoch: w.known.Epoch, Publisher: w.known.Publisher, From: from, To: from, Changed: w.changed}
	if !b.take(p.headSize(w)) {
		return p
	}
	current, former := w.since(from)
	for _, rs := range current {
		if !b.take(rs.size(w.changed)) {
			return p
		}
		p.Rooms = append(p.Rooms, rs)
		p.To = rs.Version.Seq
	}
	p.To, p.Closed = w.known.Seq, w.closed
	if from > 0 {
		return p
	}
	// What former publishers left behind fades by itself, so it comes last and
	// may stay behind when the message is full.
	for _, rs := range former {
		if b.take(rs.size(w.changed)) {
			p.Rooms = append(p.Rooms, rs)
		}
	}
	return p
}

// since lists the rooms of the known stream that changed in (from, known], and
// those of former streams; both oldest version first.
func (w *siteSummary) since(from uint64) (current, former []RoomSummary) {
	for room, g := range w.rooms {
		rs := RoomSummary{room, g.version, g.at, g.clone()}
		switch stream := g.version.compareStream(w.known); {
		case stream == 0 && g.version.Seq > from && g.version.Seq <= w.known.Seq:
			current = append(current, rs)
		case stream < 0:
			former = append(former, rs)
		}
	}
	slices.SortFunc(current, compareRoomSummaries)
	slices.SortFunc(former, compareRoomSummaries)
	return current, former
}

func compareRoomSummaries(a, b RoomSummary) int {
	return cmp.Or(a.Version.Compare(b.Version), a.Room.Compare(b.Room))
}

func (p SummaryPiece) stream(seq uint64) Version { return Version{p.Epoch, p.Publisher, seq} }

// Apply merges one piece; gap and errors are those of Rows.Apply. The piece is
// copied.
func (s *Summaries) Apply(p SummaryPiece, now time.Time) (gap bool, err error) {
	if err := p.check(now); err != nil {
		return false, err
	}
	if w, ok := s.sites[p.Site]; !ok && len(s.sites) >= maxSites || ok && len(w.rooms)+len(p.Rooms) > 2*maxSiteRooms {
		return false, fmt.Errorf("site %s: more than is kept: %w", p.Site, ErrHostile)
	}
	w := s.site(p.Site)
	w.header(p.stream(p.To), p.Changed)
	for _, rs := range p.Rooms {
		w.put(rs.Room, register{rs.Summary, rs.Version, rs.At})
	}
	stream := p.stream(0).compareStream(w.known)
	if stream > 0 && p.From == 0 {
		w.known, stream = p.stream(0), 0 // a publisher begins with all it has
	}
	if stream == 0 {
		w.known.Seq, gap = advance(w.known.Seq, p.From, p.To)
		if !gap {
			w.closed = max(w.closed, p.Closed)
		}
	}
	return gap || stream > 0, nil
}

func (p SummaryPiece) check(now time.Time) error {
	if p.From > p.To || p.To > maxCount {
		return fmt.Errorf("site %s: epoch %d, changes %d to %d: %w", p.Site, p.Epoch, p.From, p.To, ErrHostile)
	}
	if p.Epoch > maxEpoch(now) {
		return fmt.Errorf("site %s: epoch %d, which is to come: %w", p.Site, p.Epoch, ErrAhead)
	}
	if len(p.Rooms) > maxSiteRooms {
		return fmt.Errorf("site %s: %d rooms: %w", p.Site, len(p.Rooms), ErrHostile)
	}
	if at := time.UnixMilli(p.Changed); at.After(now.Add(maxAhead)) {
		return fmt.Errorf("site %s: changed at %s, which is to come: %w", p.Site, at.UTC(), ErrAhead)
	}
	if ahead(Seen, p.Closed, now) {
		return fmt.Errorf("site %s: closed tick %d, which is to come: %w", p.Site, p.Closed, ErrAhead)
	}
	for _, rs := range p.Rooms {
		if err := rs.check(p, now); err != nil {
			return fmt.Errorf("site %s, room %s: %w", p.Site, rs.Room, err)
		}
	}
	return nil
}

// maxEpoch is the highest epoch to be believed. Epochs follow the clock, so one
// far beyond it would keep all honest publishers out until the clock arrives.
func maxEpoch(now time.Time) uint64 { return uint64(max(0, now.Add(time.Hour).UnixMilli())) }

func (rs RoomSummary) check(p SummaryPiece, now time.Time) error {
	stream := rs.Version.compareStream(p.stream(0))
	within := stream == 0 && rs.Version.Seq > p.From && rs.Version.Seq <= p.To
	former := stream < 0 && p.From == 0
	if !within && !former {
		return fmt.Errorf("version %v outside of (%d, %d]: %w", rs.Version, p.From, p.To, ErrHostile)
	}
	if at := time.UnixMilli(rs.At); at.After(now.Add(maxAhead)) {
		return fmt.Errorf("published at %s, which is to come: %w", at.UTC(), ErrAhead)
	}
	for _, n := range []int64{rs.Active, rs.Held, rs.HeldRate} {
		if n > maxCount || n < -maxCount {
			return fmt.Errorf("count %d: %w", n, ErrHostile)
		}
	}
	return cmp.Or(
		checkSpans(rs.Waiting, Waiting, now),
		checkSpans(rs.Seen, Seen, now),
		checkSpans(rs.Admitted, Admitted, now))
}

func checkSpans(spans []Span, kind Kind, now time.Time) error {
	for i, s := range spans {
		if i > 0 && s.Tick <= spans[i-1].Tick || s.N > maxCount || s.N < -maxCount || ahead(kind, s.Tick, now) {
			return fmt.Errorf("span %d with %d: %w", s.Tick, s.N, ErrHostile)
		}
	}
	return nil
}

// Join returns one delta that has the effect of both. It shares nothing with
// them.
func (d SummaryDelta) Join(o SummaryDelta) SummaryDelta {
	var all []SummaryPiece
	for _, p := range slices.Concat(d.Pieces, o.Pieces) {
		all = append(all, p.clone())
	}
	return SummaryDelta{coalesce(all,
		func(a, b SummaryPiece) int {
			return cmp.Or(cmp.Compare(a.Site, b.Site), a.stream(0).compareStream(b.stream(0)), cmp.Compare(a.From, b.From))
		},
		func(a, b SummaryPiece) bool {
			return a.Site == b.Site && a.stream(0) == b.stream(0) && b.From <= a.To
		},
		(*SummaryPiece).absorb)}
}

func (p SummaryPiece) clone() SummaryPiece {
	p.Rooms = slices.Clone(p.Rooms)
	for i := range p.Rooms {
		p.Rooms[i].Summary = p.Rooms[i].clone()
	}
	return p
}

// absorb joins o, which touches p from above.
func (p *SummaryPiece) absorb(o SummaryPiece) {
	newest := make(map[RoomID]RoomSummary)
	for _, rs := range slices.Concat(p.Rooms, o.Rooms) {
		if old, ok := newest[rs.Room]; !ok || rs.Version.Compare(old.Version) > 0 {
			newest[rs.Room] = rs
		}
	}
	p.Rooms = slices.SortedFunc(maps.Values(newest), compareRoomSummaries)
	p.To = max(p.To, o.To)
	p.Changed = max(p.Changed, o.Changed)
	p.Closed = max(p.Closed, o.Closed)
}
