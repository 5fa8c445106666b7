package httpfront

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// lengthOpen is the length of a body that goes on until its connection ends.
const lengthOpen = -3

// originHead is the head of an origin's response. Its slices are good until the next read from the
// connection.
//
// Origins are the operator's own, so what RFC 9112 has a recipient put up with is put up with:
// lines that end in LF, folded ones, spaces before a colon. What could be read in two ways is not.
type originHead struct {
	code   int
	reason []byte
	fields []field
	size   int   // bytes of it
	length int64 // of the body; lengthChunked or lengthOpen
	close  bool  // the origin takes no other request
	named  bool  // Connection names fields
}

func (h *originHead) reset() {
	clear(h.fields)
	*h = originHead{fields: h.fields[:0]}
}

// read waits for a whole head. It stays in br, whose size is that of the longest.
func (h *originHead) read(br *bufio.Reader) error {
	h.reset()
	for first := true; ; {
		b, _ := br.Peek(br.Buffered())
		if n := emptyLine(b); n > 0 && first { // what CGI programs, and answers to nothing, leave behind
			first = false
			br.Discard(n)
			continue
		}
		if h.size = headSize(b); h.size > 0 {
			return h.parse(b[:h.size])
		}
		if len(b) >= len("HTTP/") && !speaksHTTP(br) {
			return errNotHTTP
		}
		if len(b) >= br.Size() {
			return fmt.Errorf("the head of the answer is longer than %d KiB", br.Size()>>10)
		}
		if _, err := br.Peek(len(b) + 1); err != nil {
			if len(b) > 0 && err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
}

// emptyLine returns the length of an empty line that b begins with; 0: with none.
func emptyLine(b []byte) int {
	switch {
	case bytes.HasPrefix(b, []byte("\n")):
		return 1
	case bytes.HasPrefix(b, []byte("\r\n")):
		return 2
	}
	return 0
}

// headSize returns the length of a head with its empty line; 0 if b has not all of it.
func headSize(b []byte) int {
	for end := 0; ; {
		n := bytes.IndexByte(b[end:], '\n')
		if n < 0 {
			return 0
		}
		if end += n + 1; len(b) > end && b[end] == '\n' {
			return end + 1
		} else if len(b) > end+1 && b[end] == '\r' && b[end+1] == '\n' {
			return end + 2
		}
	}
}

var (
	errNotHTTP      = errors.New("the answer is not HTTP")
	errStatusLine   = errors.New("the first line of the answer is not in order")
	errOriginField  = errors.New("a header field of the answer is not in order")
	errOriginLength = errors.New("the lengths that the answer tells are not one number")
	errOriginCoding = errors.New("the answer has a transfer coding other than chunked")
)

// parse reads a whole head.
func (h *originHead) parse(b []byte) error {
	line, rest := cutLine(b)
	old, err := h.parseStatus(line)
	if err != nil {
		return err
	}
	for valueAt := 0; ; {
		at := len(b) - len(rest)
		if line, rest = cutLine(rest); len(line) == 0 {
			return h.parseMeaning(old)
		}
		if line[0] == ' ' || line[0] == '\t' {
			if len(h.fields) == 0 || !isValue(line) {
				return errOriginField
			}
			// The last field goes on (RFC 9112, 5.2).
			unfolded := b[valueAt : at+len(line)]
			for i, c := range unfolded {
				if c == '\r' || c == '\n' {
					unfolded[i] = ' '
				}
			}
			h.fields[len(h.fields)-1].value = trimSpace(unfolded)
			continue
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if name = trimSpace(name); !ok || !isName(name) || !isValue(value) {
			return errOriginField
		}
		valueAt = at + len(line) - len(value)
		h.fields = append(h.fields, field{name, trimSpace(value)})
	}
}

// cutLine returns the first line of b without its end, and what is behind it.
func cutLine(b []byte) (line, rest []byte) {
	n := bytes.IndexByte(b, '\n')
	line, rest = b[:n], b[n+1:]
	if n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line, rest
}

// parseStatus reads the first line, and reports whether it is that of HTTP/1.0.
func (h *originHead) parseStatus(line []byte) (old bool, err error) {
	const version = "HTTP/1."
	if len(line) < len(version)+5 || string(line[:len(version)]) != version || line[8] != ' ' {
		return false, errStatusLine
	}
	old = line[7] == '0'
	code, reason, _ := bytes.Cut(trimSpace(line[9:]), []byte(" "))
	n, ok := parseLength(code)
	if !ok || len(code) != 3 || n < 100 || !isValue(line) {
		return false, errStatusLine
	}
	h.code, h.reason = int(n), reason
	return old, nil
}

// parseMeaning reads the fields that say where the message ends and what the origin wants of the
// connection.
func (h *originHead) parseMeaning(old bool) error {
	h.length = lengthOpen
	coded, keep := false, false
	for i := range h.fields {
		f := &h.fields[i]
		switch {
		case equalFold(f.name, "content-length"):
			for e := range elements(f.value) {
				n, ok := parseLength(e)
				if !ok || h.length != lengthOpen && h.length != n {
					return errOriginLength
				}
				h.length = n
			}
			if h.length == lengthOpen {
				return errOriginLength // there is nothing in it
			}
		case equalFold(f.name, "transfer-encoding"):
			switch {
			case equalFold(f.value, "chunked") && !coded && !old:
				coded = true
			case !equalFold(f.value, "identity"):
				return errOriginCoding
			}
		case equalFold(f.name, "connection"):
			for e := range elements(f.value) {
				switch {
				case equalFold(e, "close"):
					h.close = true
				case equalFold(e, "keep-alive"):
					keep = true
				default:
					h.named = true
				}
			}
		}
	}
	if coded {
		h.close = h.close || h.length != lengthOpen // RFC 9112, 6.3
		h.length = lengthChunked
	}
	h.close = h.close || old && !keep
	return nil
}

// passesOn reports whether a field is passed on to the client: it is not about the connection to
// the origin, nor between the origin and us.
func (h *originHead) passesOn(name []byte) bool {
	switch lowerByte(name[0]) {
	case 'c':
		if equalFold(name, "connection") || equalFold(name, "content-length") && h.length < 0 {
			return false
		}
	case 'k', 'p', 'u':
		if equalFold(name, "keep-alive") || equalFold(name, "proxy-connection") || equalFold(name, "proxy-authenticate") ||
			equalFold(name, "proxy-authentication-info") || equalFold(name, "upgrade") {
			return false
		}
	case 't':
		if equalFold(name, "te") || equalFold(name, "transfer-encoding") || equalFold(name, "trailer") {
			return false
		}
	case 'r':
		if isNamed(name, stateField) {
			return false
		}
	}
	return !isCommand(name) && !(h.named && h.names(name))
}

// names reports whether Connection names a field.
func (h *originHead) names(name []byte) bool {
	if equalFold(name, "content-length") || equalFold(name, "host") {
		return false // are not to be had by that
	}
	for i := range h.fields {
		if f := &h.fields[i]; equalFold(f.name, "connection") {
			for e := range elements(f.value) {
				if bytes.EqualFold(e, name) {
					return true
				}
			}
		}
	}
	return false
}
