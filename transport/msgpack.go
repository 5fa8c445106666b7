package transport

import "encoding/binary"

// A walker over msgpack, just large enough to judge gossip. It allocates
// nothing but map keys and never looks beyond the bytes that it was given.

const mpMaxDepth = 6

// mpSkip returns what follows the value at the start of b.
func mpSkip(b []byte, depth int) ([]byte, error) {
	if len(b) == 0 {
		return nil, malformed("msgpack ends early")
	}
	if depth <= 0 {
		return nil, malformed("msgpack nested too deep")
	}
	switch k := b[0]; {
	case k <= 0x7f, k >= 0xe0, k == 0xc0, k == 0xc2, k == 0xc3: // small integers, nil, booleans
		return b[1:], nil
	case k <= 0x8f, k == 0xde, k == 0xdf:
		return mpMapDepth(b, depth, nil)
	case k <= 0x9f, k == 0xdc, k == 0xdd:
		n, rest, err := mpArray(b)
		for ; err == nil && n > 0; n-- {
			rest, err = mpSkip(rest, depth-1)
		}
		return rest, err
	case k <= 0xbf, k == 0xd9, k == 0xda, k == 0xdb, k == 0xc4, k == 0xc5, k == 0xc6:
		_, rest, err := mpBytes(b)
		return rest, err
	case k >= 0xca && k <= 0xd3: // floats and integers
		size := 1 + [...]int{4, 8, 1, 2, 4, 8, 1, 2, 4, 8}[k-0xca]
		if len(b) < size {
			return nil, malformed("msgpack number ends early")
		}
		return b[size:], nil
	}
	return nil, malformed("msgpack type %#x", b[0]) // extensions: nobody sends them
}

// mpLen reads the head of a value whose short form holds its length in the
// low bits of short, and whose long forms have the given type bytes with
// lengths of 1, 2 and 4 bytes (0: there is no such form).
func mpLen(b []byte, short, mask byte, long [3]byte) (int, []byte, error) {
	if len(b) == 0 {
		return 0, nil, malformed("msgpack ends early")
	}
	if mask != 0 && b[0]&^mask == short {
		return int(b[0] & mask), b[1:], nil
	}
	for i, size := range [...]int{1, 2, 4} {
		if long[i] == 0 || b[0] != long[i] {
			continue
		}
		if len(b) < 1+size {
			return 0, nil, malformed("msgpack length ends early")
		}
		var wide [8]byte
		copy(wide[8-size:], b[1:1+size])
		n := binary.BigEndian.Uint64(wide[:])
		if n > uint64(len(b)-1-size) { // every element takes a byte at least
			return 0, nil, malformed("msgpack announces %d elements in %d bytes", n, len(b))
		}
		return int(n), b[1+size:], nil
	}
	return 0, nil, malformed("msgpack type %#x", b[0])
}

// mpArray returns the number of elements and where they start.
func mpArray(b []byte) (int, []byte, error) {
	return mpLen(b, 0x90, 0x0f, [3]byte{0, 0xdc, 0xdd})
}

// mpBytes reads a string or a byte string; nil counts as an empty one.
func mpBytes(b []byte) (value, rest []byte, err error) {
	if rest, ok := mpNil(b); ok {
		return nil, rest, nil
	}
	n, rest, err := mpLen(b, 0xa0, 0x1f, [3]byte{0xd9, 0xda, 0xdb})
	if err != nil {
		if n, rest, err = mpLen(b, 0, 0, [3]byte{0xc4, 0xc5, 0xc6}); err != nil {
			return nil, nil, err
		}
	}
	if n > len(rest) {
		return nil, nil, malformed("msgpack string ends early")
	}
	return rest[:n], rest[n:], nil
}

func mpNil(b []byte) (rest []byte, ok bool) {
	if len(b) > 0 && b[0] == 0xc0 {
		return b[1:], true
	}
	return b, false
}

// mpUint reads an integer that is not negative.
func mpUint(b []byte) (uint64, []byte, error) {
	rest, err := mpSkip(b, 1)
	if err != nil {
		return 0, nil, err
	}
	k, body := b[0], b[1:len(b)-len(rest)]
	var wide [8]byte
	switch {
	case k <= 0x7f:
		return uint64(k), rest, nil
	case k >= 0xcc && k <= 0xcf: // unsigned
		copy(wide[8-len(body):], body)
		return binary.BigEndian.Uint64(wide[:]), rest, nil
	case k >= 0xd0 && k <= 0xd3 && body[0] < 0x80: // signed, and not below zero
		copy(wide[8-len(body):], body)
		return binary.BigEndian.Uint64(wide[:]), rest, nil
	}
	return 0, nil, malformed("msgpack type %#x where a count should be", k)
}

// mpMap walks over a map with string keys, calls f (may be nil) on each entry
// and returns what follows. f gets the rest of the input from the value on.
func mpMap(b []byte, f func(key string, value []byte) error) ([]byte, error) {
	return mpMapDepth(b, mpMaxDepth, f)
}

func mpMapDepth(b []byte, depth int, f func(key string, value []byte) error) ([]byte, error) {
	n, b, err := mpLen(b, 0x80, 0x0f, [3]byte{0, 0xde, 0xdf})
	if err != nil {
		return nil, err
	}
	for range n {
		var key []byte
		if key, b, err = mpBytes(b); err != nil {
			return nil, err
		}
		rest, err := mpSkip(b, depth-1)
		if err != nil {
			return nil, err
		}
		if f != nil {
			if err := f(string(key), b[:len(b)-len(rest)]); err != nil {
				return nil, err
			}
		}
		b = rest
	}
	return b, nil
}

// wholeMap is mpMap for input that must end with the map.
func wholeMap(b []byte, f func(key string, value []byte) error) error {
	rest, err := mpMap(b, f)
	if err == nil && len(rest) != 0 {
		err = malformed("bytes after the end")
	}
	return err
}
