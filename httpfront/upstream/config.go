package upstream

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// OriginsMax is how many origins a Group has at most.
const OriginsMax = 64

// Config says which origins there are and how they are treated. Origins is
// required; the zero value of everything else means its default. Negative
// durations and numbers are refused.
type Config struct {
	// Name is what logs and status call the group, such as the name of a room.
	Name string
	// Origins serve the same site; 1 to OriginsMax, each address once.
	Origins []Origin
	// TLS is used towards https origins; nil verifies the origin's name against
	// the roots of the system.
	TLS *tls.Config
	// Check, if set, is made of every origin again and again.
	Check *Check
	// Passive says when an origin is left alone because requests to it fail.
	Passive Passive
	// SlowStart is the time over which an origin that was out gets from a tenth
	// of its share to all of it. Shorter: caches that are still empty meet more.
	// Longer: the others carry more. Default 10 s.
	SlowStart time.Duration
	// AllowAddresses are dialled although they are link-local or known for
	// handing out credentials. None by default.
	AllowAddresses []netip.Prefix

	Limits   Limits
	Timeouts Timeouts
	// Budget bounds the connections of several groups together. None does by default.
	Budget *Budget

	// Logger is told when an origin goes out or comes in. The default is
	// slog.Default().
	Logger *slog.Logger
}

// Limits bound what a Group uses. Zero means the default.
type Limits struct {
	// Conns is how many requests are with one origin at once; more wait for
	// Timeouts.Wait. Default 1024.
	Conns int
	// Tunnels is how many connections of upgrades are open at once, at all
	// origins together and beyond Conns. Default 16384.
	Tunnels int
	// Requests is how many requests one connection serves. Default 10,000.
	Requests int
}

// Timeouts end what does not move. Zero means the default.
type Timeouts struct {
	// Wait is how long a request waits for a free place at an origin. Default 10 s.
	Wait time.Duration
	// Connect is for resolving an origin's name and connecting to it. Default 5 s.
	Connect time.Duration
	// Handshake is for TLS after that. Default 5 s.
	Handshake time.Duration
	// Send is the longest that an origin may take to accept the next piece of a
	// request, of its head as of its body. Default 30 s.
	Send time.Duration
	// Idle is how long an unused connection is kept. It should be below the
	// keep-alive time of the origins. Default 4 s, which is below the five
	// seconds that common application servers wait.
	Idle time.Duration
	// Life is for how long a connection is used again, up to a tenth longer or shorter so that not
	// all end together: one that is never idle would keep the address that its origin's name had, and
	// the place that a balancer gave it. Default 1 min.
	Life time.Duration
}

// Passive is about what requests tell of an origin. Zero means the default.
type Passive struct {
	// Failures is after how many requests in a row that could not be delivered,
	// got no answer in time or none at all an origin is ejected: left alone for
	// a while. An answer with any status code ends the row, but one from 500 on ends no ejection. Lower: one bad
	// minute ejects. Higher: more visitors meet a dead origin. Default 3.
	Failures int
	// Ejection is how long the first ejection is; each that follows soon is
	// twice as long as the one before. Default 10 s.
	Ejection time.Duration
	// EjectionMax bounds that. Default 2 min.
	EjectionMax time.Duration
}

// Check is a request that is made of an origin to see whether it is well. Path
// is required; the zero value of everything else means its default.
type Check struct {
	// Path is requested with GET; it may have a query.
	Path string
	// Host is the Host field of the request. The default is the origin's own.
	Host string
	// Interval is the time from one check to the next, up to a tenth longer or
	// shorter so that the nodes of a mesh do not all ask at once. Default 5 s.
	Interval time.Duration
	// Timeout is for the whole answer. Default 2 s.
	Timeout time.Duration
	// Healthy is after how many good answers in a row an origin that is out
	// comes in, be it out by checks or by requests. Default 2.
	Healthy int
	// Unhealthy is after how many bad answers in a row it goes out. Default 3.
	Unhealthy int
	// Status are the codes of a good answer. Default 200 to 399; redirects are
	// not followed.
	Status []StatusRange
}

// StatusRange is the status codes from First to Last.
type StatusRange struct{ First, Last int }

// Complete checks l and fills its defaults in.
func (l *Limits) Complete() error {
	return errors.Join(
		Fill("limit of connections", &l.Conns, 1024),
		Fill("limit of tunnels", &l.Tunnels, 16384),
		Fill("limit of requests of a connection", &l.Requests, 10_000),
	)
}

// complete checks c and fills its defaults in.
func (c *Config) complete() error {
	errs := []error{c.checkOrigins()}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Check != nil {
		check := *c.Check
		c.Check = &check
		errs = append(errs, check.complete())
	}
	errs = append(errs,
		Fill("slow start", &c.SlowStart, 10*time.Second),
		c.Limits.Complete(),
		Fill("timeout wait", &c.Timeouts.Wait, 10*time.Second),
		Fill("timeout connect", &c.Timeouts.Connect, 5*time.Second),
		Fill("timeout handshake", &c.Timeouts.Handshake, 5*time.Second),
		Fill("timeout send", &c.Timeouts.Send, 30*time.Second),
		Fill("timeout idle", &c.Timeouts.Idle, 4*time.Second),
		Fill("timeout life", &c.Timeouts.Life, time.Minute),
		Fill("failures", &c.Passive.Failures, 3),
		Fill("ejection", &c.Passive.Ejection, 10*time.Second),
		Fill("longest ejection", &c.Passive.EjectionMax, 2*time.Minute),
	)
	if c.Passive.Ejection > c.Passive.EjectionMax {
		errs = append(errs, fmt.Errorf("ejection is %v: want at most the longest ejection, %v", c.Passive.Ejection, c.Passive.EjectionMax))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("origins%s: %w", of(c.Name), err)
	}
	return nil
}

func of(name string) string {
	if name == "" {
		return ""
	}
	return " of " + name
}

func (c *Config) checkOrigins() error {
	if len(c.Origins) == 0 || len(c.Origins) > OriginsMax {
		return fmt.Errorf("%d are given: want 1 to %d", len(c.Origins), OriginsMax)
	}
	seen := map[string]bool{}
	for _, o := range c.Origins {
		switch {
		case o.addr == "":
			return errors.New("an origin is not one of ParseOrigin")
		case seen[o.addr]:
			return fmt.Errorf("%s stands there twice; give it a weight instead", o)
		}
		seen[o.addr] = true
		if err := o.CheckAddress(c.AllowAddresses); err != nil {
			return err
		}
	}
	return nil
}

func (c *Check) complete() error {
	errs := []error{
		Fill("interval of checks", &c.Interval, 5*time.Second),
		Fill("timeout of checks", &c.Timeout, 2*time.Second),
		Fill("healthy", &c.Healthy, 2),
		Fill("unhealthy", &c.Unhealthy, 3),
	}
	if !IsCheckPath(c.Path) {
		errs = append(errs, fmt.Errorf("path of checks %q: want one that starts with / and has no spaces, no fragment, and %% only before two hexadecimal digits", c.Path))
	}
	if c.Timeout > c.Interval {
		errs = append(errs, fmt.Errorf("timeout of checks is %v: want at most the interval, %v", c.Timeout, c.Interval))
	}
	if len(c.Status) == 0 {
		c.Status = []StatusRange{{200, 399}}
	}
	for _, s := range c.Status {
		if s.First < 200 || s.Last > 599 || s.First > s.Last {
			errs = append(errs, fmt.Errorf("status of checks %d-%d: want codes from 200 to 599", s.First, s.Last))
		}
	}
	return errors.Join(errs...)
}

// IsCheckPath reports whether a path, perhaps with a query, can be asked for as it is.
func IsCheckPath(path string) bool {
	_, err := url.ParseRequestURI(path)
	return err == nil && path[0] == '/' && !strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '#' })
}

// accepts reports whether an answer with that code is a good one.
func (c *Check) accepts(code int) bool {
	return slices.ContainsFunc(c.Status, func(s StatusRange) bool { return s.First <= code && code <= s.Last })
}

// Fill puts a value where v is 0. It returns an error, which has the name, where v is below 0.
func Fill[T int | time.Duration](name string, v *T, value T) error {
	switch {
	case *v < 0:
		return fmt.Errorf("%s is %v: want more than 0, or 0 for %v", name, *v, value)
	case *v == 0:
		*v = value
	}
	return nil
}
