package history

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// Question is what a node asks another one about a room.
type Question struct {
	Room     crdt.RoomID
	From, To time.Time
}

// AppendBinary appends the room and both times in seconds since 1970. DecodeQuestion reads it.
func (q Question) AppendBinary(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, q.Room[:]...), uint64(q.From.Unix()))
	return binary.BigEndian.AppendUint64(dst, uint64(q.To.Unix()))
}

// DecodeQuestion reads what AppendBinary wrote.
func DecodeQuestion(data []byte) (q Question, err error) {
	if len(data) != len(q.Room)+16 {
		return Question{}, fmt.Errorf("%w: a question of %d bytes", ErrMalformed, len(data))
	}
	times := data[copy(q.Room[:], data):]
	from, to := int64(binary.BigEndian.Uint64(times)), int64(binary.BigEndian.Uint64(times[8:]))
	if from < 0 || to < 0 {
		return Question{}, fmt.Errorf("%w: a time before 1970", ErrMalformed)
	}
	q.From, q.To = time.Unix(from, 0), time.Unix(to, 0)
	return q, nil
}

// Answer is a room's past as one node knows it. For are the nodes that have left to it and may still answer for
// themselves: what they recorded is in Series.
type Answer struct {
	Series Series
	For    []crdt.NodeID
}

// maxFor is how many nodes an answer is for at most: all that leave at once.
const maxFor = 1024

// AppendBinary appends the number of nodes (2 bytes), their ids, and the series. DecodeAnswer reads it.
func (a Answer) AppendBinary(dst []byte) ([]byte, error) {
	of := a.For[:min(len(a.For), maxFor)]
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(of)))
	for _, id := range of {
		dst = append(dst, id[:]...)
	}
	return a.Series.AppendBinary(dst)
}

// DecodeAnswer reads what Answer.AppendBinary wrote.
func DecodeAnswer(data []byte) (a Answer, err error) {
	if len(data) < 2 {
		return Answer{}, fmt.Errorf("%w: an answer of %d bytes", ErrMalformed, len(data))
	}
	n := int(binary.BigEndian.Uint16(data))
	data = data[2:]
	if n > maxFor || len(data) < n*len(crdt.NodeID{}) {
		return Answer{}, fmt.Errorf("%w: an answer for %d nodes in %d bytes", ErrMalformed, n, len(data))
	}
	for range n {
		a.For = append(a.For, crdt.NodeID(data))
		data = data[len(crdt.NodeID{}):]
	}
	a.Series, err = DecodeSeries(data)
	return a, err
}

// Join adds up what nodes answer about the same room, by whose answer it is. A node for which another one answers
// is left out: what it recorded would be counted twice.
func Join(answers map[crdt.NodeID]Answer) Series {
	of := map[crdt.NodeID]bool{}
	for _, a := range answers {
		for _, id := range a.For {
			of[id] = true
		}
	}
	var all []Series
	for id, a := range answers {
		if !of[id] {
			all = append(all, a.Series)
		}
	}
	return Merge(all...)
}
