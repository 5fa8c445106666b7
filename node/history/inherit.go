package history

import (
	"fmt"
	"math"

	"github.com/ropeline/ropeline/crdt"
)

// inherited is what nodes that have left had recorded of a room: minutes in no order, of several nodes,
// each node's added up before. Its bytes are appended to and never changed.
type inherited struct {
	data    []byte
	records int
}

// maxInherited is how many minutes of a room lie beside each other before they are merged.
const maxInherited = 2 * int(spanMinutes)

// Inheritance is what a node that has left had recorded, being taken over in steps: a day of many rooms
// takes longer than a node may stand still for.
type Inheritance struct {
	left []ofRoom
	kept []ofRoom
}

// NewInheritance reads what the AppendBinary of another node wrote. Data is kept.
func NewInheritance(data []byte) (*Inheritance, error) {
	all, err := decodeFrame(data)
	if err != nil {
		return nil, fmt.Errorf("inherit history: %w", err)
	}
	return &Inheritance{left: all}, nil
}

// Inherit takes over the next rooms, of about so many minutes, and reports whether that were all. After an
// error it goes on with the next room.
func (r *Recorder) Inherit(in *Inheritance, most int) (done bool, err error) {
	for most > 0 && len(in.left) > 0 {
		of := in.left[0]
		in.left = in.left[1:]
		s, err := of.series()
		if err != nil {
			return len(in.left) == 0, fmt.Errorf("inherit history of room %s: %w", of.room, err)
		}
		is := ofRoom{room: of.room, inherited: s.appendRecords(nil)}
		most -= 1 + r.inherit(of.room, is.inherited, len(s))
		in.kept = append(in.kept, is)
	}
	return len(in.left) == 0, nil
}

// AppendBinary appends what was taken over, as Restore reads it.
func (in *Inheritance) AppendBinary(dst []byte) ([]byte, error) { return appendFrame(dst, in.kept) }

// series returns what a node had recorded, or inherited itself, of a room.
func (of *ofRoom) series() (Series, error) {
	own, err := readRecords(of.records, 1)
	if err != nil {
		return nil, err
	}
	others, err := readRecords(of.inherited, maxNodes)
	return Merge(own.sorted(Minute.then), others), err
}

// check returns what is wrong with records that come from outside.
func (of *ofRoom) check() error {
	_, err := readRecords(of.records, 1)
	if err == nil {
		_, err = readRecords(of.inherited, maxNodes)
	}
	return err
}

// readRecords reads records, each of so many nodes at most.
func readRecords(b []byte, nodes int64) (s Series, err error) {
	err = eachRecord(b, func(m Minute) error {
		if m.Nodes > nodes {
			return fmt.Errorf("%w: a minute that %d nodes recorded, at most %d can have", ErrMalformed, m.Nodes, nodes)
		}
		s = append(s, m)
		return nil
	})
	return s, err
}

func (s Series) appendRecords(dst []byte) []byte {
	for i := range s {
		dst = appendRecord(dst, &s[i], mostHistogram)
	}
	return dst
}

// inherit adds n records of others to a room's past, and returns how many were looked at for that.
func (r *Recorder) inherit(room crdt.RoomID, records []byte, n int) (cost int) {
	l := r.room(room)
	if l == nil {
		r.refused++
		return n
	}
	cost = n
	r.setInherited(l, append(l.inherited.data, records...), l.inherited.records+n)
	if l.inherited.records > maxInherited || r.inherited > r.cfg.Bytes/2 {
		cost += l.inherited.records
		s := l.others().since(r.minute - spanMinutes)
		r.setInherited(l, s.appendRecords(nil), len(s))
	}
	for r.inherited > r.cfg.Bytes/2 { // the oldest hour goes, whichever room's it is
		r.forgetInherited(r.oldestInherited() + chunkMinutes)
	}
	r.fit()
	return cost
}

func (r *Recorder) setInherited(l *roomLog, data []byte, n int) {
	r.inherited += cap(data) - cap(l.inherited.data)
	l.inherited = inherited{data, n}
}

// others returns what others have recorded of a room.
func (l *roomLog) others() Series {
	s, err := readRecords(l.inherited.data, maxNodes)
	if err != nil {
		panic("history: a record that was read before: " + err.Error())
	}
	return Merge(s)
}

func (s Series) since(minute int64) Series {
	for len(s) > 0 && s[0].At < minute {
		s = s[1:]
	}
	return s
}

// forgetInherited forgets what others recorded before a minute.
func (r *Recorder) forgetInherited(before int64) {
	for _, l := range r.rooms {
		var kept []byte
		n := 0
		for rest := l.inherited.data; len(rest) > 0; {
			whole := rest
			var at int64
			if _, rest, at, _ = cutRecord(rest); at >= before {
				kept, n = append(kept, whole[:len(whole)-len(rest)]...), n+1
			}
		}
		if n < l.inherited.records {
			r.setInherited(l, append([]byte(nil), kept...), n)
		}
	}
}

// oldestInherited returns the first minute that others have recorded.
func (r *Recorder) oldestInherited() int64 {
	oldest := int64(math.MaxInt64 - chunkMinutes)
	for _, l := range r.rooms {
		for rest := l.inherited.data; len(rest) > 0; {
			var at int64
			_, rest, at, _ = cutRecord(rest)
			oldest = min(oldest, at)
		}
	}
	return oldest
}
