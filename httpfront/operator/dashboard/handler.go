package dashboard

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ropeline/ropeline/httpfront/operator/admin"
)

// Config says how a Handler serves. Source and Authorize are required.
type Config struct {
	Source Source
	// Authorize reports whether who presents that token may look. The token is ""
	// where none is presented. It is asked again before every event of a stream, which
	// ends when the answer is no, so it has to be quick.
	Authorize func(token string) bool
	// Logger takes what goes wrong. The default is slog.Default().
	Logger *slog.Logger
}

// pace is how fast a Handler tells, and to how many.
type pace struct {
	// interval is how often the Source is asked while anybody looks on. What happens in
	// between is told as one change. Longer is staler, shorter costs more.
	interval time.Duration
	// heartbeat is how long a stream is silent at most. The page takes a stream for broken
	// that says nothing for 15 s.
	heartbeat time.Duration
	// write is how long a connection may take nothing before its stream ends. It replaces
	// that of the server.
	write   time.Duration
	readers int // streams that there may be at a time
}

// Handler serves
//
//	GET /dashboard/                    the page and its files
//	GET /api/v1/watch                  the mesh: server-sent events "snapshot", then "delta"
//	GET /api/v1/rooms/{room}/watch     one room in detail: the same
//
// A stream ends with the event "revoked" when its token is good no more, and with "gone"
// when there is no such room any more.
type Handler struct {
	cfg   Config
	pace  pace
	files map[string]*file
	over  chan struct{} // closed when Run ends
	tick  *time.Ticker  // runs only while somebody looks on: to wake for nobody is a part of what an idle node costs

	mu      sync.Mutex              // guards the following
	readers int                     // streams that are open
	hubs    map[string]*followedHub // by room; "" is the mesh. Those without readers are dropped
}

type followedHub struct {
	hub
	readers int
}

// New returns a Handler. Run has to be called for it to tell of changes.
func New(cfg Config) (*Handler, error) {
	if cfg.Source == nil || cfg.Authorize == nil {
		return nil, errors.New("dashboard: Source and Authorize are required")
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	files, err := loadFiles()
	if err != nil {
		return nil, err
	}
	pace := pace{interval: time.Second, heartbeat: 5 * time.Second, write: 15 * time.Second, readers: 64}
	tick := time.NewTicker(pace.interval)
	tick.Stop()
	return &Handler{cfg: cfg, pace: pace, files: files, over: make(chan struct{}), tick: tick, hubs: map[string]*followedHub{}}, nil
}

// Run tells readers what changes, until ctx ends; then all streams do. It may be called
// once.
func (h *Handler) Run(ctx context.Context) error {
	defer close(h.over)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-h.tick.C:
			for _, hub := range h.followed() {
				if err := hub.refresh(time.Now()); err != nil {
					h.cfg.Logger.Error("the dashboard cannot show what there is", "error", err)
				}
			}
		}
	}
}

func (h *Handler) followed() []*followedHub {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Values(h.hubs))
}

const (
	pagePath = "/dashboard/"
	apiPath  = "/api/v1/"
)

// Needs implements adminserver.Part. Anybody gets the page's files, which tell nothing; it asks for a token itself.
func (h *Handler) Needs(_, path string) (admin.Scope, bool) {
	if path == "/" || path == strings.TrimSuffix(pagePath, "/") || strings.HasPrefix(path, pagePath) {
		return admin.Nothing, true
	}
	_, ok := ofAPI(path)
	return admin.Read, ok
}

// ofAPI reports whether a stream is at a path, and of which room it is, "" for the mesh.
func ofAPI(path string) (room string, ok bool) {
	rest, ok := strings.CutPrefix(path, apiPath)
	if rest == "watch" {
		return "", ok
	}
	parts := strings.Split(rest, "/")
	if ok = ok && len(parts) == 3 && parts[0] == "rooms" && parts[1] != "" && parts[2] == "watch"; !ok {
		return "", false
	}
	return parts[1], true
}

// Serve implements adminserver.Part. Streams need a server with KeepHijackedConns.
func (h *Handler) Serve(ctx *fasthttp.RequestCtx) {
	p := string(ctx.Path())
	file, ofPage := strings.CutPrefix(p, pagePath)
	room, stream := ofAPI(p)
	switch {
	case p == "/":
		ctx.Redirect(pagePath, fasthttp.StatusFound)
	case p == strings.TrimSuffix(pagePath, "/"):
		ctx.Response.Header.Set("Location", "dashboard/")
		ctx.SetStatusCode(fasthttp.StatusPermanentRedirect)
	case ofPage && h.files[file] == nil:
		refuse(ctx, fasthttp.StatusNotFound, problem{Message: fmt.Sprintf("the dashboard has no file %q", file)})
	case !stream && !ofPage:
		refuse(ctx, fasthttp.StatusNotFound, problem{Message: "there is nothing here"})
	case !getOnly(ctx):
	case ofPage:
		h.files[file].serve(ctx)
	default:
		h.watch(ctx, room)
	}
}

func getOnly(ctx *fasthttp.RequestCtx) bool {
	if ctx.IsGet() || ctx.IsHead() {
		return true
	}
	ctx.Response.Header.Set("Allow", "GET, HEAD")
	refuse(ctx, fasthttp.StatusMethodNotAllowed, problem{Message: fmt.Sprintf("%s is not possible here; GET and HEAD are", ctx.Method())})
	return false
}

// watch answers with a stream about a room, or about the mesh if room is "".
func (h *Handler) watch(ctx *fasthttp.RequestCtx, room string) {
	token, _ := strings.CutPrefix(string(ctx.Request.Header.Peek("Authorization")), "Bearer ")
	if !h.cfg.Authorize(token) {
		ctx.Response.Header.Set("WWW-Authenticate", "Bearer")
		refuse(ctx, fasthttp.StatusUnauthorized, problem{Message: "this needs a token with the scope read, as Authorization: Bearer TOKEN"})
		return
	}
	select {
	case <-h.over:
		refuse(ctx, fasthttp.StatusServiceUnavailable, problem{Message: "this node is being stopped"})
		return
	default:
	}
	hub, err := h.enter(room)
	if errors.Is(err, errFull) {
		ctx.Response.Header.Set("Retry-After", "10")
		refuse(ctx, fasthttp.StatusServiceUnavailable, problem{Message: fmt.Sprintf(
			"%d others look on already, which is as many as may; close another window, or ask another node", h.pace.readers)})
		return
	}
	leave := func() { h.leave(room, hub) }
	if err == nil && hub.current.Load() == nil {
		err = hub.refresh(time.Now())
	}
	if err != nil {
		leave()
		h.cfg.Logger.Error("the dashboard cannot show what there is", "error", err)
		refuse(ctx, fasthttp.StatusInternalServerError, problem{Message: "what there is to show cannot be encoded; the log says why"})
		return
	}
	if hub.current.Load().gone {
		leave()
		noRoom(ctx, room)
		return
	}
	header(ctx, "text/event-stream")
	ctx.Response.Header.Set("X-Accel-Buffering", "no") // has nginx pass it on at once
	if ctx.IsHead() {
		leave()
		return
	}
	ctx.Response.Header.SetContentLength(-2) // the end of the connection is that of the stream
	head, conn := bytes.Clone(ctx.Response.Header.Header()), ctx.Conn()
	told := &stream{hub: &hub.hub, allowed: func() bool { return h.cfg.Authorize(token) }, over: h.over, heartbeat: h.pace.heartbeat, beat: time.NewTimer(h.pace.heartbeat)}
	// A server keeps the buffers of a request until it has written the answer: several times what a stream needs.
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(net.Conn) {
		go func() {
			defer leave()
			h.tell(told, conn, head)
		}()
	})
}

var errFull = errors.New("as many streams are open as may be")

// enter counts one more reader of a room. It returns errFull if there may be no more.
func (h *Handler) enter(room string) (*followedHub, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.readers >= h.pace.readers {
		return nil, errFull
	}
	hub, ok := h.hubs[room]
	if !ok {
		hub = &followedHub{}
		hub.get = func(now time.Time) (any, bool) { return h.cfg.Source.Snapshot(now), true }
		if room != "" {
			hub.get = func(now time.Time) (any, bool) { return h.cfg.Source.Room(room, now) }
		}
		if len(h.hubs) == 0 {
			h.tick.Reset(h.pace.interval)
		}
		h.hubs[room] = hub
	}
	h.readers++
	hub.readers++
	return hub, nil
}

func (h *Handler) leave(room string, hub *followedHub) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readers--
	if hub.readers--; hub.readers == 0 {
		delete(h.hubs, room)
	}
	if len(h.hubs) == 0 {
		h.tick.Stop()
	}
}

// problem is one thing that is wrong with a request. Only Message is always there.
type problem struct {
	Field   string `json:"field,omitempty"`
	Value   string `json:"value,omitempty"`
	Allowed string `json:"allowed,omitempty"`
	Message string `json:"message"`
}

func refuse(ctx *fasthttp.RequestCtx, code int, problems ...problem) {
	ctx.SetStatusCode(code)
	answer(ctx, map[string][]problem{"errors": problems})
}

func noRoom(ctx *fasthttp.RequestCtx, room string) {
	refuse(ctx, fasthttp.StatusNotFound, problem{Field: "room", Value: room, Message: fmt.Sprintf("there is no room %q", room)})
}

// answer answers with v, which can be encoded.
func answer(ctx *fasthttp.RequestCtx, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("dashboard: %T cannot be encoded: %v", v, err))
	}
	header(ctx, "application/json")
	ctx.Response.SetBodyRaw(b)
}

func header(ctx *fasthttp.RequestCtx, contentType string) {
	ctx.SetContentType(contentType)
	ctx.Response.Header.Set("Cache-Control", "no-store")
	ctx.Response.Header.Set("X-Content-Type-Options", "nosniff")
}
