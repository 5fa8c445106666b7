package rate

import "bytes"

// reader finds the end of one answer of HTTP/1.1 in bytes as they come, in whatever pieces. It keeps nothing
// of the body. The zero value is not ready; call begin before every answer.
//
// It allocates when a line comes in two pieces for the first time, and then keeps that memory.
type reader struct {
	state   readState
	toHead  bool // the answer to a HEAD request, which has no body whatever its head says
	close   bool // the connection ends after this answer
	keep    bool // a server of HTTP/1.0 has said that it does not
	old     bool // HTTP/1.0
	chunked bool
	length  int64 // of the body, as Content-Length has it; -1: not said
	status  int
	left    int64  // bytes of the body, or of the chunk, that are still to come
	head    int    // bytes of lines so far
	part    []byte // the beginning of a line whose end has not come yet
}

type readState uint8

const (
	inStatus    readState = iota // the status line
	inHeader                     // lines of the head
	inBody                       // left bytes of it
	inRest                       // a body that ends with the connection
	inChunkSize                  // the line before a chunk
	inChunk                      // left bytes of it
	inChunkEnd                   // the empty line after it
	inTrailer                    // lines after the last chunk
)

// mostLines is how many bytes an answer may have beside its body, of lines of a head, of trailers and of
// chunks together; a server that sends more for ever is not waited for.
const mostLines = 256 << 10

// badAnswer says why something is no answer of HTTP/1.1.
type badAnswer string

func (b badAnswer) Error() string { return string(b) }

const (
	badStatus   badAnswer = "the status line is none"
	badHeader   badAnswer = "a line of the head is none"
	badLength   badAnswer = "the length of the body is none, or said twice"
	badEncoding badAnswer = "a transfer encoding other than chunked"
	badChunk    badAnswer = "a chunk has no size, or no end"
	badLines    badAnswer = "the head has no end"
	badUpgrade  badAnswer = "the server changes to another protocol"
	badSurplus  badAnswer = "more bytes than the answer has"
)

// begin prepares for the next answer.
func (r *reader) begin(toHead bool) {
	*r = reader{toHead: toHead, length: -1, part: r.part[:0]}
}

// feed takes the next bytes. It returns how many of them belong to the answer, and whether that is complete.
// After done or an error it wants begin.
func (r *reader) feed(p []byte) (n int, done bool, err error) {
	for n < len(p) {
		switch r.state {
		case inBody, inChunk:
			part := min(r.left, int64(len(p)-n))
			n += int(part)
			if r.left -= part; r.left > 0 {
				return n, false, nil
			}
			if r.state == inBody {
				return n, true, nil
			}
			r.state = inChunkEnd
		case inRest:
			return len(p), false, nil
		default:
			took, line, whole := r.line(p[n:])
			n += took
			if r.head += took; r.head > mostLines {
				return n, false, badLines
			}
			if !whole {
				return n, false, nil
			}
			if done, err = r.take(line); done || err != nil {
				return n, done, err
			}
			r.part = r.part[:0]
		}
	}
	return n, false, nil
}

// atEnd reports whether an answer is complete by the end of the connection.
func (r *reader) atEnd() bool { return r.state == inRest }

// line returns the next line, without what ends it but for the CR, and how many bytes of p it took. It holds
// until part is used again.
func (r *reader) line(p []byte) (took int, line []byte, whole bool) {
	end := bytes.IndexByte(p, '\n')
	switch {
	case end < 0:
		r.part = append(r.part, p[:min(len(p), mostLines)]...)
		return len(p), nil, false
	case len(r.part) == 0:
		return end + 1, p[:end], true
	}
	r.part = append(r.part, p[:end]...)
	return end + 1, r.part, true
}

// take reads a line in the state that r is in.
func (r *reader) take(line []byte) (done bool, err error) {
	if len(line) == 0 || line[len(line)-1] != '\r' {
		return false, r.badLine()
	}
	line = line[:len(line)-1]
	switch r.state {
	case inStatus:
		return false, r.takeStatus(line)
	case inHeader:
		if len(line) > 0 {
			return false, r.takeHeader(line)
		}
		return r.endHead()
	case inChunkSize:
		r.left, err = chunkSize(line)
		if r.state = inChunk; r.left == 0 {
			r.state = inTrailer
		}
		return false, err
	case inChunkEnd:
		if len(line) > 0 {
			return false, badChunk
		}
		r.state = inChunkSize
		return false, nil
	case inTrailer:
		return len(line) == 0, nil
	}
	panic("rate: a line where none can be")
}

func (r *reader) badLine() badAnswer {
	switch r.state {
	case inStatus:
		return badStatus
	case inChunkSize, inChunkEnd:
		return badChunk
	}
	return badHeader
}

func (r *reader) takeStatus(line []byte) error {
	const shape = "HTTP/1.1 200"
	if len(line) < len(shape) || string(line[:7]) != "HTTP/1." || line[7] != '0' && line[7] != '1' || line[8] != ' ' {
		return badStatus
	}
	if len(line) > len(shape) && line[len(shape)] != ' ' {
		return badStatus
	}
	for _, c := range line[9:12] {
		if c < '0' || c > '9' {
			return badStatus
		}
		r.status = r.status*10 + int(c-'0')
	}
	if r.status < 100 || r.status > lastStatus {
		return badStatus
	}
	r.old = line[7] == '0'
	r.state = inHeader
	return nil
}

func (r *reader) takeHeader(line []byte) error {
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 || line[0] == ' ' || line[0] == '\t' || line[colon-1] == ' ' || line[colon-1] == '\t' {
		return badHeader
	}
	switch name := line[:colon]; colon {
	case len("connection"):
		if isWord(name, "connection") {
			r.close = r.close || hasWord(line[colon+1:], "close")
			r.keep = r.keep || hasWord(line[colon+1:], "keep-alive")
		}
	case len("content-length"):
		if isWord(name, "content-length") {
			return r.takeLength(trimmed(line[colon+1:]))
		}
	case len("transfer-encoding"):
		if isWord(name, "transfer-encoding") {
			if r.chunked || !isWord(trimmed(line[colon+1:]), "chunked") {
				return badEncoding
			}
			r.chunked = true
		}
	}
	return nil
}

func (r *reader) takeLength(digits []byte) error {
	if len(digits) == 0 || len(digits) > 18 || r.length >= 0 {
		return badLength
	}
	r.length = 0
	for _, c := range digits {
		if c < '0' || c > '9' {
			return badLength
		}
		r.length = r.length*10 + int64(c-'0')
	}
	return nil
}

// endHead decides what comes after the head.
func (r *reader) endHead() (done bool, err error) {
	switch {
	case r.status == 101:
		return false, badUpgrade
	case r.status < 200: // the real answer is still to come
		head := r.head
		r.begin(r.toHead)
		r.head = head
		return false, nil
	case r.chunked && (r.length >= 0 || r.old): // two ends, of which proxies would take one each
		return false, badLength
	}
	r.close = r.close || r.old && !r.keep
	switch {
	case r.toHead, r.status == 204, r.status == 304, r.length == 0:
		return true, nil
	case r.chunked:
		r.state = inChunkSize
	case r.length > 0:
		r.state, r.left = inBody, r.length
	default:
		r.state, r.close = inRest, true
	}
	return false, nil
}

// chunkSize reads the line before a chunk: a number in hex, and what may follow it.
func chunkSize(line []byte) (int64, error) {
	size, digits := int64(0), 0
	for _, c := range line {
		switch {
		case c >= '0' && c <= '9':
			size = size<<4 | int64(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			size = size<<4 | int64(c|0x20-'a'+10)
		case digits > 0 && (c == ';' || c == ' ' || c == '\t'):
			return size, nil
		default:
			return 0, badChunk
		}
		if digits++; digits > 15 {
			return 0, badChunk
		}
	}
	if digits == 0 {
		return 0, badChunk
	}
	return size, nil
}

// isWord reports whether b is word, which is in lower case, in any case.
func isWord(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

// hasWord reports whether word is one of those in a list with commas.
func hasWord(list []byte, word string) bool {
	for len(list) > 0 {
		item := list
		if comma := bytes.IndexByte(list, ','); comma >= 0 {
			item, list = list[:comma], list[comma+1:]
		} else {
			list = nil
		}
		if isWord(trimmed(item), word) {
			return true
		}
	}
	return false
}

// trimmed returns b without blanks around it.
func trimmed(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}
