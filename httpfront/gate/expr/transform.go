package expr

import "unicode/utf8"

// fold returns v with each byte changed by to, and v itself where that changes
// nothing.
func (s *scratch) fold(v string, to func(byte) byte) string {
	for i := range len(v) {
		if to(v[i]) == v[i] {
			continue
		}
		from := len(s.buf)
		s.buf = append(s.buf, v...)
		for j := from + i; j < len(s.buf); j++ {
			s.buf[j] = to(s.buf[j])
		}
		return s.since(from)
	}
	return v
}

// maxDecodings is how often recursive decoding goes over a value: a visitor can
// wrap one in as many layers as fit.
const maxDecodings = 10

// decode returns v with its percent escapes decoded and + as a space, as forms
// are encoded. What is no escape stays. With unicode %u and four digits is a
// character; with recursive it goes over the result until nothing changes.
func (s *scratch) decode(v string, unicode, recursive bool) string {
	for range maxDecodings {
		if !encoded(v) {
			return v
		}
		from := len(s.buf)
		s.buf = appendDecoded(s.buf, v, unicode)
		next := s.since(from)
		if same := next == v; same || !recursive {
			return next
		}
		v = next
	}
	return v
}

func encoded(v string) bool {
	for i := range len(v) {
		if v[i] == '%' || v[i] == '+' {
			return true
		}
	}
	return false
}

func appendDecoded(dst []byte, v string, unicode bool) []byte {
	for i := 0; i < len(v); i++ {
		switch {
		case v[i] == '+':
			dst = append(dst, ' ')
			continue
		case v[i] != '%':
		case unicode && i+1 < len(v) && lowerByte(v[i+1]) == 'u':
			if c, ok := unhex(v, i+2, 4); ok && utf8.ValidRune(c) {
				dst = utf8.AppendRune(dst, c)
				i += 5
				continue
			}
		default:
			if c, ok := unhex(v, i+1, 2); ok {
				dst = append(dst, byte(c))
				i += 2
				continue
			}
		}
		dst = append(dst, v[i])
	}
	return dst
}

// unhex reads n digits of base 16 at i.
func unhex(v string, i, n int) (rune, bool) {
	if i+n > len(v) {
		return 0, false
	}
	var r rune
	for _, c := range []byte(v[i : i+n]) {
		switch c = lowerByte(c); {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
