package ticket

import "time"

// claim extends the lease of a ticket that this anchor issued before it
// restarted. Such a ticket enters only while the block is open, is counted in it
// once, and stays counted until the block ends, whatever becomes of it: ending
// it early would free a place that another ticket of the block may stand for.
func (l *Leases) claim(t Ticket, passEnd, at, now time.Time) (end time.Time, err error) {
	b := &l.block
	key := earlier{t.Boot, t.Seq, t.Block}
	ms := now.UnixMilli()
	old, claimed := b.claims[key]
	switch {
	case claimed && ms > old+guardMS: // claimEnded is longer ago than anything
		return time.Time{}, ErrEnded
	case claimed:
		next := l.extended(old, at, now)
		b.claims[key] = next
		return time.UnixMilli(next), nil
	case b.closed, ms > b.end, ms > passEnd.UnixMilli()+guardMS:
		return time.Time{}, ErrEnded
	}
	// However far ahead the clock was that wrote the pass, it promised no more
	// than a session from a moment that is past.
	next := l.extended(min(passEnd.UnixMilli(), ms+l.session+guardMS), at, now)
	b.claims[key] = next
	b.expiry.push(next, key)
	b.live++
	if len(b.claims) > b.size {
		b.extra++
		l.delta.P++
	}
	return time.UnixMilli(next), nil
}

// inUse returns how many places the block and its claims take.
func (b *block) inUse() int {
	if b.closed {
		return b.live
	}
	return b.size + b.extra
}

// endClaim ends a claim that lives. Its place is free at once only if the
// block, which counts it otherwise, has closed.
func (l *Leases) endClaim(key earlier) {
	b := &l.block
	end, claimed := b.claims[key]
	if !claimed || end == claimEnded {
		return
	}
	b.live--
	if b.closed {
		delete(b.claims, key)
		l.delta.N++
		return
	}
	b.claims[key] = claimEnded
}

// expireClaims ends the claims whose end is at due or before.
func (l *Leases) expireClaims(due int64) {
	b := &l.block
	for {
		t, ok := b.expiry.pop(due)
		if !ok {
			return
		}
		if end := b.claims[t.key]; end > due {
			b.expiry.push(end, t.key)
			continue
		}
		l.endClaim(t.key)
	}
}

// closeBlock ends the block: from then on each claim stands for itself, and
// what nobody claimed is free.
func (l *Leases) closeBlock() {
	b := &l.block
	l.delta.N += uint64(b.inUse() - b.live)
	b.closed = true
	for key, end := range b.claims {
		if end == claimEnded {
			delete(b.claims, key)
		}
	}
}
