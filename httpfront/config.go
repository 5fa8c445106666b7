package httpfront

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/ropeline/ropeline/httpfront/gate/expr"
	"github.com/ropeline/ropeline/httpfront/gate/pass"
	"github.com/ropeline/ropeline/httpfront/gate/proof"
	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/httpfront/observe/tracing"
	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// Config says how a Front serves. Rooms and Keys are required, and for Run Origins and
// Listener; the zero value of everything else means its default.
// Negative durations and numbers are refused where nothing else is said.
type Config struct {
	Connections
	Upstreams
	RuleFacts
	Observers

	// OriginTLS is used towards https origins; nil verifies the origin's name
	// against the roots of the system.
	OriginTLS *tls.Config
	// Rooms routes requests to rooms.
	Rooms Rooms
	// Hosts are the only ones that are served, each as by room.NormalHost: requests for
	// others, and those without a host, get 421. None means all.
	Hosts []string
	// LimitBound says by how much a rate limit can be exceeded, for Explain; nil: nobody knows.
	LimitBound func(*limit.Rule) limit.Bound
	// Keys seals and opens passes.
	Keys *pass.Keyring
	// Methods are the only ones that are served; none means all but CONNECT and
	// TRACE. Each is in upper case.
	Methods []string
	// TrustedProxies are the peers whose forwarding fields are believed; see
	// Edge.ClientIPHeader.
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

	sleep func(time.Duration) // tests see what it is asked for
}

// Connections say how clients connect.
type Connections struct {
	// Listener is served on; Run closes it.
	Listener net.Listener
	// TLS, if set, makes the front terminate TLS itself, from version 1.2 on. HTTP/1.1
	// is the only protocol offered, and acme-tls/1 if NextProtos has it.
	TLS *tls.Config
	// Redirect is for visitors who come without TLS; see RunRedirect.
	Redirect Redirect
	// Edge says more about how client connections are taken.
	Edge Edge
}

// Upstreams say where requests go.
type Upstreams struct {
	// Origins are the web site behind the front. Without any the front only answers
	// questions of other proxies (Judge), and Run fails.
	Origins Origins
	// Routes are parts of the site that have origins or limits of their own.
	Routes []Route
	// Passive, SlowStart and AllowAddresses are about all origins; see
	// upstream.Config.
	Passive        upstream.Passive
	SlowStart      time.Duration
	AllowAddresses []netip.Prefix
	// Retries is how many more origins a request is sent to if the one before
	// cannot have acted on it; see mayRepeat. Negative means none. Default 1.
	Retries int
}

// RuleFacts are what rules of rooms can ask about besides the request.
type RuleFacts struct {
	// Lists are those that rules of rooms may name.
	Lists expr.Lists
	// Crawlers knows the crawlers of search engines, which pass rooms that say so; nil: it
	// knows none.
	Crawlers interface {
		Is(userAgent []byte, addr netip.Addr) bool
	}
	// CountryHeader is the header field in which TrustedProxies tell the visitor's
	// country, two letters (ISO 3166-1), for rules to ask. Empty: nobody tells. It is
	// about requests that come through Run.
	CountryHeader string
	// VerdictCountryHeader is the same for questions that TrustedProxies put to Judge.
	// Each of them has to replace, or to take out, what visitors send in it: who asks
	// about a request hands on all of its fields, so visitors would choose.
	VerdictCountryHeader string
}

// Observers are told of requests.
type Observers struct {
	// Requests counts requests as they end, those that were asked about (Judge) among them;
	// nil: nobody does.
	Requests RequestCounter
	// AccessLog gets a line of each request that comes through Run; nil: there is none.
	AccessLog AccessLog
	// Tracer traces some requests; nil: it traces none. With one, the trace context of
	// TrustedProxies counts, and that of others is not passed on.
	Tracer *tracing.Tracer
}

// Origins are the servers of one site.
type Origins struct {
	Servers []upstream.Origin
	// Check, if set, is made of each of them again and again.
	Check *upstream.Check
}

// Route is a part of the site, perhaps with origins or limits of its own. Which one
// takes a request is decided as for rooms: the exact host before every host, and then
// the longest path. Every room has to be one, also those that say nothing of their own,
// or a request of one room is served as another's.
type Route struct {
	// Name is what logs and status call it.
	Name string
	// Host is in lower case and without a port; "" is every host.
	Host string
	// Path holds itself and what is below it; "" is "/".
	Path string
	// Also is where the same part of the site stands as well.
	Also []room.Route
	// Origins are those of Config if there are no servers.
	Origins Origins
	// Body is the longest request body in bytes; 0 means Limits.Body.
	Body int64
}

// Limits bound what clients may make the front hold. Zero means the default.
type Limits struct {
	// Conns is how many client connections are open at once, upgraded ones among
	// them; more are answered with 503 and closed.
	// Each costs up to 80 KiB. Default 32768.
	Conns int
	// ConnsPerAddress is how many of them one address has, which is a /64 of IPv6;
	// more are answered with 429 and closed. A browser opens up to six, so the default
	// is for the 1,000 visitors whom one address may bring in a minute
	// (room.NewVisitors). Trusted proxies and loopback have no such
	// limit. Default 6000, or a quarter of Conns where that is less: no address has all.
	ConnsPerAddress int
	// Redirects is how many connections RunRedirect has at once. Default Conns.
	Redirects int
	// Handshakes is how many connections are in their TLS handshake, or have still
	// to send their PROXY header. They are not among Conns. If there are more, the
	// oldest are closed. Default 4096.
	Handshakes int
	// Requests is how many one client connection may bring before it is closed, so
	// that clients spread anew over nodes now and then. Default 1000.
	Requests int
	// Upstream is about the origins of one route. More requests than have a place are
	// answered with 503 after Timeouts.Upstream.Wait, more upgrades (WebSocket) at once.
	Upstream upstream.Limits
	// Origins is how many connections there are to the origins of all routes together;
	// see upstream.Budget. Zero means that Upstream alone bounds them.
	Origins int
	// Body is the longest request body in bytes; a longer one is answered with
	// 413. Bodies are streamed, so this protects the origin, not the front.
	// Zero means no limit.
	Body int64
	// BodyRate is how many bytes per second of a request body have to come, on
	// average over twice Timeouts.Body; a slower one is answered with 408. Only the
	// time counts in which we wait for the client, and only until the origin has
	// begun to answer. Negative means no limit.
	// Default 240.
	BodyRate int
}

// Timeouts end what does not move. Zero means the default.
type Timeouts struct {
	// Head is how long a client may take for the head of a request, and before the first one
	// for PROXY header and TLS handshake together. Default 10 s.
	Head time.Duration
	// Idle is how long a client connection without a request is kept. It is the
	// longest part of what idle clients cost. Default 30 s.
	Idle time.Duration
	// Body is the longest pause inside a request body. Default 30 s.
	Body time.Duration
	// Write is the longest that a client may take to accept the next piece of
	// an answer. Default 30 s.
	Write time.Duration
	// Upstream is for all that comes before the answer of an origin.
	Upstream upstream.Timeouts
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
	// Drain is how long Run lets requests end after its context has ended.
	// Default 25 s.
	Drain time.Duration
}

// complete checks c and fills its defaults in.
func (c *Config) complete() error {
	var errs []error
	if len(c.Origins.Servers) > 0 && c.Listener == nil {
		errs = append(errs, errors.New("no listener given"))
	}
	if c.Rooms == nil {
		errs = append(errs, errors.New("no rooms given"))
	}
	if c.Keys == nil {
		errs = append(errs, errors.New("no keys given"))
	}
	c.ProofHeader = cmp.Or(c.ProofHeader, proof.Header)
	if !isFieldName(c.ProofHeader) {
		errs = append(errs, fmt.Errorf("proof header %q: want the name of a header field that is neither about the connection nor Host or Cookie", c.ProofHeader))
	}
	if c.Ready == nil {
		c.Ready = func() error { return nil }
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.sleep == nil {
		c.sleep = time.Sleep
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	c.Retries = cmp.Or(c.Retries, 1)
	for _, m := range c.Methods {
		if !http1.IsMethod(m) {
			errs = append(errs, fmt.Errorf("method %q: %s", m, http1.MethodRule))
		}
	}
	for _, h := range c.Hosts {
		if normal, ok := room.NormalHost(h); !ok || normal != h {
			errs = append(errs, fmt.Errorf("host %q: want a host name in lower case, without a port or a dot at its end", h))
		}
	}
	for _, r := range c.Routes {
		if r.Body < 0 {
			errs = append(errs, fmt.Errorf("route %s: body is %d: want 0 or more bytes", r.Name, r.Body))
		}
	}
	if c.Limits.Body < 0 {
		errs = append(errs, fmt.Errorf("limit body is %d: want 0 or more bytes", c.Limits.Body))
	}
	errs = append(errs, c.Limits.Complete(), c.Timeouts.complete(), c.Edge.complete())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("http front: %w", err)
	}
	return nil
}

// Complete checks l, but for Body, and fills its defaults in.
func (l *Limits) Complete() error {
	l.BodyRate = cmp.Or(l.BodyRate, 240)
	return errors.Join(
		upstream.Fill("limit conns", &l.Conns, 32768),
		upstream.Fill("limit redirects", &l.Redirects, l.Conns),
		upstream.Fill("limit origins", &l.Origins, 0),
		l.Upstream.Complete(),
		upstream.Fill("limit conns per address", &l.ConnsPerAddress, min(6000, max(1, l.Conns/4))),
		upstream.Fill("limit handshakes", &l.Handshakes, 4096),
		upstream.Fill("limit requests", &l.Requests, 1000),
	)
}

func (t *Timeouts) complete() error {
	return errors.Join(
		upstream.Fill("timeout head", &t.Head, 10*time.Second),
		upstream.Fill("timeout idle", &t.Idle, 30*time.Second),
		upstream.Fill("timeout body", &t.Body, 30*time.Second),
		upstream.Fill("timeout write", &t.Write, 30*time.Second),
		upstream.Fill("timeout origin", &t.Origin, time.Minute),
		upstream.Fill("timeout stream", &t.Stream, 5*time.Minute),
		upstream.Fill("timeout tunnel", &t.Tunnel, 2*time.Minute),
		upstream.Fill("timeout drain", &t.Drain, 25*time.Second),
	)
}

// allows reports whether the operator lets requests with that method through.
func (c *Config) allows(method string) bool {
	return len(c.Methods) == 0 || slices.Contains(c.Methods, method)
}
