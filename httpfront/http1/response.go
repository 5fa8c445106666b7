package http1

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Response is the head of an origin's response. Its slices are good until the next read from the
// connection.
//
// Origins are the operator's own, so what RFC 9112 has a recipient put up with is put up with:
// lines that end in LF, folded ones, spaces before a colon. What could be read in two ways is not.
type Response struct {
	Code   int
	Reason []byte
	Fields []Field
	Size   int   // bytes of it
	Length int64 // of the body; LengthChunked or LengthOpen
	Close  bool  // the origin takes no other request
	named  bool  // Connection names fields
}

// Reset makes h one that nothing was read into.
func (h *Response) Reset() {
	clear(h.Fields)
	*h = Response{Fields: h.Fields[:0]}
}

// Read waits for a whole head. It stays in br, whose size is that of the longest.
func (h *Response) Read(br *bufio.Reader) error {
	h.Reset()
	for first := true; ; {
		b, _ := br.Peek(br.Buffered())
		if n := emptyLine(b); n > 0 && first { // what CGI programs, and answers to nothing, leave behind
			first = false
			br.Discard(n)
			continue
		}
		if h.Size = headSize(b); h.Size > 0 {
			return h.parse(b[:h.Size])
		}
		if len(b) >= len("HTTP/") && !SpeaksHTTP(br) {
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
func (h *Response) parse(b []byte) error {
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
			if len(h.Fields) == 0 || !isValue(line) {
				return errOriginField
			}
			// The last field goes on (RFC 9112, 5.2).
			unfolded := b[valueAt : at+len(line)]
			for i, c := range unfolded {
				if c == '\r' || c == '\n' {
					unfolded[i] = ' '
				}
			}
			h.Fields[len(h.Fields)-1].Value = trimSpace(unfolded)
			continue
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if name = trimSpace(name); !ok || !IsName(name) || !isValue(value) {
			return errOriginField
		}
		valueAt = at + len(line) - len(value)
		h.Fields = append(h.Fields, Field{name, trimSpace(value)})
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
func (h *Response) parseStatus(line []byte) (old bool, err error) {
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
	h.Code, h.Reason = int(n), reason
	return old, nil
}

// parseMeaning reads the fields that say where the message ends and what the origin wants of the
// connection.
func (h *Response) parseMeaning(old bool) error {
	h.Length = LengthOpen
	coded, keep := false, false
	for i := range h.Fields {
		f := &h.Fields[i]
		switch {
		case EqualFold(f.Name, "content-length"):
			for e := range Elements(f.Value) {
				n, ok := parseLength(e)
				if !ok || h.Length != LengthOpen && h.Length != n {
					return errOriginLength
				}
				h.Length = n
			}
			if h.Length == LengthOpen {
				return errOriginLength // there is nothing in it
			}
		case EqualFold(f.Name, "transfer-encoding"):
			switch {
			case EqualFold(f.Value, "chunked") && !coded && !old:
				coded = true
			case !EqualFold(f.Value, "identity"):
				return errOriginCoding
			}
		case EqualFold(f.Name, "connection"):
			for e := range Elements(f.Value) {
				switch {
				case EqualFold(e, "close"):
					h.Close = true
				case EqualFold(e, "keep-alive"):
					keep = true
				default:
					h.named = true
				}
			}
		}
	}
	if coded {
		h.Close = h.Close || h.Length != LengthOpen // RFC 9112, 6.3
		h.Length = LengthChunked
	}
	h.Close = h.Close || old && !keep
	return nil
}

// Names reports whether Connection names a field.
func (h *Response) Names(name []byte) bool {
	if !h.named || EqualFold(name, "content-length") || EqualFold(name, "host") {
		return false // are not to be had by that
	}
	return isConnectionOption(h.Fields, name)
}

// SpeaksHTTP reports whether what could not be parsed begins as an answer does.
func SpeaksHTTP(br *bufio.Reader) bool {
	const begin = "HTTP/"
	b, _ := br.Peek(min(br.Buffered(), len(begin)))
	return string(b) == begin
}

// Challenges reports whether an answer asks for a login of the connection, or goes on with one.
func (h *Response) Challenges() bool {
	for i := range h.Fields {
		if f := &h.Fields[i]; EqualFold(f.Name, "www-authenticate") {
			for challenge := range Elements(f.Value) {
				if isOfConnection(challenge) {
					return true
				}
			}
		}
	}
	return false
}

// isOfConnection reports whether credentials, or a challenge, are of a login that many servers take for
// that of whoever speaks on the connection (NTLM, and Negotiate).
func isOfConnection(value []byte) bool {
	scheme, _, _ := bytes.Cut(bytes.TrimLeft(value, " \t"), []byte(" "))
	return EqualFold(scheme, "ntlm") || EqualFold(scheme, "negotiate")
}
