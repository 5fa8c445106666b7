package node

import (
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// brief is a time in a third of its memory, for rooms, of which there may be thousands: Unix
// ns, which reach to the year 2262. Times that a Core is given have no monotonic reading, so
// nothing of them is lost. The zero value is the zero time.
type brief int64

func briefOf(t time.Time) brief {
	if t.IsZero() {
		return 0
	}
	return brief(crdt.Nanos(t))
}

func (m brief) time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(m))
}
