package page

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// escapes says what is written instead of a byte; "" is the byte itself.
type escapes [utf8.RuneSelf]string

var (
	// htmlEscapes is for text and quoted attributes, wherever an author puts them.
	htmlEscapes = escapes{'<': "&lt;", '>': "&gt;", '&': "&amp;", '"': "&#34;", '\'': "&#39;"}

	// textEscapes is for text alone, where quotes are as good as any character, and
	// shorter.
	textEscapes = escapes{'<': "&lt;", '>': "&gt;", '&': "&amp;"}

	// jsonEscapes is for strings of JSON (RFC 8259, section 7) that may also
	// stand in HTML.
	jsonEscapes = func() escapes {
		e := escapes{'"': `\"`, '\\': `\\`}
		for _, c := range "<>&\x7f" {
			e[c] = fmt.Sprintf(`\u%04x`, c)
		}
		for c := range ' ' {
			e[c] = fmt.Sprintf(`\u%04x`, c)
		}
		return e
	}()
)

// escape escapes what b has from start on, in place: texts are written first,
// because hardly any has something in it to escape.
func (e *escapes) escape(b []byte, start int) []byte {
	if !utf8.Valid(b[start:]) {
		b = append(b[:start], bytes.ToValidUTF8(b[start:], []byte("\uFFFD"))...)
	}
	extra := 0
	for _, c := range b[start:] {
		if c < utf8.RuneSelf && e[c] != "" {
			extra += len(e[c]) - 1
		}
	}
	read := len(b)
	for range extra {
		b = append(b, 0)
	}
	for write := len(b); write > read; { // what is left of read is in place
		read--
		if c := b[read]; c >= utf8.RuneSelf || e[c] == "" {
			write--
			b[write] = c
		} else {
			write -= copy(b[write-len(e[c]):], e[c])
		}
	}
	return b
}
