package replica

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

const (
	// minMessage is the smallest limit that leaves room for any one change.
	minMessage = crdt.MaxValue + 16<<10
	// overhead is what a frame takes besides its deltas and digests.
	overhead = 4 + 2*binary.MaxVarintLen64 + 8*binary.MaxVarintLen32
	// skip in a digest asks not to be sent a row: it is our own, or its owner
	// speaks for itself.
	skip = 1 << 62
	// farPulls is one in how many pulls goes to another site.
	farPulls = 4
	// urgentGap is the least time between summaries out of turn.
	urgentGap = 50 * time.Millisecond
)

// Tick does what is due and returns the messages to send. It wants to be called
// every 50 to 100 ms; news waits for the next call.
func (r *Replica) Tick(now time.Time) []Message {
	r.open(now)
	r.closeTick(now)
	r.checkReady(now)
	if due(&r.timers.expire, now, time.Second) {
		r.rows.Expire(now, r.cfg.Retention)
		r.sums.Expire(now, r.cfg.Retention)
		if !r.hlc.Ahead(now) {
			r.lww.ForgetBeaten(now)
		}
	}
	urgent := len(r.lead.urgent) > 0 && due(&r.timers.urgent, now, urgentGap)
	r.checkLead(now)
	publish := due(&r.timers.publish, now, r.cfg.SummaryInterval)
	if publish {
		r.publishAll(now)
	} else if urgent {
		r.publishUrgent(now)
	}
	out := r.fillPulls(now)
	push := due(&r.timers.push, now, r.cfg.PushInterval) || urgent
	// What operators set does not wait for the next summary: it may have several sites to go through.
	far := publish || urgent || push && r.lww.Tells() != r.lead.told
	if push || far {
		out = r.appendPushes(out, push, far, now)
	}
	out = r.askForRest(r.askMates(out, now), now)
	if due(&r.timers.pull, now, r.cfg.PullInterval) {
		out = r.appendPull(out, now)
	}
	if urgent {
		clear(r.lead.urgent)
	}
	return out
}

// appendPushes pushes to the members of our site, and beyond it news if far. What is owed to other
// sites goes with either, and so does what operators set and a relay has not acknowledged: as the
// next summary is due about when that may be sent again, it could wait for the one after it.
func (r *Replica) appendPushes(out []Message, push, far bool, now time.Time) []Message {
	if far {
		r.lead.told = r.lww.Tells()
	}
	for _, l := range r.sorted() {
		switch mate := l.peer.Site == r.cfg.Site; {
		case push:
			out = r.appendPush(out, l, mate || far || r.tellsAgain(l, now), now)
		case !mate:
			out = r.appendPush(out, l, true, now)
		}
	}
	return out
}

// due reports whether a timer has run out, and sets it again. It keeps to the
// beat unless it has fallen behind by more than one.
func due(t *time.Time, now time.Time, every time.Duration) bool {
	if now.Before(*t) {
		return false
	}
	if *t = t.Add(every); !now.Before(*t) {
		*t = now.Add(every)
	}
	return true
}

// appendPush sends a peer the news it needs (if news) and what we owe it. What
// is sent begins where its acknowledgements end, so one push replaces another.
func (r *Replica) appendPush(out []Message, l *link, news bool, now time.Time) []Message {
	f := &frame{kind: push}
	r.acknowledge(f, l)
	if news && l.listed {
		left := r.cfg.MaxMessage - overhead - haveSize(f)
		left = r.addRows(f, l, left, now)
		left = r.addSums(f, l, left, now)
		r.addLWW(f, l, left, now)
	}
	if f.empty() {
		return out
	}
	return append(out, r.message(l.peer.ID, f))
}

// maxMark bounds what one writer takes in a digest.
const maxMark = 40

// haveSize bounds the digests of a frame, which are encoded only later.
func haveSize(f *frame) int {
	const row, sum = 40, 60
	size := len(f.haveRows)*row + (len(f.haveLWW)+len(f.haveKept))*maxMark
	for site := range f.haveSums {
		size += sum + len(site)
	}
	return size
}

func (r *Replica) acknowledge(f *frame, l *link) {
	if l.oweRows {
		owner := l.peer.incarnation()
		f.haveRows = crdt.RowDigest{owner: r.rows.Known(owner)}
		l.oweRows = false
	}
	if len(l.oweSums) > 0 {
		f.haveSums = make(crdt.SummaryDigest)
		for site := range l.oweSums {
			f.haveSums[site] = r.sums.Known(site)
		}
		clear(l.oweSums)
	}
	if len(l.oweLWW) > 0 {
		f.haveLWW = make(crdt.LWWDigest)
		for writer, told := range l.oweLWW {
			f.haveLWW[writer] = max(told, r.lww.KnownOf(writer))
		}
		clear(l.oweLWW)
	}
}

// addRows adds our own row for a member of our site. It, like its kin, returns
// how many bytes of the message are left.
func (r *Replica) addRows(f *frame, l *link, left int, now time.Time) int {
	self := r.cfg.Self
	if l.peer.Site != r.cfg.Site || left < minPart || !l.rows.dueOne(self, r.rows.Known(self), now) {
		return left
	}
	f.rows = r.rows.DeltaOf(self, l.rows.acked[self], left)
	for _, p := range f.rows.Pieces {
		l.rows.sending(p.Owner, p.To, now)
	}
	return left - f.keep(rowsPart, f.rows.Empty(), f.rows.AppendBinary)
}

// minPart is the least worth beginning a delta with.
const minPart = 256

// addSums adds our site's summary for the relay of another site, and all
// others' for members of our own, if we lead it.
func (r *Replica) addSums(f *frame, l *link, left int, now time.Time) int {
	if !r.lead.on || left < minPart || !r.sumsDue(l, now) {
		return left
	}
	f.sums = r.sums.DeltaOf(r.newsFor(l), l.sums.acked, left)
	for _, p := range f.sums.Pieces {
		l.sums.sending(p.Site, crdt.Version{Epoch: p.Epoch, Publisher: p.Publisher, Seq: p.To}, now)
	}
	return left - f.keep(sumsPart, f.sums.Empty(), f.sums.AppendBinary)
}

// sumsDue reports whether we, who lead our site, have a summary for a peer: ours
// for the relay of another site, all others' for a member of our own.
func (r *Replica) sumsDue(l *link, now time.Time) bool {
	own := r.cfg.Site
	if l.peer.Site != own {
		return r.isRelay(l) && l.sums.dueOne(own, r.sums.Known(own), now)
	}
	for site := range r.sums.Sites() {
		if site != own && l.sums.dueOne(site, r.sums.Known(site), now) {
			return true
		}
	}
	return false
}

// newsFor returns the sites whose summaries a peer would hear from us and does
// not have, sorted. With hundreds of sites most have nothing new, and between two
// sites it is about one of them: neither shall cost a list of all.
func (r *Replica) newsFor(l *link) []string {
	own := r.cfg.Site
	if l.peer.Site != own {
		return []string{own}
	}
	var sites []string
	for site := range r.sums.Sites() {
		if site != own && r.sums.Known(site).Compare(l.sums.acked[site]) > 0 {
			sites = append(sites, site)
		}
	}
	slices.Sort(sites)
	return sites
}

// keepFor takes out of a digest the sites of which a peer would not hear from
// us: a member of our site sums up its rows itself; another site believes us
// only about ours, and of that a relay that has laid down the lead knows
// nothing new.
func (r *Replica) keepFor(have crdt.SummaryDigest, l *link) {
	mate := l.peer.Site == r.cfg.Site
	for site := range have {
		if own := site == r.cfg.Site; own == mate || own && !r.lead.on {
			delete(have, site)
		}
	}
}

// lacking turns what a peer has into a digest that asks for nothing but the
// sites in have.
func (r *Replica) lacking(have, peer crdt.SummaryDigest) crdt.SummaryDigest {
	ask := make(crdt.SummaryDigest)
	for site := range r.sums.Sites() {
		ask[site] = crdt.Version{Epoch: math.MaxUint64}
		if _, ok := have[site]; ok {
			ask[site] = peer[site]
		}
	}
	return ask
}

// addLWW adds our own writes for members of our site. If we lead it, everybody's
// go to them and to the relays of other sites.
func (r *Replica) addLWW(f *frame, l *link, left int, now time.Time) {
	mate := l.peer.Site == r.cfg.Site
	if left < minPart || !mate && !(r.lead.on && r.isRelay(l)) {
		return
	}
	if !r.lwwDue(l, now) {
		return // nearly always
	}
	ask := make(crdt.LWWDigest)
	for writer, known := range r.lww.Known() {
		ask[writer] = known
		if r.tells(l, writer) {
			ask[writer] = l.lww.acked[writer]
		}
	}
	f.lww = r.lww.Delta(ask, left)
	if f.lww.Whole && r.lead.on {
		f.flags, f.to = f.flags|flagWhole, l.peer.Boot
	}
	for writer, known := range r.lww.Known() {
		if known > ask[writer] && !f.lww.Empty() {
			l.lww.sending(writer, known, now) // what did not fit is asked for, and need not go with the next push
		}
	}
}

// tells reports whether a peer hears of a node's writes from us.
func (r *Replica) tells(l *link, writer crdt.NodeID) bool {
	return writer != l.peer.ID && (r.lead.on || writer == r.cfg.Self.Node)
}

// lwwDue reports whether a peer needs to be sent some of those writes. A relay of
// hundreds of sites would look at thousands of writers for each of them with every
// push, so it keeps in mind who has all.
func (r *Replica) lwwDue(l *link, now time.Time) bool {
	if !r.lead.on {
		self := r.cfg.Self.Node
		return r.tells(l, self) && l.lww.dueOne(self, r.lww.KnownOf(self), now)
	}
	is := r.lww.Tells()
	if l.full == is {
		return false
	}
	all := true
	for writer, known := range r.lww.Known() {
		if !r.tells(l, writer) {
			continue
		}
		if l.lww.dueOne(writer, known, now) {
			return true
		}
		all = all && known <= l.lww.acked[writer]
	}
	if all {
		l.full = is
	}
	return false
}

// tellsAgain reports whether a peer was told of the last-writer map long enough ago, or never, and
// has not said that it has all.
func (r *Replica) tellsAgain(l *link, now time.Time) bool {
	return r.lead.on && l.full != r.lww.Tells() && !now.Before(l.lww.at.Add(resendAfter))
}

// askMates has the one that leads the site ask each member of it for all it knows: when that
// comes, or comes back from behind a cut, and when we take the lead from somebody who may have told
// it more. Members push what they wrote themselves, and the rest is for the one that leads to pass
// on; it would hear of it only with one of its pulls.
func (r *Replica) askMates(out []Message, now time.Time) []Message {
	for _, l := range r.mates() {
		switch {
		case !r.lead.on:
			l.answered = false
		case !l.answered && now.Sub(l.asked) >= resendAfter:
			out = append(out, r.pullFrom(l, flagFill, now))
		}
	}
	return out
}

// appendPull asks one peer for what we lack, mostly one of our site.
func (r *Replica) appendPull(out []Message, now time.Time) []Message {
	near := r.mates()
	if len(near) > 0 && (len(r.relays) == 0 || r.cfg.Rand.IntN(farPulls) != 0) {
		return append(out, r.pullFrom(near[r.cfg.Rand.IntN(len(near))], 0, now))
	}
	if len(r.relays) == 0 {
		return out
	}
	sites := slices.Sorted(maps.Keys(r.relays))
	p, ok := r.peers.Find(r.relays[sites[r.cfg.Rand.IntN(len(sites))]])
	if !ok {
		return out
	}
	return append(out, r.pullFrom(r.list(p), 0, now))
}

// pullFrom asks one peer for all that we would take from it. A joiner wants to be answered in any case: the answer to what
// it has asked before does not count any more.
func (r *Replica) pullFrom(l *link, flags byte, now time.Time) Message {
	if !r.fill.done {
		flags |= flagFill
	}
	l.round++
	l.asked = now
	f := &frame{kind: pull, flags: flags, round: l.round, haveLWW: r.lww.Digest(), haveSums: r.sums.Digest()}
	if l.peer.Site == r.cfg.Site {
		delete(f.haveSums, r.cfg.Site)
		f.haveRows = r.rows.Digest()
		for owner := range f.haveRows {
			// Nobody knows more of our own row than we, unless our disk was rolled
			// back; a joiner asks, to know that before it does anything.
			if r.fill.done && (owner == r.cfg.Self || owner != l.peer.incarnation() && r.speaks(owner, now)) {
				f.haveRows[owner] = skip
			}
		}
	} else {
		for site := range f.haveSums {
			if site != l.peer.Site && site != r.cfg.Site {
				delete(f.haveSums, site)
			}
		}
	}
	if r.transfer.from == l {
		f.gotLWW = r.transfer.first((r.cfg.MaxMessage - overhead - haveSize(f)) / maxMark)
	}
	return r.message(l.peer.ID, f)
}

// answerTo returns what the sender of a pull lacks and would take from us.
func (r *Replica) answerTo(l *link, q *frame) *frame {
	f := &frame{kind: answer, to: l.peer.Boot, round: q.round}
	left := r.cfg.MaxMessage - overhead
	more := false
	if l.peer.Site == r.cfg.Site {
		f.rows = r.rows.Delta(q.haveRows, left)
		left -= f.keep(rowsPart, f.rows.Empty(), f.rows.AppendBinary)
		then := make(crdt.RowDigest)
		maps.Copy(then, q.haveRows)
		for _, p := range f.rows.Pieces {
			then[p.Owner] = p.To
		}
		more = ahead(r.rows.Digest(), then, cmp.Compare[uint64])
	}
	sums := r.sums.Digest()
	r.keepFor(sums, l)
	if left >= minPart {
		f.sums = r.sums.Delta(r.lacking(sums, q.haveSums), left)
		left -= f.keep(sumsPart, f.sums.Empty(), f.sums.AppendBinary)
		more = more || slices.ContainsFunc(f.sums.Pieces, func(p crdt.SummaryPiece) bool {
			return p.To < sums[p.Site].Seq
		})
	}
	if left >= minPart {
		if f.lww = r.lww.DeltaAfter(q.haveLWW, q.gotLWW, left); f.lww.Whole {
			f.flags |= flagWhole
		}
		more = more || !f.lww.Whole
	}
	if more || left < minPart {
		f.flags |= flagMore
	}
	return f
}

// ahead reports whether any part of a is beyond b.
func ahead[K comparable, V any](a, b map[K]V, compare func(a, b V) int) bool {
	for k, v := range a {
		if compare(v, b[k]) > 0 {
			return true
		}
	}
	return false
}

// message wraps a frame up and counts it. Frames of one type replace each other.
func (r *Replica) message(to crdt.NodeID, f *frame) Message {
	if r.fill.done {
		f.flags |= flagReady
	}
	m := Message{To: to, Slot: uint64(f.kind), Payload: f.encode()}
	r.stats.MessagesOut[f.kind.String()]++
	r.stats.BytesOut[f.kind.String()] += uint64(len(m.Payload))
	return m
}
