package limit

import "math"

// lag tells how much longer than others a message was on its way: where a node was stopped
// for a while, or a link held up, what was sent before comes all at once, and must not be
// taken for newer than it is. Clocks need not agree: how far they are apart is in all that
// messages seem to take. The first message is taken to be in time.
type lag struct {
	boot  uint64    // of the sender, whose clock may be another after each start
	least [2]Millis // that a message seemed to take, in this span and in the one before
	since Millis    // when this span began
}

// lagSpan is for how long it counts that a message took little, at least. Meanwhile clocks
// must not drift apart by what matters.
const lagSpan Millis = 60_000

// of returns how late a message is.
func (l *lag) of(boot uint64, sent, now Millis) Millis {
	took := now - sent
	switch {
	case boot != l.boot:
		*l = lag{boot, [2]Millis{took, math.MaxInt64}, now}
	case now-l.since >= lagSpan || now < l.since:
		l.least, l.since = [2]Millis{took, l.least[0]}, now
	}
	l.least[0] = min(l.least[0], took)
	return took - min(l.least[0], l.least[1])
}
