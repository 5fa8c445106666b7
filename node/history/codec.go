package history

import (
	"bytes"
	"fmt"
	"io"
	"math"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/ropeline/ropeline/crdt"
)

// An encoding is msgpack: a version, then a flat row of array headers and byte strings.
// Inside of these, minutes stand as they do in memory.
const codecVersion = 2

const (
	// MaxState is the size in bytes of the largest encoding that is decoded at all.
	MaxState = 1<<30 + 1<<24
	// MaxSeries is the same for a single series, a day of the busiest room.
	MaxSeries = 1 << 20
)

// AppendBinary appends all that r knows, the open minute included. Restore reads it.
func (r *Recorder) AppendBinary(dst []byte) ([]byte, error) {
	var all []ofRoom
	for _, id := range r.Rooms() {
		l := r.rooms[id]
		var b []byte
		for _, c := range l.chunks {
			b = append(b, c.data...)
		}
		if l.open.any {
			m := l.open.minute(r.minute)
			b = appendRecord(b, &m, mostHistogram)
		}
		if len(b) > 0 || l.inherited.records > 0 {
			all = append(all, ofRoom{id, b, l.inherited.data})
		}
	}
	return appendFrame(dst, all)
}

// AppendClosed appends the minute that was closed last, of all rooms. Restore reads it.
// Who keeps a file of these, one after another with their lengths, loses no more than the
// open minute in a crash.
func (r *Recorder) AppendClosed(dst []byte) ([]byte, error) { return appendFrame(dst, r.closed) }

func appendFrame(dst []byte, all []ofRoom) ([]byte, error) {
	buf := bytes.NewBuffer(dst)
	enc := msgpack.NewEncoder(buf)
	enc.UseCompactInts(true)
	err := enc.EncodeUint(codecVersion)
	if err == nil {
		err = enc.EncodeArrayLen(len(all))
	}
	for _, of := range all {
		for _, b := range [...][]byte{of.room[:], of.records, of.inherited} {
			if err == nil {
				err = enc.EncodeBytesLen(len(b)) // what is nil is empty
			}
			if err == nil {
				_, err = buf.Write(b)
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("encode history: %w", err)
	}
	return buf.Bytes(), nil
}

// Restore adds what AppendBinary or AppendClosed wrote, behind what is known already. Either
// all of it is taken or, with an error, nothing. Rooms for which there is no place are
// counted by Refused. Data is not kept.
func (r *Recorder) Restore(data []byte) error {
	all, err := decodeFrame(data)
	if err != nil {
		return fmt.Errorf("restore history: %w", err)
	}
	for i := range all {
		if err := all[i].check(); err != nil {
			return fmt.Errorf("restore history of room %s: %w", all[i].room, err)
		}
	}
	for _, of := range all {
		if n := countRecords(of.inherited); n > 0 {
			r.inherit(of.room, of.inherited, n)
		}
	}
	// Rooms take turns, so that where memory is short all lose their oldest hours alike.
	for len(all) > 0 {
		left := all[:0]
		for _, of := range all {
			l := r.room(of.room)
			if l == nil {
				r.refused++
				continue
			}
			if of.records = r.take(l, of.records, chunkMinutes); len(of.records) > 0 {
				left = append(left, of)
			}
		}
		all = left
	}
	return nil
}

// take appends the first records to a room's past, and returns the rest.
func (r *Recorder) take(l *roomLog, records []byte, most int) (rest []byte) {
	rest = records
	for range most {
		if len(rest) == 0 {
			break
		}
		before := rest
		var err error
		if _, rest, _, err = cutRecord(rest); err != nil {
			panic("history: a record that was read before: " + err.Error())
		}
		r.append(l, before[:len(before)-len(rest)])
	}
	return rest
}

// countRecords returns how many records there are, which were read before.
func countRecords(b []byte) (n int) {
	for ; len(b) > 0; n++ {
		_, b, _, _ = cutRecord(b)
	}
	return n
}

// decodeFrame reads which rooms there are records of, and does not look at these; the results point into data.
func decodeFrame(data []byte) ([]ofRoom, error) {
	r, err := newReader(data, MaxState)
	if err != nil {
		return nil, err
	}
	const least = 2 + len(crdt.RoomID{}) + 2 // of one room
	n, err := r.dec.DecodeArrayLen()
	if err != nil || n < 0 || n > r.src.Len()/least {
		return nil, fmt.Errorf("%w: %d rooms in %d bytes (%v)", ErrMalformed, n, r.src.Len(), err)
	}
	all := make([]ofRoom, 0, n)
	for range n {
		id, err := r.bytes()
		if err != nil {
			return nil, err
		}
		if len(id) != len(crdt.RoomID{}) {
			return nil, fmt.Errorf("%w: a room id of %d bytes", ErrMalformed, len(id))
		}
		records, err := r.bytes()
		if err != nil {
			return nil, err
		}
		others, err := r.bytes()
		if err != nil {
			return nil, err
		}
		all = append(all, ofRoom{crdt.RoomID(id), records, others})
	}
	return all, r.end()
}

// AppendBinary appends s as DecodeSeries reads it.
func (s Series) AppendBinary(dst []byte) ([]byte, error) {
	b := s.appendRecords([]byte{})
	buf := bytes.NewBuffer(dst)
	enc := msgpack.NewEncoder(buf)
	enc.UseCompactInts(true)
	if err := enc.EncodeUint(codecVersion); err != nil {
		return nil, fmt.Errorf("encode history: %w", err)
	}
	if err := enc.EncodeBytes(b); err != nil {
		return nil, fmt.Errorf("encode history: %w", err)
	}
	return buf.Bytes(), nil
}

// DecodeSeries reads what Series.AppendBinary wrote. It refuses more minutes than a day
// has, and such as are not in the order of time.
func DecodeSeries(data []byte) (Series, error) {
	r, err := newReader(data, MaxSeries)
	if err != nil {
		return nil, err
	}
	records, err := r.bytes()
	if err != nil {
		return nil, err
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	var s Series
	err = eachRecord(records, func(m Minute) error {
		if last := len(s) - 1; last >= 0 && s[last].At >= m.At {
			return fmt.Errorf("%w: minute %d after %d", ErrMalformed, m.At, s[last].At)
		}
		if int64(len(s)) == spanMinutes {
			return fmt.Errorf("%w: more than %d minutes", ErrMalformed, spanMinutes)
		}
		s = append(s, m)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func eachRecord(b []byte, use func(Minute) error) error {
	for len(b) > 0 {
		record, rest, _, err := cutRecord(b)
		if err != nil {
			return err
		}
		m, err := readRecord(record)
		if err != nil {
			return err
		}
		if err := use(m); err != nil {
			return err
		}
		b = rest
	}
	return nil
}

// reader takes the outer layer of an encoding apart. Nothing is allocated for a length
// that the input does not have.
type reader struct {
	data []byte
	src  *bytes.Reader
	dec  *msgpack.Decoder
}

func newReader(data []byte, limit int) (*reader, error) {
	if len(data) > limit {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are read", ErrMalformed, len(data), limit)
	}
	r := &reader{data: data, src: bytes.NewReader(data)}
	r.dec = msgpack.NewDecoder(r.src)
	version, err := r.dec.DecodeUint64()
	if err != nil || version > math.MaxUint8 || version != codecVersion {
		return nil, fmt.Errorf("%w: version %d, want %d (%v)", ErrMalformed, version, codecVersion, err)
	}
	return r, nil
}

// bytes returns a string that points into the input.
func (r *reader) bytes() ([]byte, error) {
	n, err := r.dec.DecodeBytesLen()
	if err != nil {
		return nil, fmt.Errorf("%w: length: %w", ErrMalformed, err)
	}
	if n < 0 || n > r.src.Len() {
		return nil, fmt.Errorf("%w: string of %d bytes, left %d", ErrMalformed, n, r.src.Len())
	}
	at := len(r.data) - r.src.Len()
	if _, err := r.src.Seek(int64(n), io.SeekCurrent); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return r.data[at : at+n], nil
}

func (r *reader) end() error {
	if n := r.src.Len(); n > 0 {
		return fmt.Errorf("%w: %d bytes too many", ErrMalformed, n)
	}
	return nil
}
