package transport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The first byte of every stream says what it carries.
const (
	streamHello   = 1 // bidirectional, the first one, once, by the dialler
	streamCall    = 2 // bidirectional, one request and its answer
	streamControl = 3 // the same, for the mesh itself
	streamGossip  = 4 // bidirectional, one full exchange of memberlist
	streamMessage = 5 // unidirectional, any number of messages
	streamTime    = 6 // bidirectional, in place of a hello: what time is it? Answered with when it was asked, and when it was answered
)

// The first byte of every datagram says what it carries.
const (
	datagramGossip = 1
	datagramPing   = 2
	datagramPong   = 3
)

// errMalformed marks bytes that no correct peer sends.
var errMalformed = errors.New("malformed")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errMalformed, fmt.Sprintf(format, args...))
}

// readBody reads n bytes. It reserves memory as they arrive, not as they are
// announced: a peer must send what it wants us to hold.
func readBody(r io.Reader, n int) ([]byte, error) {
	const step = 32 << 10
	if n == 0 {
		return []byte{}, nil
	}
	buf := make([]byte, 0, min(n, step))
	for len(buf) < n {
		if len(buf) == cap(buf) {
			next := make([]byte, len(buf), min(n, 2*cap(buf)))
			copy(next, buf)
			buf = next
		}
		got, err := io.ReadFull(r, buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+got]
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil, malformed("body ends after %d of %d bytes", len(buf), n)
			}
			return nil, err
		}
	}
	return buf, nil
}

// readEnd makes sure that nothing follows.
func readEnd(r io.Reader) error {
	var one [1]byte
	switch n, err := io.ReadFull(r, one[:]); {
	case n > 0:
		return malformed("bytes after the end")
	case errors.Is(err, io.EOF):
		return nil
	default:
		return err
	}
}

// readHead reads a head of fixed size; a stream that ends inside it is
// malformed, one that ends before it gives io.EOF.
func readHead(r io.Reader, head []byte) error {
	_, err := io.ReadFull(r, head)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return malformed("stream ends inside a head")
	}
	return err
}

// A request is: method (1), time allowed in milliseconds (4), length (4), body.
const requestHead = 9

type request struct {
	method  uint8
	timeout uint32 // milliseconds
	body    []byte
}

func appendRequest(dst []byte, r request) []byte {
	dst = append(dst, r.method)
	dst = binary.BigEndian.AppendUint32(dst, r.timeout)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(r.body)))
	return append(dst, r.body...)
}

func readRequest(r io.Reader) (request, error) {
	var head [requestHead]byte
	if err := readHead(r, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return request{}, malformed("empty request")
		}
		return request{}, err
	}
	n := binary.BigEndian.Uint32(head[5:])
	if n > MaxCall {
		return request{}, malformed("request of %d bytes, at most %d are allowed", n, MaxCall)
	}
	body, err := readBody(r, int(n))
	if err != nil {
		return request{}, err
	}
	if err := readEnd(r); err != nil {
		return request{}, err
	}
	return request{method: head[0], timeout: binary.BigEndian.Uint32(head[1:]), body: body}, nil
}

// An answer is: status (1), code (2), length (4), body. With statusError the
// body is the text of the error.
const (
	answerHead  = 7
	statusOK    = 0
	statusError = 1

	maxErrorText = 1 << 10
)

func appendAnswer(dst []byte, status uint8, code uint16, body []byte) []byte {
	dst = append(dst, status)
	dst = binary.BigEndian.AppendUint16(dst, code)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(body)))
	return append(dst, body...)
}

// readAnswer returns the body, or a *RemoteError, or what went wrong.
func readAnswer(r io.Reader) ([]byte, error) {
	var head [answerHead]byte
	if err := readHead(r, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, malformed("empty answer")
		}
		return nil, err
	}
	status, code, n := head[0], binary.BigEndian.Uint16(head[1:]), binary.BigEndian.Uint32(head[3:])
	limit := uint32(MaxCall)
	if status == statusError {
		limit = maxErrorText
	}
	if status > statusError || n > limit || (status == statusOK && code != 0) {
		return nil, malformed("answer with status %d, code %d and %d bytes", status, code, n)
	}
	body, err := readBody(r, int(n))
	if err != nil {
		return nil, err
	}
	if status == statusError {
		return nil, &RemoteError{Code: code, Text: string(body)}
	}
	return body, nil
}

// A message is: kind (1), length (3), body. There are many of them, so the
// head is short.
const messageHead = 4

func appendMessage(dst []byte, kind uint8, body []byte) []byte {
	dst = append(dst, kind, byte(len(body)>>16), byte(len(body)>>8), byte(len(body)))
	return append(dst, body...)
}

// readMessage gives io.EOF where a stream ends between messages.
func readMessage(r io.Reader) (kind uint8, body []byte, err error) {
	var head [messageHead]byte
	if err := readHead(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := int(head[1])<<16 | int(head[2])<<8 | int(head[3])
	if n > MaxMessage {
		return 0, nil, malformed("message of %d bytes, at most %d are allowed", n, MaxMessage)
	}
	body, err = readBody(r, n)
	return head[0], body, err
}
