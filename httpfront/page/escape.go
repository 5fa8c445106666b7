package page

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// escapes says what is written instead of some characters, all of them ASCII.
type escapes struct {
	by   [utf8.RuneSelf]string // "": the character itself
	more [256]uint8            // bytes that it takes more, of each byte
}

func newEscapes(by map[byte]string) *escapes {
	e := &escapes{}
	for c, text := range by {
		e.by[c], e.more[c] = text, uint8(len(text)-1)
	}
	return e
}

var (
	// htmlEscapes is for text and quoted attributes, wherever an author puts them.
	htmlEscapes = newEscapes(map[byte]string{'<': "&lt;", '>': "&gt;", '&': "&amp;", '"': "&#34;", '\'': "&#39;"})

	// textEscapes is for text alone, where quotes are as good as any character, and
	// shorter.
	textEscapes = newEscapes(map[byte]string{'<': "&lt;", '>': "&gt;", '&': "&amp;"})

	// jsonEscapes is for strings of JSON (RFC 8259, section 7) that may also
	// stand in HTML.
	jsonEscapes = func() *escapes {
		by := map[byte]string{'"': `\"`, '\\': `\\`}
		for _, c := range []byte("<>&\x7f") {
			by[c] = fmt.Sprintf(`\u%04x`, c)
		}
		for c := range byte(' ') {
			by[c] = fmt.Sprintf(`\u%04x`, c)
		}
		return newEscapes(by)
	}()
)

// escape escapes what b has from start on, in place: texts are written first,
// because hardly any has something in it to escape.
func (e *escapes) escape(b []byte, start int) []byte {
	more, all := e.look(b[start:])
	if all >= utf8.RuneSelf && !utf8.Valid(b[start:]) {
		b = append(b[:start], bytes.ToValidUTF8(b[start:], []byte("\uFFFD"))...)
	}
	if more == 0 {
		return b
	}
	read := len(b)
	for range more {
		b = append(b, 0)
	}
	for write := len(b); write > read; { // what is left of read is in place
		read--
		if c := b[read]; e.more[c] == 0 {
			write--
			b[write] = c
		} else {
			write -= copy(b[write-len(e.by[c]):], e.by[c])
		}
	}
	return b
}

// look returns how many bytes more b takes when it is escaped, and all its bits.
func (e *escapes) look(b []byte) (more int, all byte) {
	for _, c := range b {
		more += int(e.more[c])
		all |= c
	}
	return more, all
}
