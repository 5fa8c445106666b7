package verdict

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"

	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/conn/address"
	"github.com/ropeline/ropeline/httpfront/edge"
)

// Judge decides about requests. *httpfront.Front is one.
type Judge interface {
	// Judge says what becomes of a request. It may be called from many goroutines
	// at once. See httpfront.Front.Judge.
	Judge(q *httpfront.Question) httpfront.Answer

	// Revoke ends the session of the visitor who has sent a request. See
	// httpfront.Front.Revoke.
	Revoke(q *httpfront.Question) (cookie string, err error)

	// JWKS returns the public keys of proofs of admission; nil if there are none.
	JWKS() []byte
}

var _ Judge = (*httpfront.Front)(nil)

// Config says how a Server serves. Listener, Judge and TrustedProxies are
// required.
type Config struct {
	// Listener is served on; Run closes it.
	Listener net.Listener
	// Judge decides.
	Judge Judge
	// TrustedProxies are the peers that may ask. What they say of a visitor's
	// address, host and TLS is believed, so visitors must not be among them. They
	// are those of the Judge, or fewer.
	TrustedProxies []netip.Prefix
	// Ready says why this node cannot decide at the moment; nil if it can. Nil means that
	// it always can.
	Ready func() error
	// Stopping is closed when Run is to end soon: each answer is the last of its connection then. Nil: never.
	Stopping <-chan struct{}
	// Conns is how many connections there are at one time. One that waits for a question gives its place to another
	// where there is none left, peers that are not trusted first. Default ConnsMax.
	Conns int
	// Logger takes what an operator should know: peers that are not trusted, and
	// proxies that do not say what they have to. The default is slog.Default().
	Logger *slog.Logger
}

// Server answers proxies. It speaks HTTP/1.1 and, for gRPC, HTTP/2 without TLS, on one
// listener.
type Server struct {
	cfg      Config
	grpc     *grpc.Server
	warnings warnings
}

// warnings keeps a proxy that asks wrongly from filling the log.
type warnings struct{ untrusted, misconfigured rate.Sometimes }

const warnEvery = time.Minute

// headMax is the longest head of a question in bytes. Proxies add to heads that they
// have accepted themselves, so it is well above what they accept.
const headMax = 128 << 10

// ConnsMax is how many connections there are by default. Proxies that keep none have one for each question under way.
// A peer that is not trusted has connsMaxPerAddress, and all of them have strangersMax: they can have no more answered than
// whether this node is ready, and the keys of proofs, while each head may be as long as those of proxies.
const (
	ConnsMax           = 8192
	connsMaxPerAddress = 256
	strangersMax       = 512
)

// streamsMax is how many calls one connection may have open. Envoy has one connection
// per worker, so it is what Envoy may ask at a time; most answers take no time, some a
// second or two.
const streamsMax = 4096

// New checks cfg and returns a Server that Run will serve. It opens nothing.
func New(cfg Config) (*Server, error) {
	var errs []error
	if cfg.Listener == nil {
		errs = append(errs, errors.New("no listener given"))
	}
	if cfg.Judge == nil {
		errs = append(errs, errors.New("no judge given"))
	}
	if len(cfg.TrustedProxies) == 0 {
		errs = append(errs, errors.New("no trusted proxies given, so nobody may ask"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("verdicts: %w", err)
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	cfg.Conns = cmp.Or(cfg.Conns, ConnsMax)
	if cfg.Ready == nil {
		cfg.Ready = func() error { return nil }
	}
	s := &Server{cfg: cfg}
	s.grpc = s.newGRPC()
	s.warnings.untrusted.Interval, s.warnings.misconfigured.Interval = warnEvery, warnEvery
	return s, nil
}

// Run serves until ctx ends. Then it takes no more connections, lets questions under
// way be answered for a few seconds, and returns nil. It returns an error if it could
// not serve. It is to be called once.
func (s *Server) Run(ctx context.Context) error {
	srv := s.server()
	ln := edge.NewPlaces(s.cfg.Listener, edge.PlacesConfig{
		Name: "verdict-listen", Conns: s.cfg.Conns, PerAddress: connsMaxPerAddress, Trusted: s.cfg.TrustedProxies, Strangers: strangersMax, Log: s.cfg.Logger,
	})
	// A question takes as long as Judge, a second or two at most.
	err := edge.Until(ctx, 5*time.Second, func() error { return srv.Serve(ln) }, func(last context.Context) {
		if srv.Shutdown(last) != nil {
			srv.Close()
		}
		s.grpc.Stop()
	})
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("verdicts: %w", err)
	}
	return nil
}

func (s *Server) server() *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           s,
		Protocols:         protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: streamsMax},
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute, // longer than proxies keep connections
		MaxHeaderBytes:    headMax,
		ConnState:         keepPlaces,
		ErrorLog:          slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelDebug),
	}
}

// keepPlaces has connections of trusted proxies keep their places while they ask. What others may ask for takes no time.
func keepPlaces(c net.Conn, state http.ConnState) {
	p := edge.PlaceOf(c)
	switch {
	case p == nil || p.IsLimited():
	case state == http.StateActive:
		p.Keep()
	case state == http.StateIdle:
		p.Await()
	}
}

// ServeHTTP answers one question.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case <-s.cfg.Stopping:
		w.Header().Set("Connection", "close") // of HTTP/2, a GOAWAY
	default:
	}
	if s.serveKeys(w, r) || s.serveReady(w, r) {
		return
	}
	peer, ok := s.trusted(r)
	if !ok {
		s.warnings.untrusted.Do(func() {
			s.cfg.Logger.Warn("a peer that is not among the trusted proxies has asked for a verdict and was refused", "peer", r.RemoteAddr)
		})
		text(w, http.StatusForbidden, "this address is not among the trusted proxies")
		return
	}
	if isGRPC(r) {
		s.grpc.ServeHTTP(w, r)
		return
	}
	// The path is not cleaned: behind /envoy it is the visitor's.
	path, _, _ := strings.Cut(r.RequestURI, "?")
	switch {
	case path == "/nginx":
		s.answer(w, r, peer, nginx)
	case path == "/nginx/page":
		s.answer(w, r, peer, nginxPage)
	case path == "/forward":
		s.answer(w, r, peer, forward)
	case strings.HasPrefix(path, envoyPrefix+"/"):
		s.answer(w, r, peer, envoy)
	case path == "/revoke":
		s.revoke(w, r, peer)
	default:
		text(w, http.StatusNotFound, "no dialect has this path; see docs/verdicts.md")
	}
}

// serveKeys answers a request for the public keys of proofs, which anybody may have. It
// reports whether r is one.
func (s *Server) serveKeys(w http.ResponseWriter, r *http.Request) bool {
	if r.RequestURI != "/jwks.json" && r.RequestURI != httpfront.JWKSPath {
		return false
	}
	keys := s.cfg.Judge.JWKS()
	if keys == nil {
		text(w, http.StatusNotFound, "this node makes no proofs of admission; see docs/verdicts.md")
		return true
	}
	h := w.Header()
	h.Set("Content-Type", "application/jwk-set+json")
	h.Set("Cache-Control", "public, max-age="+strconv.Itoa(int(httpfront.JWKSAge/time.Second)))
	w.Write(keys)
	return true
}

// serveReady answers whether this node can decide, as the admin listener does, which only
// its own machine reaches: by that, proxies and balancers find out which nodes to ask. Who
// may not decides about nobody, and is told in a word, so anybody may ask. It reports
// whether r does.
func (s *Server) serveReady(w http.ResponseWriter, r *http.Request) bool {
	if r.RequestURI != "/readyz" {
		return false
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if err := s.cfg.Ready(); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, "not ready: "+err.Error())
		return true
	}
	fmt.Fprintln(w, "ready")
	return true
}

// trusted returns who asks, and whether they may.
func (s *Server) trusted(r *http.Request) (netip.Addr, bool) {
	ap, _ := netip.ParseAddrPort(r.RemoteAddr) // which is in no network where it is none
	peer := ap.Addr().Unmap().WithZone("")
	return peer, address.Contains(s.cfg.TrustedProxies, peer)
}

// answer has a question decided, and tells the verdict in the dialect of who asks.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, peer netip.Addr, d *dialect) {
	q, err := d.question(r, peer)
	if err != nil {
		s.misconfigured(d.name, err)
		text(w, d.malformed(http.StatusBadRequest), err.Error())
		return
	}
	a := s.cfg.Judge.Judge(q)
	d.write(w, d, &a)
}

// misconfigured tells the operator what a proxy should have said.
func (s *Server) misconfigured(dialect string, err error) {
	s.warnings.misconfigured.Do(func() {
		s.cfg.Logger.Warn("a proxy asks for verdicts without saying all it has to; its visitors are refused", "dialect", dialect, "error", err)
	})
}

// stateField tells answers of ours from the site's; see docs/pages.md.
const stateField = "Ropeline-State"

func text(w http.ResponseWriter, code int, line string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set(stateField, "refused") // some proxies hand it to visitors
	w.WriteHeader(code)
	fmt.Fprintln(w, line)
}
