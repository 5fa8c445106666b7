package http1

import "encoding/binary"

// Field is one header field. Both slices belong to the head.
type Field struct{ Name, Value []byte }

// IsName reports whether b may be the name of a field.
func IsName[T []byte | string](b T) bool {
	for i := range len(b) {
		if !IsToken(b[i]) {
			return false
		}
	}
	return len(b) > 0
}

// isValue reports whether b may be the value of a field.
func isValue(b []byte) bool {
	for len(b) >= 8 && !hasControl(binary.LittleEndian.Uint64(b)) {
		b = b[8:] // most of most values, and cookies are long
	}
	for _, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// hasControl reports whether one of eight bytes is a control character, a tab being one: below
// a space, or DEL. The terms are hasless and haszero of S. E. Anderson's Bit Twiddling Hacks;
// that either finds too much is possible only where it also finds what is there.
func hasControl(w uint64) bool {
	const each = 0x0101010101010101
	below := (w - each*' ') &^ w
	del := w ^ each*0x7f
	del = (del - each) &^ del
	return (below|del)&(each*0x80) != 0
}

// AppendField appends the line of a field.
func AppendField[T []byte | string](dst []byte, name, value T) []byte {
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	dst = append(dst, value...)
	return append(dst, "\r\n"...)
}
