package httpfront

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"github.com/ropeline/ropeline/httpfront/pass"
	"github.com/ropeline/ropeline/httpfront/proof"
)

// Config says how a Front serves. Rooms and Keys are required, and for Run Origin and
// one of Listen and Listener; the zero value of everything else means its default.
// Negative durations and numbers are refused.
type Config struct {
	// Listen is the TCP address to serve on, such as ":8080". It is opened by
	// Run and not used when Listener is set.
	Listen string
	// Listener is served on if it is set; Run closes it.
	Listener net.Listener
	// TLS, if set, makes the front terminate TLS itself. HTTP/1.1 is the only
	// protocol offered.
	TLS *tls.Config

	// Origin is the web site behind the front: http://host[:port] or
	// https://host[:port], without a path. Without one the front only answers
	// questions of other proxies (Judge), and Run fails.
	Origin string
	// OriginTLS is used towards an https origin; nil verifies the origin's name
	// against the roots of the system.
	OriginTLS *tls.Config
	// Rooms routes requests to rooms.
	Rooms Rooms
	// Keys seals and opens passes.
	Keys *pass.Keyring
	// TrustedProxies are the peers whose X-Forwarded-* fields are believed.
	// Nobody's are by default. Listing a network that visitors can connect from
	// lets them choose their own address.
	TrustedProxies []netip.Prefix
	// Proof makes the proofs of admission that requests carry to the origin. Nil means
	// that they carry none.
	Proof *proof.Signer
	// ProofHeader is the field of proofs. The visitor's own are dropped, whatever
	// Proof is. Default proof.Header.
	ProofHeader string
	// Ready returns nil once requests may be decided, and the reason until then.
	// Nil means always ready. It is called on every request and must not block.
	Ready func() error
	// Clock says when a request came: the clock by which the node runs, too.
	// Nil means time.Now.
	Clock func() time.Time
	// Logger takes what an operator should know; nothing is logged per request
	// that goes well. The default is slog.Default().
	Logger *slog.Logger

	Limits   Limits
	Timeouts Timeouts
}

// Limits bound what clients may make the front hold. Zero means the default.
type Limits struct {
	// Conns is how many client connections are open at once; more are answered
	// with 503 and closed, under TLS closed without a word. Each costs some 30 KiB. Default 32768.
	Conns int
	// OriginConns is how many requests are with the origin at once; more wait
	// for Timeouts.OriginWait. Default 1024.
	OriginConns int
	// Upgrades is how many upgraded connections (WebSocket) are open at once;
	// more are answered with 503. Each uses one connection to the origin beyond
	// OriginConns. Default 16384.
	Upgrades int
	// Body is the longest request body in bytes; a longer one is answered with
	// 413. Bodies are streamed, so this protects the origin, not the front.
	// Zero means no limit.
	Body int64
}

// Timeouts end what does not move. Zero means the default.
type Timeouts struct {
	// Head is how long a client may take for the head of a request. Default 10 s.
	Head time.Duration
	// Idle is how long a client connection without a request is kept. It is the
	// longest part of what idle clients cost. Default 30 s.
	Idle time.Duration
	// Body is the longest pause inside a request body. Default 30 s.
	Body time.Duration
	// Write is the longest that a client may take to accept the next piece of
	// an answer. Default 30 s.
	Write time.Duration
	// Dial is for connecting to the origin, TLS included. Default 5 s.
	Dial time.Duration
	// OriginWait is how long a request waits for a free place at the origin
	// before it is answered with 503. Default 10 s.
	OriginWait time.Duration
	// Origin is how long the origin may take from the last byte of a request to
	// the head of its response; then the answer is 504. Default 60 s.
	Origin time.Duration
	// Stream is the longest pause inside a response body. Event streams that are
	// quiet for longer need a higher value or comments as heartbeats.
	// Default 5 min.
	Stream time.Duration
	// Tunnel is the longest silence, in both directions, of an upgraded
	// connection. Default 2 min.
	Tunnel time.Duration
	// OriginIdle is how long an unused connection to the origin is kept. It
	// should be below the keep-alive time of the origin. Default 4 s, which is
	// below the five seconds that common application servers wait.
	OriginIdle time.Duration
	// Drain is how long Run lets requests end after its context has ended.
	// Default 25 s.
	Drain time.Duration
}

// target is where the origin is.
type target struct {
	addr string // host:port to dial
	host string // for the Host field of requests that carry none
	name string // to verify the certificate against
	tls  bool
}

// complete checks c and fills its defaults in.
func (c *Config) complete() (target, error) {
	var origin target
	var errs []error
	if c.Origin != "" {
		var err error
		origin, err = parseOrigin(c.Origin)
		errs = append(errs, err)
	}
	if c.Origin != "" && c.Listen == "" && c.Listener == nil {
		errs = append(errs, errors.New("no address to listen on"))
	}
	if c.Rooms == nil {
		errs = append(errs, errors.New("no rooms given"))
	}
	if c.Keys == nil {
		errs = append(errs, errors.New("no keys given"))
	}
	if c.ProofHeader == "" {
		c.ProofHeader = proof.Header
	}
	if !isFieldName(c.ProofHeader) {
		errs = append(errs, fmt.Errorf("proof header %q: want the name of a header field that is neither about the connection nor Host or Cookie", c.ProofHeader))
	}
	if c.Ready == nil {
		c.Ready = func() error { return nil }
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Limits.Body < 0 {
		errs = append(errs, fmt.Errorf("limit body is %d: want 0 or more bytes", c.Limits.Body))
	}
	errs = append(errs, c.Limits.complete(), c.Timeouts.complete())
	if err := errors.Join(errs...); err != nil {
		return target{}, fmt.Errorf("http front: %w", err)
	}
	return origin, nil
}

func (l *Limits) complete() error {
	return errors.Join(
		fill("limit conns", &l.Conns, 32768),
		fill("limit origin conns", &l.OriginConns, 1024),
		fill("limit upgrades", &l.Upgrades, 16384),
	)
}

func (t *Timeouts) complete() error {
	return errors.Join(
		fill("timeout head", &t.Head, 10*time.Second),
		fill("timeout idle", &t.Idle, 30*time.Second),
		fill("timeout body", &t.Body, 30*time.Second),
		fill("timeout write", &t.Write, 30*time.Second),
		fill("timeout dial", &t.Dial, 5*time.Second),
		fill("timeout origin wait", &t.OriginWait, 10*time.Second),
		fill("timeout origin", &t.Origin, time.Minute),
		fill("timeout stream", &t.Stream, 5*time.Minute),
		fill("timeout tunnel", &t.Tunnel, 2*time.Minute),
		fill("timeout origin idle", &t.OriginIdle, 4*time.Second),
		fill("timeout drain", &t.Drain, 25*time.Second),
	)
}

func fill[T int | time.Duration](name string, v *T, value T) error {
	switch {
	case *v < 0:
		return fmt.Errorf("%s is %v: want more than 0, or 0 for %v", name, *v, value)
	case *v == 0:
		*v = value
	}
	return nil
}

func parseOrigin(s string) (target, error) {
	u, err := url.Parse(s)
	if err != nil {
		return target{}, fmt.Errorf("origin %q: %w", s, err)
	}
	port := u.Port()
	switch {
	case u.Scheme == "http" && port == "":
		port = "80"
	case u.Scheme == "https" && port == "":
		port = "443"
	case u.Scheme != "http" && u.Scheme != "https":
		return target{}, fmt.Errorf("origin %q: want http://host[:port] or https://host[:port]", s)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return target{}, fmt.Errorf("origin %q: want a port from 1 to 65535", s)
	}
	if u.Hostname() == "" || u.User != nil || (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.Fragment != "" {
		return target{}, fmt.Errorf("origin %q: want a host and perhaps a port, and nothing else", s)
	}
	return target{
		addr: net.JoinHostPort(u.Hostname(), port),
		host: u.Host,
		name: u.Hostname(),
		tls:  u.Scheme == "https",
	}, nil
}
