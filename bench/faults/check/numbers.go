package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ropeline/ropeline/bench/faults/record"
)

// Numbers checks that the tickets of each block, or of the rest of a start, are what a counter hands out that goes
// up with every call. A call is under way from when its request was there until its answer left, and may take effect
// at any time between. Some order of all calls explains their numbers if and only if no call began after one with a
// greater number had ended: the order can only be that of the numbers, and then each call takes effect when the
// latest beginning of those before it, and its own, is past.
//
// Tickets of sessions that go on elsewhere are not looked at: nobody called for those. Calls that crashed have no answer
// and are not on record, so numbers may be missing. Some sixteen bytes per ticket are kept for as long as the run lasts.
type Numbers struct {
	counters map[counter][]given // each greater than those before it
	doubts   map[ticket]doubt
}

type counter struct {
	start
	block uint32
}

type ticket struct {
	start
	seq uint64
}

type given struct {
	seq uint64
	at  int64
}

// doubt is a number that was asked for when a greater one had been given, as far as is known.
type doubt struct {
	greater given
	called  int64
	block   uint32
}

// Add takes one event. first says whether it is the first to tell of its ticket, as [Tickets.Add] reports.
func (n *Numbers) Add(at record.Located, first bool) {
	e := at.Event
	if e.Kind != record.Entered {
		return
	}
	k := counter{start{e.Room, e.Anchor, e.Boot}, e.Block}
	t := ticket{k.start, e.Seq}
	if !first { // the same answer once more, maybe to the call that came first
		if d, is := n.doubts[t]; is && e.Called() <= d.greater.at {
			delete(n.doubts, t)
		}
		return
	}
	if n.counters == nil {
		n.counters, n.doubts = map[counter][]given{}, map[ticket]doubt{}
	}
	all := n.counters[k]
	i, _ := slices.BinarySearchFunc(all, e.Seq, func(g given, seq uint64) int { return cmp.Compare(g.seq, seq) })
	if i == len(all) {
		n.counters[k] = append(all, given{e.Seq, e.At})
	} else if all[i].at < e.Called() {
		n.doubts[t] = doubt{all[i], e.Called(), e.Block}
	}
}

// Wrong says in words which numbers no order of the calls explains, the first of them.
func (n *Numbers) Wrong() (wrong []string) {
	for t, d := range n.doubts {
		if len(wrong) == maxDescribed {
			break
		}
		wrong = append(wrong, fmt.Sprintf("number %d of %016x, start %d, block %d was asked for %v after %d had been given",
			t.seq, t.anchor, t.boot, d.block, time.Duration(d.called-d.greater.at), d.greater.seq))
	}
	return wrong
}
