package lang

import (
	"strconv"
	"unicode/utf8"
)

// numbers is how a language writes numbers in one region.
type numbers struct {
	zero  rune   // its digits are zero to zero+9
	group string // between groups of digits
	first int    // digits that must stand before the first separator: 2 where 1234 has none
	lakh  bool   // groups of two digits after the first of three
}

// AppendNumber appends n with the digits and separators of the language. What
// is negative is written as 0.
func (l *Language) AppendNumber(dst []byte, n int) []byte {
	var buf [20]byte
	digits := strconv.AppendInt(buf[:0], int64(max(n, 0)), 10)
	grouped := len(digits) >= 3+l.numbers.first
	for i, d := range digits {
		if left := len(digits) - i; grouped && i > 0 && l.numbers.separates(left) {
			dst = append(dst, l.numbers.group...)
		}
		if l.numbers.zero == '0' {
			dst = append(dst, d)
		} else {
			dst = utf8.AppendRune(dst, l.numbers.zero+rune(d-'0'))
		}
	}
	return dst
}

// separates reports whether a separator stands before the last left digits.
func (f *numbers) separates(left int) bool {
	if f.lakh && left > 3 {
		return left%2 == 1
	}
	return left%3 == 0
}

// appendTwo appends a number below 100 with two digits.
func (f *numbers) appendTwo(dst []byte, n int) []byte {
	return utf8.AppendRune(utf8.AppendRune(dst, f.zero+rune(n/10)), f.zero+rune(n%10))
}
