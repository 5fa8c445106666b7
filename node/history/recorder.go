package history

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// Span is how far back a Recorder remembers.
const Span = 24 * time.Hour

const (
	spanMinutes  = int64(Span / time.Minute)
	chunkMinutes = 60                           // records that are thrown away together
	maxChunks    = spanMinutes/chunkMinutes + 1 // of a room, the one being filled included
)

// Config bounds a Recorder.
type Config struct {
	// Rooms is how many rooms are recorded at most; what is said of more is counted by
	// [Recorder.Refused] and forgotten. A room takes some 300 bytes while it is recorded, and
	// in minutes in which somebody who waited was let in, or whose session ended, up to 2.5 KB
	// more, beside its minutes. Default 1,000, at most 100,000.
	Rooms int
	// Bytes is how much all closed minutes take at most. Less keeps fewer hours of many
	// busy rooms. Default 32 MiB, which is a day of 200 busy ones; from 64 KiB to 1 GiB.
	Bytes int
}

// Recorder keeps what one node has seen and done, for a day. One goroutine owns it. It must
// be made by New.
type Recorder struct {
	cfg       Config
	minute    int64 // that is open
	rooms     map[crdt.RoomID]*roomLog
	bytes     int      // of all chunks
	inherited int      // bytes; see inherit.go
	begun     uint64   // chunks, ever
	closed    []ofRoom // records of the minute that was closed last
	refused   uint64
}

// ofRoom is records of one room: this node's, and what others had left to it.
type ofRoom struct {
	room      crdt.RoomID
	records   []byte
	inherited []byte
}

// roomLog is one room's past: closed minutes in the order in which they were closed, which
// is that of time unless the clock jumps.
type roomLog struct {
	open   openMinute
	chunks []chunk // never empty

	inherited inherited
}

// chunk holds up to chunkMinutes records. Its bytes are appended to and never changed.
type chunk struct {
	data    []byte
	records int
	age     uint64 // chunks that were begun before this one, of all rooms
}

// openMinute is the part of a minute that has been. The zero value is nothing.
type openMinute struct {
	any    bool
	gauges Gauges
	counts Counts
	waits  live
	stays  live
}

// New returns a Recorder that knows nothing.
func New(cfg Config) (*Recorder, error) {
	if cfg.Rooms == 0 {
		cfg.Rooms = 1000
	}
	if cfg.Bytes == 0 {
		cfg.Bytes = 32 << 20
	}
	if cfg.Rooms < 1 || cfg.Rooms > 100_000 {
		return nil, fmt.Errorf("history: rooms is %d, allowed are 1 to 100000", cfg.Rooms)
	}
	if cfg.Bytes < 64<<10 || cfg.Bytes > 1<<30 {
		return nil, fmt.Errorf("history: bytes is %d, allowed are %d to %d", cfg.Bytes, 64<<10, 1<<30)
	}
	return &Recorder{cfg: cfg, rooms: map[crdt.RoomID]*roomLog{}}, nil
}

// See takes what the node sees of a room now. Several times a minute, at even intervals,
// gives an average that means something.
func (r *Recorder) See(room crdt.RoomID, s Seen, now time.Time) {
	if o := r.at(room, now); o != nil {
		o.gauges.see(s)
	}
}

// Count adds what the node itself has done.
func (r *Recorder) Count(room crdt.RoomID, c Counts, now time.Time) {
	if o := r.at(room, now); o != nil {
		o.counts = o.counts.plus(c)
	}
}

// Waited takes how long a visitor waited whom this node has let in. Visitors who did not
// have to wait are left out by the caller: they would hide how long the others did.
func (r *Recorder) Waited(room crdt.RoomID, d time.Duration, now time.Time) {
	if o := r.at(room, now); o != nil {
		o.waits.add(d)
	}
}

// Stayed takes the length of a session that ended at this node.
func (r *Recorder) Stayed(room crdt.RoomID, d time.Duration, now time.Time) {
	if o := r.at(room, now); o != nil {
		o.stays.add(d)
	}
}

// Forget throws away what is known of a room.
func (r *Recorder) Forget(room crdt.RoomID) {
	if l := r.rooms[room]; l != nil {
		for _, c := range l.chunks {
			r.bytes -= cap(c.data)
		}
		r.setInherited(l, nil, 0)
		delete(r.rooms, room)
	}
}

// Rooms returns the rooms of which something is known, in the order of their ids.
func (r *Recorder) Rooms() []crdt.RoomID {
	return slices.SortedFunc(maps.Keys(r.rooms), crdt.RoomID.Compare)
}

// Bytes returns how much memory closed minutes take.
func (r *Recorder) Bytes() int { return r.bytes + r.inherited }

// Most returns how many bytes a recorder like this one can have to pass on.
func (r *Recorder) Most() int { return r.cfg.Bytes + r.cfg.Rooms*64 + 64 }

// Refused returns how many observations were of rooms for which there was no place.
func (r *Recorder) Refused() uint64 { return r.refused }

// at returns the open minute of a room, or nil if there are too many rooms.
func (r *Recorder) at(room crdt.RoomID, now time.Time) *openMinute {
	r.Advance(now)
	l := r.room(room)
	if l == nil {
		r.refused++
		return nil
	}
	l.open.any = true
	return &l.open
}

// room returns nil if there are too many.
func (r *Recorder) room(id crdt.RoomID) *roomLog {
	l := r.rooms[id]
	if l == nil && len(r.rooms) < r.cfg.Rooms {
		l = new(roomLog)
		r.rooms[id] = l
		r.begin(l)
	}
	return l
}

func (r *Recorder) begin(l *roomLog) {
	l.chunks = append(l.chunks, chunk{age: r.begun})
	r.begun++
}

// Advance closes the open minute if now is in another one, and reports whether it did.
// What came at most a minute late belongs to the open one: several goroutines may have
// looked at the clock.
func (r *Recorder) Advance(now time.Time) bool {
	minute := minuteOf(now)
	if minute == r.minute || minute == r.minute-1 {
		return false
	}
	var rooms []crdt.RoomID
	var minutes []Minute
	for _, id := range r.Rooms() { // in order: equal input gives equal state
		if l := r.rooms[id]; l.open.any {
			rooms, minutes = append(rooms, id), append(minutes, l.open.minute(r.minute))
			l.open = openMinute{}
		}
	}
	most := r.histogramBytes(minutes)
	r.closed = r.closed[:0]
	for i, id := range rooms {
		r.closed = append(r.closed, ofRoom{room: id, records: r.append(r.rooms[id], appendRecord(nil, &minutes[i], most))})
	}
	if minute/chunkMinutes != r.minute/chunkMinutes {
		r.forgetInherited(minute - spanMinutes)
	}
	r.minute = minute
	return true
}

// usualMinute is how many bytes a record takes with two histograms that are not scattered.
const usualMinute = 100

// histogramBytes returns how many bytes a histogram may take, so that a day of minutes like
// these is remembered: those that are scattered share what the others leave.
func (r *Recorder) histogramBytes(minutes []Minute) int {
	scattered := 0
	for i := range minutes {
		for _, h := range [...]Histogram{minutes[i].Waits, minutes[i].Stays} {
			if len(h.cells) > leastHistogram/2 { // a cell is about two bytes
				scattered++
			}
		}
	}
	left := r.cfg.Bytes/int(spanMinutes+chunkMinutes) - usualMinute*len(minutes)
	return leastHistogram + min(max(left, 0)/max(scattered, 1), mostHistogram-leastHistogram)
}

func (o *openMinute) minute(at int64) Minute {
	return Minute{at, 1, o.gauges, o.counts, o.waits.histogram(), o.stays.histogram()}
}

// append adds a record to a room's past, and makes room for it. It returns the record
// as it is kept.
func (r *Recorder) append(l *roomLog, record []byte) []byte {
	c := &l.chunks[len(l.chunks)-1]
	if c.records == chunkMinutes {
		was := cap(c.data)
		c.data = append([]byte(nil), c.data...) // without the room to grow
		r.bytes += cap(c.data) - was
		r.begin(l)
		c = &l.chunks[len(l.chunks)-1]
	}
	was := cap(c.data)
	c.data = append(c.data, record...)
	c.records++
	r.bytes += cap(c.data) - was
	kept := c.data[len(c.data)-len(record):]
	if int64(len(l.chunks)) > maxChunks {
		r.dropFirst(l)
	}
	r.fit()
	return kept
}

// fit drops this node's oldest hours for as long as more is kept than may be. What others recorded is half of
// that at most.
func (r *Recorder) fit() {
	for r.bytes > 0 && r.Bytes() > r.cfg.Bytes {
		r.dropFirst(r.oldest())
	}
}

func (r *Recorder) dropFirst(l *roomLog) {
	r.bytes -= cap(l.chunks[0].data)
	l.chunks = slices.Delete(l.chunks, 0, 1)
	if len(l.chunks) == 0 {
		r.begin(l)
	}
}

// oldest returns the room whose first chunk is the oldest of those with anything in them.
func (r *Recorder) oldest() *roomLog {
	var found *roomLog
	for _, l := range r.rooms {
		if l.chunks[0].records > 0 && (found == nil || l.chunks[0].age < found.chunks[0].age) {
			found = l
		}
	}
	return found
}
