package adminserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ropeline/ropeline/httpfront/conn/address"
	"github.com/ropeline/ropeline/httpfront/edge"
	"github.com/ropeline/ropeline/httpfront/operator/admin"
)

// handle answers one request.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	defer func() {
		if p := recover(); p != nil {
			s.cfg.Logger.Error("panic while serving an operator", "panic", p, "stack", string(debug.Stack()))
			refuse(ctx, fasthttp.StatusInternalServerError, "this request could not be served; the log says why")
		}
	}()
	defer s.dropBody(ctx)
	defer s.endIfStopping(ctx)
	h := &ctx.Response.Header
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if !bytes.EqualFold(ctx.Host(), ctx.Request.Header.Host()) {
		// The server takes a host out of some addresses, "//localhost/?://" among them, and a
		// page of another site can have a browser ask for those.
		refuse(ctx, fasthttp.StatusBadRequest, "the address and the Host field name different hosts")
		return
	}
	path := string(ctx.URI().PathOriginal()) // as the API takes it apart, so that both mean the same
	if s.cfg.Health != nil {
		if _, ok := s.cfg.Health.Needs(string(ctx.Method()), path); ok {
			s.dropBody(ctx)
			s.cfg.Health.Serve(ctx)
			return
		}
	}
	s.answer(ctx, path)
}

// endIfStopping has the answer say that it is the last of its connection, if the listener will be closed soon.
func (s *Server) endIfStopping(ctx *fasthttp.RequestCtx) {
	select {
	case <-s.cfg.Stopping:
		ctx.SetConnectionClose()
	default:
	}
}

// answer answers a request that is no health check, if whoever made it may.
func (s *Server) answer(ctx *fasthttp.RequestCtx, path string) {
	part, needs := s.partFor(string(ctx.Method()), path)
	open := s.tokens.Load().Len() == 0
	if open && needs > Nothing && !localName(string(ctx.Host())) {
		// Without this, a web page could read the answers through a browser on this machine,
		// by giving its own name our address (DNS rebinding). What needs nothing anybody may
		// read, such as balancers that name no host.
		refuse(ctx, fasthttp.StatusMisdirectedRequest, "without tokens this listener answers to loopback names only")
		return
	}
	who := s.whoAsks(ctx)
	limit := s.limits.of(who.asker)
	now := time.Now()
	if d := wait(limit.asks, now); d > 0 {
		tooMany(ctx, d)
		return
	}
	if !straight(ctx) {
		refuse(ctx, fasthttp.StatusBadRequest, `the path is not in order: want one without "." and "..", and without empty segments`)
		return
	}
	if who.scope < needs {
		who.refuse(ctx, needs, limit, now)
		return
	}
	if open {
		if err := sameOrigin(ctx); err != nil {
			refuse(ctx, fasthttp.StatusForbidden, "a page of another site may not change anything here: "+err.Error())
			return
		}
	}
	if part == nil {
		refuse(ctx, fasthttp.StatusNotFound, fmt.Sprintf("there is nothing at %s; /api/v1/openapi.json says what there is", ctx.Path()))
		return
	}
	if who.scope == Nothing {
		s.dropBody(ctx) // what anybody may ask for takes none
		part.Serve(ctx)
		return
	}
	s.serve(ctx, part)
}

// serve has a part answer somebody who has a token that is good, or needs none here.
func (s *Server) serve(ctx *fasthttp.RequestCtx, part Part) {
	if p := edge.PlaceOf(ctx.Conn()); p != nil {
		p.Keep()
		defer func() {
			if !ctx.Hijacked() { // streams go on, and close their connection
				p.Await()
			}
		}()
	}
	release, ok := s.takeBody(ctx)
	if !ok {
		return
	}
	defer release()
	part.Serve(ctx)
}

// straight reports whether a path leads where it says, after it is decoded. Parts do not
// agree about any other: some look at it as it was sent, some at what is left when ".." and
// the segment before it are gone.
func straight(ctx *fasthttp.RequestCtx) bool {
	decoded, err := url.PathUnescape(string(ctx.URI().PathOriginal()))
	return err == nil && decoded == string(ctx.Path())
}

// partFor returns who answers a request, nil if nobody does, and what it needs: what
// there is, is not told to strangers.
func (s *Server) partFor(method, path string) (Part, Scope) {
	for _, p := range s.cfg.Parts {
		if needs, ok := p.Needs(method, path); ok {
			return p, needs
		}
	}
	return nil, Read
}

// identity is who has made a request.
type identity struct {
	asker
	scope  Scope
	bearer bool // a token was presented, be it good or not
}

// whoAsks returns who has made a request. Without tokens everybody may do everything.
func (s *Server) whoAsks(ctx *fasthttp.RequestCtx) identity {
	who := identity{asker: asker{from: address.Counted(address.Of(ctx.RemoteAddr()))}}
	if s.tokens.Load().Len() == 0 {
		who.scope = Write
		return who
	}
	scheme, token, _ := strings.Cut(string(ctx.Request.Header.Peek("Authorization")), " ")
	if who.bearer = strings.EqualFold(scheme, "Bearer"); !who.bearer {
		token = string(ctx.Request.Header.Peek("X-Auth-Key")) // of clients that are given a key and an address
		if who.bearer = token != ""; !who.bearer {
			return who
		}
	}
	token = strings.TrimSpace(token)
	if who.scope = s.Scope(token); who.scope > Nothing {
		who.asker = asker{token: token}
	}
	return who
}

// refuse answers somebody who may not make a request that needs more.
func (who identity) refuse(ctx *fasthttp.RequestCtx, needs Scope, l *limit, now time.Time) {
	if who.scope > Nothing {
		refuse(ctx, fasthttp.StatusForbidden, fmt.Sprintf("this needs a token with the scope %s; the one that was sent has %s", needs, who.scope))
		return
	}
	what := "this needs a token, as Authorization: Bearer TOKEN"
	if who.bearer {
		if d := wait(l.misses, now); d > 0 {
			tooMany(ctx, d)
			return
		}
		what = "the token is not good; see the file that admin-token-file names"
	}
	ctx.Response.Header.Set("WWW-Authenticate", "Bearer")
	refuse(ctx, fasthttp.StatusUnauthorized, what)
}

func tooMany(ctx *fasthttp.RequestCtx, d time.Duration) {
	ctx.Response.Header.Set("Retry-After", strconv.Itoa(int(math.Ceil(d.Seconds()))))
	refuse(ctx, fasthttp.StatusTooManyRequests, fmt.Sprintf("too many requests from this address; ask again in %v", d.Round(time.Millisecond)))
}

func localName(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return isLoopback(strings.Trim(host, "[]"))
}

// sameOrigin returns an error for a request that a page of another site has a browser make.
// Programs other than browsers tell of no site.
func sameOrigin(ctx *fasthttp.RequestCtx) error {
	r := &http.Request{Method: string(ctx.Method()), Host: string(ctx.Host()), URL: &url.URL{Path: string(ctx.Path())}, Header: http.Header{}}
	for _, name := range []string{"Origin", "Sec-Fetch-Site"} {
		if v := ctx.Request.Header.Peek(name); len(v) > 0 {
			r.Header.Set(name, string(v))
		}
	}
	return http.NewCrossOriginProtection().Check(r)
}

// codes of the mistakes that this package tells of, by the status. All others are of requests
// that are not in order.
var codes = map[int]int{
	fasthttp.StatusUnauthorized: admin.CodeMayNot, fasthttp.StatusForbidden: admin.CodeMayNot, fasthttp.StatusMisdirectedRequest: admin.CodeMayNot,
	fasthttp.StatusNotFound: admin.CodeNoRoute, fasthttp.StatusRequestEntityTooLarge: admin.CodeTooLarge,
	fasthttp.StatusTooManyRequests: admin.CodeOften, fasthttp.StatusInternalServerError: admin.CodeFault,
}

// refuse answers with a reason, in the form that whoever asks at that path expects.
func refuse(ctx *fasthttp.RequestCtx, status int, message string) {
	all := []admin.Mistake{{Code: cmp.Or(codes[status], admin.CodeRequest), Message: message}}
	var v any = map[string]any{"errors": all}
	if strings.HasPrefix(string(ctx.Path()), "/client/") {
		v = map[string]any{"success": false, "errors": all, "messages": []string{}, "result": nil}
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic("adminserver: a message cannot be encoded: " + err.Error())
	}
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	ctx.SetBody(append(b, '\n'))
}
