package relay

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/ropeline/ropeline/httpfront/edge"
	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/httpfront/upstream"
)

// Upload passes a request body on to the origin while the response is awaited,
// because an origin may answer, and refuse, before it has read everything.
type Upload struct {
	Edge  *edge.Conn
	Conn  *upstream.Conn
	From  *http1.Body
	Size  int64         // of the body; http1.LengthChunked if it is sent in chunks
	Limit int64         // of the body; 0: none
	Wait  time.Duration // for the response, once the body has been sent

	Trailer func(dst []byte, of []http1.Field) []byte // appends what of a trailer is passed on, with its end

	Active   Watch     // of the visitor
	Panicked func(any) // is told of a panic

	done chan struct{} // closed when err is final
	err  error         // nil if the whole body was sent

	mu       sync.Mutex // guards the following
	answered bool       // whether the head of the response has been read
}

// ClientError is a failure to read the body from the client.
type ClientError struct {
	http1.Refusal
	err error
}

func (e *ClientError) Error() string { return fmt.Sprintf("read request body: %v", e.err) }
func (e *ClientError) Unwrap() error { return e.err }

var errBodyTooLong = errors.New("body longer than the limit")

// Start sends the body in a goroutine of its own, which Abort or Cut waits for.
func (u *Upload) Start() {
	u.done = make(chan struct{})
	go u.run()
}

// run sends the body.
func (u *Upload) run() {
	defer close(u.done)
	defer func() {
		// A panic here would end the process and not only this request.
		if p := recover(); p != nil {
			u.Panicked(p)
			u.err = fmt.Errorf("panic while sending the request body: %v", p)
			u.Conn.Abort()
		}
	}()
	u.err = u.copy()
	if _, ok := errors.AsType[*ClientError](u.err); ok {
		// The origin waits for bytes that will not come.
		u.Conn.Abort()
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.answered:
	case u.err != nil:
		u.Conn.Limit(u.Conn.SendTimeout()) // it no longer takes the body
	default:
		u.Conn.Limit(u.Wait)
	}
}

func (u *Upload) copy() error {
	buf := pieces.Get().(*[pieceMax]byte)
	defer pieces.Put(buf)
	var sent int64
	for {
		n, err := u.From.Read(buf[http1.ChunkHeadMax : pieceMax-2])
		sent += int64(n)
		if u.Limit > 0 && sent > u.Limit {
			return &ClientError{BodyTooLong, errBodyTooLong}
		}
		if n > 0 {
			u.Active.Moved()
			if _, err := u.Conn.Write(u.frame(buf, n)); err != nil {
				return fmt.Errorf("send request body: %w", err)
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return ReadError(err)
		}
	}
	if u.Size == http1.LengthChunked {
		if _, err := u.Conn.Write(u.Trailer(append(buf[:0], "0\r\n"...), u.From.Trailer())); err != nil {
			return fmt.Errorf("send request body: %w", err)
		}
	} else if sent != u.Size {
		return ReadError(io.ErrUnexpectedEOF)
	}
	return nil
}

// frame returns the n bytes that were read into buf after http1.ChunkHeadMax, as they
// go to the origin.
func (u *Upload) frame(buf *[pieceMax]byte, n int) []byte {
	if u.Size != http1.LengthChunked {
		return buf[http1.ChunkHeadMax : http1.ChunkHeadMax+n]
	}
	from, to := http1.FrameChunk(buf[:], http1.ChunkHeadMax, n)
	return buf[from:to]
}

// ReadError returns what the client is told whose body could not be read, for err.
func ReadError(err error) error {
	if e, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); ok && e.Timeout() {
		return &ClientError{http1.Refusal{Code: http.StatusRequestTimeout, Reason: "the body came too slowly"}, err}
	}
	if err == http1.ErrTrailerLong {
		return &ClientError{http1.Refusal{Code: http.StatusRequestHeaderFieldsTooLarge, Reason: "the trailer of the body is too long"}, err}
	}
	return &ClientError{http1.Bad("the body is not in order"), err}
}

// HeadRead says that the response has begun: from then on the deadlines are its
// own, and the two may talk as slowly as they like.
func (u *Upload) HeadRead() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answered = true
	u.Edge.AnyPace()
}

// Ended reports whether the whole body has been sent, or has been within d.
func (u *Upload) Ended(d time.Duration) bool {
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

// Cut ends the upload of a request that was not answered, and returns what its client has to do with
// that: either side may have been the first to fail.
func (u *Upload) Cut() *ClientError {
	u.Conn.Abort()
	if !u.Ended(0) {
		u.Edge.Stop()
	}
	<-u.done
	e, _ := errors.AsType[*ClientError](u.err)
	return e
}

// Abort ends the upload and waits for its end. The client's connection is then
// somewhere inside the body and must be closed; as it may still be sending, it
// is given time to read the answer.
func (u *Upload) Abort() {
	u.Conn.Abort()
	u.Edge.Stop()
	u.Edge.Lingers(true)
	<-u.done
}

// BodyTooLong is why a body is refused that is longer than it may be.
var BodyTooLong = http1.Refusal{Code: http.StatusRequestEntityTooLarge, Reason: "the body is too long"}
