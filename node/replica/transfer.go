package replica

import (
	"maps"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// How the last-writer map is taken in. A piece may leave out writes for which other pieces have what has won over
// them; see crdt.LWW.Apply. It counts by itself if all such writes were known here before: nearly always. Else it takes
// a delta that is whole: a push of who leads a site, or an answer to a pull. Where that has no room in a message, one
// answer after the other is kept aside, and with the last, which is whole, all of them are taken at once.

// maxTransfer bounds what is kept aside, in bytes: a map has less, and so has its receiver room for no more.
const maxTransfer = 128 << 20

// transfer is what has come so far of the map of one peer. The zero value is none.
type transfer struct {
	from   *link
	at     time.Time // of the last answer
	pieces []crdt.LWWPiece
	got    crdt.LWWDigest // up to where they reach
	size   int
}

// end forgets a transfer, and so has no answer that may be under way go on with it.
func (t *transfer) end() {
	if t.from != nil {
		t.from.round++
	}
	*t = transfer{}
}

// add keeps pieces aside and reports whether it does: one transfer is enough at a time.
func (t *transfer) add(l *link, pieces []crdt.LWWPiece, now time.Time) bool {
	if t.from != l && t.from != nil && now.Sub(t.at) <= heardFor {
		return false
	}
	if t.from != l {
		t.end()
		*t = transfer{from: l, got: crdt.LWWDigest{}}
	}
	t.at = now
	for _, p := range pieces {
		t.pieces, t.got[p.Writer] = append(t.pieces, p), max(t.got[p.Writer], p.To)
		for _, w := range p.Writes {
			t.size += len(w.Key) + len(w.Value) + maxMark
		}
		t.size += 2 * maxMark
	}
	if t.size > maxTransfer {
		t.end()
	}
	return t.from == l
}

// first returns up to where a transfer reaches, of so many writers at most. Of others it is told once more.
func (t *transfer) first(most int) crdt.LWWDigest {
	if len(t.got) <= most {
		return t.got
	}
	got := crdt.LWWDigest{}
	for _, writer := range slices.SortedFunc(maps.Keys(t.got), crdt.NodeID.Compare)[:max(0, most)] {
		got[writer] = t.got[writer]
	}
	return got
}

// answersLast reports whether a message answers what this start of the node has asked last.
func (r *Replica) answersLast(l *link, f *frame) bool {
	return f.kind == answer && f.to == r.cfg.Self.Boot && f.round == l.round
}

// takeMap takes in what a message has of the map; note is told of each piece, whether it was left aside for good, or
// refused.
func (r *Replica) takeMap(l *link, f *frame, note func(gap bool, err error) bool, now time.Time) {
	t := &r.transfer
	here := f.to == r.cfg.Self.Boot
	goesOn := r.answersLast(l, f)
	whole := here && f.flags&flagWhole != 0 && (f.kind != answer || goesOn)
	var got crdt.LWWDigest
	if goesOn && t.from == l {
		got = t.got
	}
	var rest []crdt.LWWPiece
	for _, p := range f.lww.Pieces {
		aside, err := r.takePiece(l, f.kind, p, now)
		switch {
		case err == nil && aside && p.From <= max(r.lww.NewestOf(p.Writer), got[p.Writer]):
			put(&l.asides, p.Writer, max(l.asides[p.Writer], p.To))
			rest = append(rest, p)
		case note(aside, err):
			l.lww.has(p.Writer, p.To)
		default:
			whole = false
		}
	}
	switch {
	case whole:
		r.takeWhole(l, goesOn, rest, note, now)
	case goesOn && len(rest) > 0 && t.add(l, rest, now):
		note(false, nil)
	}
}

// takeWhole takes at once what had to come together.
func (r *Replica) takeWhole(l *link, ends bool, rest []crdt.LWWPiece, note func(gap bool, err error) bool, now time.Time) {
	all := rest
	if ends && r.transfer.from == l {
		all = append(r.transfer.pieces, rest...)
		r.transfer.end()
	}
	if len(all) > 0 && !note(r.applied(r.lww.ApplyWhole(all, &r.hlc, r.rightTime(now)))) {
		return
	}
	l.asides = nil
	for _, p := range all {
		l.lww.has(p.Writer, p.To)
		put(&l.oweLWW, p.Writer, l.oweLWW[p.Writer])
	}
}

// askForRest asks those of whom something was left aside for all that there is. It would else wait for the next pull
// that meets them, and others would not be told of it until then.
func (r *Replica) askForRest(out []Message, now time.Time) []Message {
	if now.Sub(r.transfer.at) > heardFor {
		r.transfer.end() // whoever goes on begins again
	}
	if !r.fill.done {
		return out // it asks anyway
	}
	for _, l := range r.sorted() {
		if len(l.asides) == 0 || now.Sub(l.asked) < resendAfter {
			continue
		}
		maps.DeleteFunc(l.asides, func(writer crdt.NodeID, n uint64) bool { return r.lww.NewestOf(writer) >= n })
		if len(l.asides) > 0 {
			out = append(out, r.pullFrom(l, flagFill|flagEcho, now))
		}
	}
	return out
}
