package http1

import (
	"bytes"
	"strings"
)

// EqualFold reports whether b is lower, which is in lower case, in any case. It
// folds ASCII only; what folds to a letter in Unicode is not that letter here.
func EqualFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if LowerByte(c) != lower[i] {
			return false
		}
	}
	return true
}

// LowerByte returns c, in lower case if it is an ASCII letter.
func LowerByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// IsAlnum reports whether c is an ASCII letter or a digit.
func IsAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= LowerByte(c) && LowerByte(c) <= 'z'
}

// IsToken reports whether c may stand in the name of a field (RFC 9110, 5.6.2).
func IsToken(c byte) bool { return tokens[c] }

var tokens = func() (is [256]bool) {
	for c := range 256 {
		is[c] = IsAlnum(byte(c)) || strings.IndexByte("!#$%&'*+-.^_`|~", byte(c)) >= 0
	}
	return is
}()

// trimSpace returns b without the spaces and tabs around it.
func trimSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// Elements calls yield with every element of a comma-separated list.
func Elements(list []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for part := range bytes.SplitSeq(list, []byte(",")) {
			if part = trimSpace(part); len(part) > 0 && !yield(part) {
				return
			}
		}
	}
}

// appendElement appends an element to a comma-separated list.
func appendElement(list, element []byte) []byte {
	if len(list) > 0 {
		list = append(list, ',')
	}
	return append(list, element...)
}

// HasToken reports whether a comma-separated list has token, in lower case, as
// an element.
func HasToken(list []byte, token string) bool {
	for e := range Elements(list) {
		if EqualFold(e, token) {
			return true
		}
	}
	return false
}

// unhex returns the value of a hexadecimal digit, or 16 or more.
func unhex(c byte) byte {
	switch c = LowerByte(c); {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	}
	return 0xff
}
