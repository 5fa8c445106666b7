package rate

import (
	"bytes"
	"strconv"
)

// reader finds the end of one answer of HTTP/1.1 in bytes as they come, in whatever pieces. It keeps nothing
// of the body. The zero value is not ready; call begin before every answer.
//
// It knows what the servers that are measured send: an answer has a length or chunks, or a status without a body.
// All else is an error, also what a browser would put up with.
//
// It allocates when a line comes in two pieces for the first time, and then keeps that memory.
type reader struct {
	state   readState
	close   bool // the connection ends after this answer
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
	badLine     badAnswer = "a line does not end in CR and LF"
	badStatus   badAnswer = "the status line is none"
	badHeader   badAnswer = "a line of the head is none"
	badLength   badAnswer = "the length of the body is none, not said, or said twice"
	badEncoding badAnswer = "a transfer encoding other than chunked"
	badChunk    badAnswer = "a chunk has no size, or no end"
	badLines    badAnswer = "the head has no end"
	badInterim  badAnswer = "the answer is an interim one"
	badSurplus  badAnswer = "more bytes than the answer has"
)

// begin prepares for the next answer, to a request that is not HEAD.
func (r *reader) begin() { *r = reader{length: -1, part: r.part[:0]} }

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
	line, ok := bytes.CutSuffix(line, []byte("\r"))
	if !ok {
		return false, badLine
	}
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

func (r *reader) takeStatus(line []byte) error {
	code, ok := bytes.CutPrefix(line, []byte("HTTP/1.1 "))
	code, _, _ = bytes.Cut(code, []byte(" "))
	status, err := strconv.ParseUint(string(code), 10, 16)
	if !ok || err != nil || len(code) != 3 || status < 100 {
		return badStatus
	}
	r.status, r.state = int(status), inHeader
	return nil
}

func (r *reader) takeHeader(line []byte) error {
	name, value, ok := bytes.Cut(line, []byte(":"))
	if !ok || len(name) == 0 || name[0] == ' ' || name[0] == '\t' || name[len(name)-1] == ' ' || name[len(name)-1] == '\t' {
		return badHeader
	}
	value = bytes.Trim(value, " \t")
	switch {
	case bytes.EqualFold(name, []byte("connection")):
		for word := range bytes.SplitSeq(value, []byte(",")) {
			r.close = r.close || bytes.EqualFold(bytes.Trim(word, " \t"), []byte("close"))
		}
	case bytes.EqualFold(name, []byte("content-length")):
		n, err := strconv.ParseUint(string(value), 10, 63)
		if err != nil || r.length >= 0 {
			return badLength
		}
		r.length = int64(n)
	case bytes.EqualFold(name, []byte("transfer-encoding")):
		if r.chunked || !bytes.EqualFold(value, []byte("chunked")) {
			return badEncoding
		}
		r.chunked = true
	}
	return nil
}

// endHead decides what comes after the head.
func (r *reader) endHead() (done bool, err error) {
	switch {
	case r.status < 200:
		return false, badInterim
	case r.chunked && r.length >= 0: // two ends, of which proxies would take one each
		return false, badLength
	case r.status == 204, r.status == 304, r.length == 0:
		return true, nil
	case r.chunked:
		r.state = inChunkSize
	case r.length > 0:
		r.state, r.left = inBody, r.length
	default:
		return false, badLength
	}
	return false, nil
}

// chunkSize reads the line before a chunk: a number in hex, and what may follow it.
func chunkSize(line []byte) (int64, error) {
	if end := bytes.IndexAny(line, "; \t"); end >= 0 {
		line = line[:end]
	}
	size, err := strconv.ParseUint(string(line), 16, 60)
	if err != nil {
		return 0, badChunk
	}
	return int64(size), nil
}
