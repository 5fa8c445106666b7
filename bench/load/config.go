package load

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/accesslog"
)

// Values of [Config.Accept].
const (
	AcceptJSON = "application/json"
	AcceptHTML = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
)

// Config says who visits what, and for how long. Only Targets is required; the
// zero value of every other field means the default that its comment gives.
type Config struct {
	// Targets are the addresses of the nodes in front of the site, as http or
	// https URLs. Visitors are dealt out to them in turn. The path of the
	// first one is the page that visitors ask for, unless Crowd.Paths or Log
	// says otherwise.
	Targets []string
	// Host is sent as the Host header to every target, because a visitor's
	// cookies are bound to the name of the site and not to one node. Default:
	// host and port of the first target.
	Host string
	// Accept is the Accept header. Default: AcceptJSON, since only the JSON
	// answer tells a visitor's place, without which Report.PlacesLost is 0.
	Accept string
	// TLS is used for https targets. Default: the system's roots.
	TLS *tls.Config

	// Crowd describes made-up visitors. When Log is given, of all this only
	// Crowd.Visitors is used: how many clients of the log come. 0: all.
	Crowd Crowd
	// Log is a recorded log to replay. Default: none.
	Log *Log
	// Speed is how many times faster than recorded the log is replayed.
	// Default: 1.
	Speed float64

	// Duration ends the run, whoever is still there. Default: the run ends
	// when the last visitor has left.
	Duration time.Duration
	// SessionDuration is how long the site lets a visitor be idle before the
	// place is given to somebody else. It does not change what is sent, only
	// what is counted: too long, and PeakActive and SessionsLost come out too
	// high. Default: 5 minutes.
	SessionDuration time.Duration
	// RequestTimeout bounds one try: how long it waits for a connection, and
	// then how long it takes from that to the last byte of the answer.
	// Default: 10 s.
	RequestTimeout time.Duration
	// GiveUp is how long a visitor goes on trying to get any answer before
	// leaving for good. Default: 30 s.
	GiveUp time.Duration
	// Poll is how long a waiting visitor pauses when the answer does not say.
	// Default: 20 s.
	Poll time.Duration
	// Conns bounds the open connections to each target. A visitor who finds
	// none free waits for one, and the wait counts as latency. Default: 1024.
	Conns int
	// Seed makes arrival times, stays and pages the same again. Default: a
	// random one; Report.Seed tells which.
	Seed uint64
	// Dial opens connections. Default: net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Crowd describes visitors who are made up. Their arrivals are a Poisson
// process. The zero value is one visitor who asks once.
type Crowd struct {
	// Visitors is how many come in all. Default: as many as Rate brings until
	// the run ends; without a rate, Burst, and at least 1.
	Visitors int
	// Burst is how many of them come at the very start: evenly within Spread,
	// or all at once if that is 0.
	Burst  int
	Spread time.Duration
	// Rate is the mean number of arrivals per second after the burst. 0: all
	// visitors belong to the burst.
	Rate float64
	// Ramp is the time in which the rate climbs evenly from 0 to Rate.
	Ramp time.Duration
	// Stay is the mean time that a visitor spends on the site once let in,
	// drawn evenly between half and one and a half of it. 0: one page.
	Stay time.Duration
	// Think is the mean pause between two pages, drawn exponentially.
	// Default: 2 s.
	Think time.Duration
	// Patience is the mean time after which a waiting visitor leaves, drawn
	// like Stay. 0: never.
	Patience time.Duration
	// Paths are the pages to choose from. Default: the path of the first
	// target.
	Paths []string
}

// ErrConfig is what errors about an impossible Config wrap.
var ErrConfig = errors.New("load: bad config")

// withDefaults returns a checked copy of c with every default filled in, and
// its targets.
func (c Config) withDefaults() (Config, []endpoint, error) {
	if len(c.Targets) == 0 {
		return c, nil, fmt.Errorf("%w: no target", ErrConfig)
	}
	targets := make([]endpoint, 0, len(c.Targets))
	for _, raw := range c.Targets {
		t, err := parseTarget(raw)
		if err != nil {
			return c, nil, err
		}
		targets = append(targets, t)
	}
	if err := c.check(); err != nil {
		return c, nil, err
	}
	c.Host, c.Accept = cmp.Or(c.Host, targets[0].host), cmp.Or(c.Accept, AcceptJSON)
	c.Speed, c.Conns = cmp.Or(c.Speed, 1), cmp.Or(c.Conns, 1024)
	c.SessionDuration, c.Crowd.Think = cmp.Or(c.SessionDuration, 5*time.Minute), cmp.Or(c.Crowd.Think, 2*time.Second)
	c.RequestTimeout, c.GiveUp, c.Poll = cmp.Or(c.RequestTimeout, 10*time.Second), cmp.Or(c.GiveUp, 30*time.Second), cmp.Or(c.Poll, 20*time.Second)
	for c.Seed == 0 {
		c.Seed = uint64(rand.Uint32()) // short enough to be typed, and for any JSON reader
	}
	if len(c.Crowd.Paths) == 0 {
		c.Crowd.Paths = []string{targets[0].path}
	}
	if c.Log == nil && c.Crowd.Rate == 0 {
		c.Crowd.Visitors = max(c.Crowd.Visitors, c.Crowd.Burst, 1)
		c.Crowd.Burst = c.Crowd.Visitors
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	return c, targets, nil
}

// check reports the first text that cannot be sent. Numbers have their bounds where people give them.
func (c Config) check() error {
	for _, h := range []struct{ name, value string }{{"host", c.Host}, {"accept", c.Accept}} {
		if strings.ContainsFunc(h.value, isControl) {
			return fmt.Errorf("%w: %s holds a control character", ErrConfig, h.name)
		}
	}
	for _, p := range c.Crowd.Paths {
		if !strings.HasPrefix(p, "/") || accesslog.CleanPath(p) != p {
			return fmt.Errorf("%w: path %q must start with / and hold no blanks", ErrConfig, p)
		}
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// endpoint is where one target listens.
type endpoint struct {
	address string // host:port to dial
	host    string // host, and port if it is not the scheme's own
	path    string // path and query, at least "/"
	tls     bool
}

// parseTarget reads the URL of a target.
func parseTarget(raw string) (endpoint, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return endpoint{}, fmt.Errorf("%w: target %q: %w", ErrConfig, raw, err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return endpoint{}, fmt.Errorf("%w: target %q must look like http://127.0.0.1:8080/", ErrConfig, raw)
	}
	t := endpoint{host: u.Host, path: accesslog.CleanPath(u.RequestURI()), tls: u.Scheme == "https"}
	port := cmp.Or(u.Port(), map[bool]string{false: "80", true: "443"}[t.tls])
	t.address = net.JoinHostPort(u.Hostname(), port)
	return t, nil
}
