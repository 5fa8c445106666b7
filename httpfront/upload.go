package httpfront

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/httpfront/upstream"
)

// upload passes a request body on to the origin while the response is awaited,
// because an origin may answer, and refuse, before it has read everything.
type upload struct {
	edge  *client
	conn  *upstream.Conn
	from  *requestBody
	size  int64         // of the body; lengthChunked if it is sent in chunks
	limit int64         // of the body; 0: none
	wait  time.Duration // for the response, once the body has been sent
	grace time.Duration // for it, if the origin no longer takes the body

	withheld fieldNames // that are not passed on in a trailer

	active   *activity // of the visitor
	panicked func(any) // is told of a panic

	done chan struct{} // closed when err is final
	err  error         // nil if the whole body was sent

	mu       sync.Mutex // guards the following
	answered bool       // whether the head of the response has been read
}

// clientError is a failure to read the body from the client.
type clientError struct {
	http1.Refusal
	err error
}

func (e *clientError) Error() string { return fmt.Sprintf("read request body: %v", e.err) }
func (e *clientError) Unwrap() error { return e.err }

var errBodyTooLong = errors.New("body longer than the limit")

// run sends the body. Its owner waits for u.done.
func (u *upload) run() {
	defer close(u.done)
	defer func() {
		// A panic here would end the process and not only this request.
		if p := recover(); p != nil {
			u.panicked(p)
			u.err = fmt.Errorf("panic while sending the request body: %v", p)
			u.conn.Abort()
		}
	}()
	u.err = u.copy()
	if _, ok := errors.AsType[*clientError](u.err); ok {
		// The origin waits for bytes that will not come.
		u.conn.Abort()
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.answered:
	case u.err != nil:
		u.conn.Limit(u.grace)
	default:
		u.conn.Limit(u.wait)
	}
}

func (u *upload) copy() error {
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	var sent int64
	for {
		n, err := u.from.Read(buf[http1.ChunkHeadMax : bufferSize-2])
		sent += int64(n)
		if u.limit > 0 && sent > u.limit {
			return &clientError{bodyTooLong, errBodyTooLong}
		}
		if n > 0 {
			u.active.moved()
			if _, err := u.conn.Write(u.frame(buf, n)); err != nil {
				return fmt.Errorf("send request body: %w", err)
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return readError(err)
		}
	}
	if u.size == http1.LengthChunked {
		if _, err := u.conn.Write(appendTrailers(append(buf[:0], "0\r\n"...), u.from.Trailer(), u.withheld)); err != nil {
			return fmt.Errorf("send request body: %w", err)
		}
	} else if sent != u.size {
		return readError(io.ErrUnexpectedEOF)
	}
	return nil
}

// frame returns the n bytes that were read into buf after chunkHeadMax, as they
// go to the origin.
func (u *upload) frame(buf *[bufferSize]byte, n int) []byte {
	if u.size != http1.LengthChunked {
		return buf[http1.ChunkHeadMax : http1.ChunkHeadMax+n]
	}
	from, to := http1.FrameChunk(buf[:], http1.ChunkHeadMax, n)
	return buf[from:to]
}

func readError(err error) error {
	if e, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); ok && e.Timeout() {
		return &clientError{http1.Refusal{Code: http.StatusRequestTimeout, Reason: "the body came too slowly"}, err}
	}
	if err == http1.ErrTrailerLong {
		return &clientError{http1.Refusal{Code: http.StatusRequestHeaderFieldsTooLarge, Reason: "the trailer of the body is too long"}, err}
	}
	return &clientError{http1.Bad("the body is not in order"), err}
}

// headRead says that the response has begun: from then on the deadlines are its
// own, and the two may talk as slowly as they like.
func (u *upload) headRead() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answered = true
	u.edge.AnyPace()
}

// ended reports whether the whole body has been sent, or has been within d.
func (u *upload) ended(d time.Duration) bool {
	select {
	case <-u.done:
		return u.err == nil
	default:
	}
	if d <= 0 {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-u.done:
		return u.err == nil
	case <-timer.C:
		return false
	}
}

// abort ends the upload and waits for its end. The client's connection is then
// somewhere inside the body and must be closed; as it may still be sending, it
// is given time to read the answer.
func (u *upload) abort(c *upstream.Conn) {
	c.Abort()
	u.edge.Stop()
	u.edge.Lingers(true)
	<-u.done
}
