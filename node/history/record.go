package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Bounds of what a record may say, wide enough for anything that happens.
const (
	maxMinute  = 1 << 32
	maxNodes   = 1 << 16
	maxSamples = 1 << 20 // a minute has so many; a sum over them fits
	maxGauge   = 1 << 40
	maxCount   = 1 << 48
)

// A histogram takes at most leastHistogram bytes where memory is short, and mostHistogram,
// in which any of level 0 fits whose counts are small, where it is not.
const (
	leastHistogram = 48
	mostHistogram  = 320
)

// ErrMalformed is wrapped by every error of decoding.
var ErrMalformed = errors.New("malformed history")

// appendRecord appends one minute: the length of the rest, and then numbers of variable
// length in a fixed order. A histogram is its level and one, or 0 if it is empty, and runs
// of cells: how many there are, and for each the gap before it, its length and its counts.
// Each histogram takes at most so many bytes, if its coarsest level does.
func appendRecord(dst []byte, m *Minute, most int) []byte {
	var scratch [256]byte
	b := scratch[:0]
	num := func(numbers ...int64) {
		for _, n := range numbers {
			b = binary.AppendUvarint(b, uint64(n))
		}
	}
	g := &m.Gauges
	num(m.At, m.Nodes, g.Samples)
	if g.Samples > 0 {
		num(g.ActiveSum, g.ActiveMax, g.WaitingSum, g.WaitingMax, g.TotalActiveUsers, g.NewUsersPerMinute)
	}
	for _, n := range [...]uint64{m.Counts.New, m.Counts.Admitted, m.Counts.Ended, m.Counts.Revoked} {
		b = binary.AppendUvarint(b, min(n, maxCount))
	}
	b = appendHistogram(b, m.Waits, most)
	b = appendHistogram(b, m.Stays, most)
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

// appendHistogram lowers the resolution until the histogram is small enough.
func appendHistogram(dst []byte, h Histogram, most int) []byte {
	if len(h.cells) == 0 {
		return append(dst, 0)
	}
	for {
		b := appendRuns(append(dst, h.level+1), h.cells)
		if len(b)-len(dst) <= most || h.level == maxLevel {
			return b
		}
		h = h.coarsened(h.level + 1)
	}
}

// joined is the largest number of empty cells that are cheaper written out than begun
// anew after.
const joined = 2

func appendRuns(dst []byte, all []cell) []byte {
	runs := 1
	for i := 1; i < len(all); i++ {
		if all[i].at-all[i-1].at > joined+1 {
			runs++
		}
	}
	dst = binary.AppendUvarint(dst, uint64(runs))
	next := 0 // the first cell that was not written yet
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].at-all[n-1].at <= joined+1 {
			n++
		}
		dst = binary.AppendUvarint(dst, uint64(all[0].at-next))
		dst = binary.AppendUvarint(dst, uint64(all[n-1].at-all[0].at+1))
		next = all[0].at
		for _, c := range all[:n] {
			for ; next < c.at; next++ {
				dst = append(dst, 0)
			}
			dst = binary.AppendUvarint(dst, min(c.count, maxCount))
			next++
		}
		all = all[n:]
	}
	return dst
}

// cutRecord returns the first record of b, what follows it, and its minute.
func cutRecord(b []byte) (record, rest []byte, at int64, err error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, 0, fmt.Errorf("%w: a record of %d bytes in %d", ErrMalformed, n, len(b))
	}
	record, rest = b[size:size+int(n)], b[size+int(n):]
	minute, size := binary.Uvarint(record)
	if size <= 0 || minute > maxMinute {
		return nil, nil, 0, fmt.Errorf("%w: minute %d above %d", ErrMalformed, minute, int64(maxMinute))
	}
	return record, rest, int64(minute), nil
}

// readRecord reads one record, without its length.
func readRecord(b []byte) (Minute, error) {
	r := numbers{rest: b}
	m := Minute{At: r.number("minute", 0, maxMinute), Nodes: r.number("nodes", 1, maxNodes)}
	g := &m.Gauges
	if g.Samples = r.number("samples", 0, maxSamples); g.Samples > 0 {
		g.ActiveSum, g.ActiveMax = r.sum("active", g.Samples)
		g.WaitingSum, g.WaitingMax = r.sum("waiting", g.Samples)
		g.TotalActiveUsers = r.number("total active users", 0, maxGauge)
		g.NewUsersPerMinute = r.number("new users per minute", 0, maxGauge)
	}
	for _, n := range [...]*uint64{&m.Counts.New, &m.Counts.Admitted, &m.Counts.Ended, &m.Counts.Revoked} {
		*n = uint64(r.number("count", 0, maxCount))
	}
	m.Waits, m.Stays = r.histogram(), r.histogram()
	if r.err == nil && len(r.rest) > 0 {
		r.fail("%d bytes too many", len(r.rest))
	}
	if r.err != nil {
		return Minute{}, r.err
	}
	return m, nil
}

// numbers takes a record apart. The first error sticks; after it all results are zero.
type numbers struct {
	rest []byte
	err  error
}

func (r *numbers) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
	}
}

func (r *numbers) number(what string, least, most int64) int64 {
	if r.err != nil {
		return 0
	}
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.fail("%s is cut off", what)
		return 0
	}
	if n > math.MaxInt64 || int64(n) < least || int64(n) > most {
		r.fail("%s is %d, allowed are %d to %d", what, n, least, most)
		return 0
	}
	r.rest = r.rest[size:]
	return int64(n)
}

func (r *numbers) sum(what string, samples int64) (sum, most int64) {
	sum = r.number(what, 0, samples*maxGauge)
	most = r.number(what, 0, maxGauge)
	if r.err == nil && (sum > samples*most || sum < most) {
		r.fail("%s is at most %d, and %d in %d samples", what, most, sum, samples)
	}
	return sum, most
}

func (r *numbers) histogram() Histogram {
	level := r.number("level", 0, maxLevel+1) - 1
	if r.err != nil || level < 0 {
		return Histogram{}
	}
	h := Histogram{level: uint8(level)}
	most := int64((cells-1)>>level) + 1
	next := int64(0)
	for range r.number("runs", 1, most) {
		next += r.number("gap", 0, most-next-1)
		for range r.number("run", 1, most-next) {
			if n := r.number("cell", 0, maxCount); n > 0 {
				h.cells = append(h.cells, cell{int(next), uint64(n)})
			}
			next++
		}
		if r.err != nil {
			return Histogram{}
		}
	}
	if len(h.cells) == 0 {
		r.fail("a histogram without durations")
	}
	return h
}
