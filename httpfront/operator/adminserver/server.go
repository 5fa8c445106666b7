package adminserver

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/time/rate"

	"github.com/ropeline/ropeline/httpfront/edge"
)

// Part answers some of the requests.
type Part interface {
	// Needs returns what somebody has to be allowed to do for a request, and whether the
	// part answers it at all. Nothing is for requests that anybody may make.
	Needs(method, path string) (Scope, bool)
	// Serve answers one.
	Serve(ctx *fasthttp.RequestCtx)
}

// Config says how a Server serves. Listener is required.
type Config struct {
	Listener net.Listener // Run closes it
	TLS      *tls.Config  // nil: without
	Tokens   *Tokens      // nil or empty: everybody may do everything, on loopback
	Health   Part         // nil: none. Answers health checks, for which there are no limits: it has to be quick
	Parts    []Part       // the first that answers a request does
	Conns    int          // connections at one time. Default ConnsMax
	Logger   *slog.Logger // default slog.Default()

	Stopping <-chan struct{} // closed when Run is to end soon: each answer is the last of its connection then. Nil: never
}

// Server answers operators and their programs.
type Server struct {
	cfg    Config
	tokens atomic.Pointer[Tokens]
	limits *limits
	large  chan struct{} // an element for each large body that is held
	drops  *rate.Limiter // of bytes of bodies that are dropped
}

// How many connections there may be. Each costs up to 96 KiB, garbage included, before its token is known.
const (
	ConnsMax           = 1024
	connsMaxPerAddress = 256
)

// ErrOpen is wrapped by the error about a listener that is not on loopback and lets
// everybody in, or tokens be read.
var ErrOpen = errors.New("want a loopback address such as 127.0.0.1, or tokens and TLS")

// New checks cfg and returns a Server that Run will serve.
func New(cfg Config) (*Server, error) {
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	cfg.Conns = cmp.Or(cfg.Conns, ConnsMax)
	addr := cfg.Listener.Addr().String()
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("admin: listen on %q: %w", addr, err)
	}
	if !isLoopback(host) && (cfg.Tokens.Len() == 0 || cfg.TLS == nil) {
		return nil, fmt.Errorf("admin: listen on %q: %w", addr, ErrOpen)
	}
	s := &Server{cfg: cfg, large: make(chan struct{}, largeMax), drops: rate.NewLimiter(dropRate, dropPiece)}
	s.tokens.Store(cfg.Tokens)
	if s.limits, err = newLimits(); err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	return s, nil
}

// isLoopback takes literal addresses and "localhost" only: what any other name stands for
// can change after it was looked at.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// SetTokens has other tokens be good from now on. There must be some if there were, and
// none if there were not.
func (s *Server) SetTokens(t *Tokens) error {
	if (t.Len() == 0) != (s.tokens.Load().Len() == 0) {
		return errors.New("admin: whether there are tokens is settled when the node starts")
	}
	s.tokens.Store(t)
	return nil
}

// Scope returns what a token is good for.
func (s *Server) Scope(token string) Scope {
	t := s.tokens.Load()
	if t.Len() == 0 {
		return Write
	}
	return t.Scope(token)
}

// Run serves until ctx ends. It returns nil then, and an error if it could not serve.
func (s *Server) Run(ctx context.Context) error {
	ln := edge.NewPlaces(s.cfg.Listener, edge.PlacesConfig{Name: "admin", Conns: s.cfg.Conns, PerAddress: connsMaxPerAddress, Strangers: s.cfg.Conns, TLS: s.cfg.TLS, Log: s.cfg.Logger})
	srv := &fasthttp.Server{
		Handler:        s.handle,
		ReadTimeout:    10 * time.Second,
		WriteTimeout:   30 * time.Second,
		IdleTimeout:    time.Minute,
		ReadBufferSize: 16 << 10, // of a head
		// Of a body no more than its beginning is read before handle knows who asks.
		StreamRequestBody:            true,
		DisablePreParseMultipartForm: true,
		Concurrency:                  s.cfg.Conns + ConnsMax, // those that gave up their places end in a moment
		Name:                         "ropeline",
		CloseOnShutdown:              true,
		SecureErrorLogMessage:        true,
		Logger:                       discreet{s.cfg.Logger},
		KeepHijackedConns:            true, // by streams of the dashboard
		ErrorHandler:                 refuseMalformed,
	}
	// Answers are small, so requests under way end at once or never; streams end with
	// those who tell on them.
	err := edge.Until(ctx, 2*time.Second, func() error { return srv.Serve(ln) }, func(last context.Context) {
		if err := srv.ShutdownWithContext(last); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			s.cfg.Logger.Warn("the admin listener was not closed in order", "error", err)
		}
		ln.Close() // which ends a server that was told to stop before it began
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("admin: %w", err)
	}
	return nil
}

func refuseMalformed(ctx *fasthttp.RequestCtx, err error) {
	refuse(ctx, fasthttp.StatusBadRequest, "the request is not in order: "+err.Error())
	ctx.SetConnectionClose()
}

// discreet logs what the server says of connections, without errors that quote what a client has
// sent: there may be a token in it.
type discreet struct{ log *slog.Logger }

// Printf implements fasthttp.Logger.
func (d discreet) Printf(format string, args ...any) {
	for i, a := range args {
		err, ok := a.(error)
		if !ok {
			continue
		}
		if of, ok := errors.AsType[*net.OpError](err); ok {
			args[i] = of
		} else {
			args[i] = fmt.Sprintf("%T", err)
		}
	}
	d.log.Debug(fmt.Sprintf(format, args...))
}
