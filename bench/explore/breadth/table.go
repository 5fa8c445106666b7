package breadth

import "encoding/binary"

// Table keeps each thing once, under a number, so that states that are made of such things
// are small and can be compared. The zero value is empty.
type Table[T any] struct {
	All []T // by their numbers
	by  map[string]int32
}

// Number returns the number of what has a key, which is kept if it is new.
func (t *Table[T]) Number(key []byte, is T) int32 {
	if n, known := t.by[string(key)]; known {
		return n
	}
	if t.by == nil {
		t.by = map[string]int32{}
	}
	n := int32(len(t.All))
	t.by[string(key)] = n
	t.All = append(t.All, is)
	return n
}

// Sets keeps sets of numbers, which are sorted. The zero value is empty.
type Sets struct{ Table[[]int32] }

// Set returns the number of a set.
func (s *Sets) Set(all []int32) int32 {
	var key []byte
	for _, x := range all {
		key = binary.AppendVarint(key, int64(x))
	}
	return s.Number(key, all)
}
