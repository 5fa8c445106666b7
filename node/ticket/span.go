package ticket

import "time"

// span is how long sessions are to last, and for how long longer ones of before have
// to be reckoned with.
type span struct {
	session int64 // ms, as it was set last
	until   int64 // Unix ms; leases may last for the longest session until then
}

// openSpan has the sessions of a start last for as long as they are to, as far as the
// store covers that.
func (r *Rights) openSpan(now time.Time) {
	r.span.session = r.cfg.Session.Milliseconds()
	r.leases.longest = r.book.disk.span
	r.follow()
	r.reckon(now)
}

// SetSession changes how long a check-in lasts. Leases keep the end they have. A
// longer session holds once it is written, so that no restart counts leases for a
// shorter time than they last; until then the longest one that is written does.
func (r *Rights) SetSession(session time.Duration, now time.Time) {
	if r.span.session == session.Milliseconds() {
		return
	}
	r.reckon(now)
	r.span.session = session.Milliseconds()
	r.follow()
}

// Session returns how long a first pass may last that is given now with a ticket of
// this node.
func (r *Rights) Session() time.Duration {
	return time.Duration(r.leases.session) * time.Millisecond
}

// reckon keeps the longest session of up to now in mind for as long as leases of now
// may last.
func (r *Rights) reckon(now time.Time) {
	r.span.until = max(r.span.until, r.blockEnd(now).UnixMilli())
}

// follow has sessions last for as long as they are to, as far as the store covers it,
// and has the rest of it written. A store that says nothing covers nothing: there
// reserve waits for it. While rights limit nothing, sessions go on that were let in by
// rights, and have to be counted when rights are the limit again, also after a restart.
func (r *Rights) follow() {
	session, covered := r.span.session, r.book.span()
	if covered != 0 && session > covered && r.cfg.LeaveOut&BoundBeforeUse == 0 {
		session = covered
		r.setSpan()
	}
	r.leases.SetSession(time.Duration(session) * time.Millisecond)
	r.leases.longest = max(r.leases.longest, r.promises())
}

// promises returns how long a session may last, in ms, of a visitor who is let in now.
// Where rights limit nothing passes do not wait for the disk.
func (r *Rights) promises() int64 {
	if r.cfg.Unlimited {
		return max(r.leases.session, r.span.session)
	}
	return r.leases.session
}

// outlast reckons with sessions of others that may be longer than this node's own.
func (r *Rights) outlast(session time.Duration, now time.Time) {
	r.leases.longest = max(r.leases.longest, session.Milliseconds())
	r.reckon(now)
	r.setSpan()
}

// shorten forgets about longer sessions than those of now once they are all over:
// else one of a day would have all restarts to come count what is in use for a day.
func (r *Rights) shorten(now time.Time) {
	if r.leases.longest <= r.promises() || now.UnixMilli() <= r.span.until || len(r.taking) > 0 || r.stopped() {
		return
	}
	r.leases.longest = r.promises()
	if r.book.next.span != 0 {
		r.setSpan()
	}
}

// setSpan has it written how long leases may last, if that has changed.
func (r *Rights) setSpan() {
	if n := max(r.leases.longest, r.span.session); r.book.next.span != n {
		r.book.next.span = n
		r.book.mark(keySpan)
	}
}

// Longest returns the longest session that leases here last, or are to.
func (r *Rights) Longest() time.Duration {
	return max(r.longest(), time.Duration(r.span.session)*time.Millisecond)
}

// longest returns the longest session that a lease here may last.
func (r *Rights) longest() time.Duration {
	return time.Duration(r.leases.longest) * time.Millisecond
}

// blockEnd returns until when leases that somebody gave before now may last: the
// last of them with a ticket that was lent just then.
func (r *Rights) blockEnd(now time.Time) time.Time {
	return now.Add(r.longest() + blockGuards*Guard + LoanValid + TakeUp)
}
