package replica

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// ErrForged is wrapped by errors about state that its sender may not speak of.
var ErrForged = errors.New("not the sender's to say")

// Why something was refused, as Stats names it.
const (
	refusedMalformed = "malformed"
	refusedStale     = "stale_boot"      // from an earlier start of its sender
	refusedHostile   = "hostile"         // what no honest node says
	refusedOwnRow    = "own_row"         // somebody else writes our row
	refusedLive      = "live_owner"      // the owner speaks for itself
	refusedRow       = "foreign_row"     // of another site, or of a start that was not announced
	refusedSummary   = "foreign_summary" // of a site that the sender is not of
	refusedStranger  = "stranger"        // of a writer that is no member, beside too many others
)

// Receive takes in one message from an authenticated peer and returns what is
// to be sent in turn. An error says that all or a part was refused; that part
// has changed nothing. Rows of living owners that a peer passes on are left
// aside without an error: it cannot know whom we have heard.
func (r *Replica) Receive(from Peer, payload []byte, now time.Time) ([]Message, error) {
	r.open(now)
	r.stats.MessagesIn++
	if from.ID == r.cfg.Self.Node {
		r.noticeSelf(from.incarnation(), 0)
		return nil, r.refuse(refusedOwnRow, fmt.Errorf("message from %s, our own id: %w", from.incarnation(), ErrForged))
	}
	f, err := decodeFrame(payload, r.cfg.MaxMessage)
	if err != nil {
		return nil, r.refuse(refusedMalformed, fmt.Errorf("message from %s: %w", from.incarnation(), err))
	}
	l, ok := r.link(from)
	if !ok {
		return nil, r.refuse(refusedStale, fmt.Errorf("message from %s, which has started again: %w", from.incarnation(), ErrForged))
	}
	l.heard, l.ready = now, f.flags&flagReady != 0
	last := r.answersLast(l, f)
	progress, err := r.take(l, f, now)
	r.confirm(l, f, now)
	switch f.kind {
	case pull:
		return r.pulled(l, f, now), err
	case answer:
		if !last {
			r.filledLate()
			return nil, err
		}
		return r.filled(l, f, progress, now), err
	case tell, survey:
		r.asked(l, f)
	case kept:
		r.tookKept(l, f)
	}
	return nil, err
}

func (r *Replica) refuse(reason string, err error) error {
	r.stats.Refused[reason]++
	return err
}

// take applies the deltas of a frame, piece by piece. progress reports whether
// any piece was taken.
func (r *Replica) take(l *link, f *frame, now time.Time) (progress bool, err error) {
	var errs []error
	note := func(gap bool, err error) bool {
		if err != nil {
			errs = append(errs, fmt.Errorf("%v from %s: %w", f.kind, l.peer.incarnation(), err))
			return false
		}
		if gap {
			r.stats.Gaps++
		}
		progress = true
		return !gap
	}
	for _, p := range f.rows.Pieces {
		if owner := p.Owner; owner == l.peer.incarnation() {
			l.oweRows = true
		}
		if reason := r.rowRefused(l, p, now); reason == refusedLive {
			r.stats.Refused[reason]++
		} else if reason != "" {
			note(false, r.refuse(reason, fmt.Errorf("row %s: %w", p.Owner, ErrForged)))
		} else {
			note(r.applied(r.rows.Apply(p, now)))
			for _, rc := range p.Rooms {
				r.changed[rc.Room] = struct{}{}
			}
		}
	}
	for _, p := range f.sums.Pieces {
		if !r.maySummarize(l, p.Site) {
			note(false, r.refuse(refusedSummary, fmt.Errorf("summary of %s: %w", p.Site, ErrForged)))
			continue
		}
		put(&l.oweSums, p.Site, struct{}{})
		if note(r.applied(r.sums.Apply(p, now))) {
			l.sums.has(p.Site, crdt.Version{Epoch: p.Epoch, Publisher: p.Publisher, Seq: p.To})
		}
		for _, rc := range p.Rooms {
			r.changed[rc.Room] = struct{}{}
		}
	}
	r.takeMap(l, f, note, now)
	return progress, errors.Join(errs...)
}

func (r *Replica) applied(gap bool, err error) (bool, error) {
	if err != nil {
		return false, r.refuse(refusedHostile, err)
	}
	return gap, nil
}

// rowRefused returns why a row is not to be taken from a peer, or nothing. An
// owner that is alive speaks for itself; for the silent and the dead, members
// of their site may. A joiner listens to all: it has heard nobody yet.
func (r *Replica) rowRefused(l *link, p crdt.RowPiece, now time.Time) string {
	owner := p.Owner
	switch known, ok := r.links[owner.Node]; {
	case owner == r.cfg.Self && p.To <= r.rows.Known(owner):
		return refusedLive // nothing that we have not said ourselves
	case owner.Node == r.cfg.Self.Node && owner.Boot >= r.cfg.Self.Boot:
		changes := uint64(0)
		if !r.fill.done {
			changes = p.To // a joiner has asked for it: see pullFrom
		}
		r.noticeSelf(owner, changes)
		return refusedOwnRow
	case l.peer.Site != r.cfg.Site || p.Site != r.cfg.Site:
		return refusedRow
	case ok && owner.Boot > known.peer.Boot:
		// A later start would silence the present one, so it has to come
		// forward itself.
		return refusedRow
	case owner.Node != l.peer.ID && r.fill.done && r.speaks(owner, now):
		return refusedLive
	}
	return ""
}

// maySummarize reports whether a peer may pass on the summary of a site: its
// own, or within our site any other.
func (r *Replica) maySummarize(l *link, site string) bool {
	return site == l.peer.Site || l.peer.Site == r.cfg.Site
}

// confirm reads what a peer says it has. The digests of a pull are complete, so
// what they do not name the peer does not have.
func (r *Replica) confirm(l *link, f *frame, now time.Time) {
	for owner, v := range f.haveRows {
		if v == skip {
			v = 0 // says nothing
		}
		r.noticeSelf(owner, v)
	}
	if v, ok := f.haveRows[r.cfg.Self]; (ok || f.kind == pull) && v != skip {
		l.rows.confirm(r.cfg.Self, min(v, r.rows.Known(r.cfg.Self)))
	}
	if f.kind == pull || len(f.haveLWW) > 0 {
		l.full = 0 // it may have less than it had
	}
	if f.kind == pull {
		clear(l.sums.acked)
		clear(l.lww.acked)
	}
	// A peer is believed only about what we have ourselves: it could fill our
	// memory with names. Summaries are pushed by who leads a site alone; the
	// others need not know who has which, and one who takes the lead learns it
	// from the answers to its first push.
	for site, v := range f.haveSums {
		if _, ok := r.sums.Header(site); ok && r.lead.on {
			l.sums.confirm(site, v)
		}
	}
	if len(f.haveLWW) > 0 {
		for writer := range r.lww.Known() {
			if v, ok := f.haveLWW[writer]; ok {
				l.lww.confirm(writer, v)
			}
		}
	}
	if v, ok := f.haveSums[r.cfg.Site]; ok {
		r.outranked(v, now)
	}
}

// pulled answers a pull, and pulls in turn what the peer has beyond us.
func (r *Replica) pulled(l *link, f *frame, now time.Time) []Message {
	var out []Message
	if r.fill.done && !l.ready && !r.knows(l.peer.ID) {
		put(&r.fill.strangers, l.peer.ID, f)
	} else if a := r.answerTo(l, f); !a.empty() || f.flags&flagFill != 0 {
		out = append(out, r.message(l.peer.ID, a))
	}
	if f.flags&flagEcho == 0 && r.transfer.from != l && r.lacks(l, f, now) {
		out = append(out, r.pullFrom(l, flagEcho, now))
	}
	return out
}

// lacks reports whether a peer's digests show anything that we would take from
// it and that would not come by itself.
func (r *Replica) lacks(l *link, f *frame, now time.Time) bool {
	if l.peer.Site == r.cfg.Site {
		for owner, v := range f.haveRows {
			if v != skip && v > r.rows.Known(owner) && owner.Node != l.peer.ID && owner != r.cfg.Self && !r.speaks(owner, now) {
				return true
			}
		}
	}
	for site, v := range f.haveSums {
		if site != r.cfg.Site && r.maySummarize(l, site) && v.Epoch < math.MaxUint64 && v.Compare(r.sums.Known(site)) > 0 {
			return true
		}
	}
	for writer, v := range f.haveLWW {
		if v > r.lww.KnownOf(writer) {
			return true
		}
	}
	return false
}

// Stats returns a copy of the counts.
func (r *Replica) Stats() Stats {
	s := r.stats
	s.MessagesOut, s.BytesOut, s.Refused = maps.Clone(s.MessagesOut), maps.Clone(s.BytesOut), maps.Clone(s.Refused)
	return s
}
