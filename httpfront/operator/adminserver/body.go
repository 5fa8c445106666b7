package adminserver

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ropeline/ropeline/httpfront/edge"
	"github.com/ropeline/ropeline/httpfront/operator/admin"
)

// MaxBody is how many bytes the body of a request may have: one more than the API takes,
// which says better what is wrong.
const MaxBody = admin.MaxBody + 1

const (
	// smallBody is how many bytes of a body may be held without further ado.
	smallBody = 64 << 10
	// largeMax is how many bodies that are longer, or of unknown length, are held at a time, with what is made of
	// them: a page of a room is one, and few people set pages at once.
	largeMax  = 4
	largeWait = 5 * time.Second
)

// takeBody reads the body of a request of somebody who may make it. If it cannot, it answers the request and
// reports false; else release is to be called once nothing of the body is needed any more.
func (s *Server) takeBody(ctx *fasthttp.RequestCtx) (release func(), ok bool) {
	release = func() {}
	if !ctx.Request.IsBodyStream() {
		return release, true
	}
	length := ctx.Request.Header.ContentLength()
	if length > MaxBody {
		tooLarge(ctx)
		return nil, false
	}
	if length < 0 || length > smallBody {
		select {
		case s.large <- struct{}{}:
			release = func() { <-s.large }
		case <-time.After(largeWait):
			ctx.Response.Header.Set("Retry-After", "1")
			refuse(ctx, fasthttp.StatusServiceUnavailable, fmt.Sprintf("%d other long bodies are worked on at the moment; ask again", largeMax))
			return nil, false
		}
	}
	body, err := io.ReadAll(io.LimitReader(ctx.RequestBodyStream(), MaxBody+1))
	switch {
	case err != nil:
		refuse(ctx, fasthttp.StatusBadRequest, "the body did not come: "+err.Error())
		ctx.SetConnectionClose()
	case len(body) > MaxBody:
		tooLarge(ctx)
	default:
		ctx.Request.SetBodyRaw(body)
		return release, true
	}
	release()
	return nil, false
}

func tooLarge(ctx *fasthttp.RequestCtx) {
	refuse(ctx, fasthttp.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", MaxBody))
}

// How fast bodies are dropped, all together, in bytes per second and at a time. Nobody else waits for it, and dropping them
// as fast as they come takes the processor from visitors.
const (
	dropRate  = 128 << 20
	dropPiece = 32 << 10
)

// dropBody reads what is left of a body and keeps none of it. Most clients send all of it before they read the
// answer, which they might not get if the connection was closed before.
func (s *Server) dropBody(ctx *fasthttp.RequestCtx) {
	if !ctx.Request.IsBodyStream() {
		return
	}
	var gone <-chan struct{}
	if p := edge.PlaceOf(ctx.Conn()); p != nil {
		gone = p.Gone()
	}
	body, dropped := ctx.RequestBodyStream(), int64(0)
	for dropped <= MaxBody {
		n, err := io.CopyN(io.Discard, body, dropPiece)
		dropped += n
		if err != nil {
			if !errors.Is(err, io.EOF) {
				ctx.SetConnectionClose()
			}
			break
		}
		piece := s.drops.ReserveN(time.Now(), dropPiece)
		select {
		case <-time.After(piece.Delay()):
		case <-gone: // the connection is closed: what is held for it would be held beside what its successor has
			piece.Cancel()
		}
	}
	if dropped > MaxBody {
		ctx.SetConnectionClose() // what comes is no next request
	}
	ctx.Request.ResetBody()
}
