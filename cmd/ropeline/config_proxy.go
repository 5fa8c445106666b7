package main

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/settings"
)

// proxyConfig is what the operator says about the way of requests to the site
// and back, queues aside.
type proxyConfig struct {
	Origins originsConfig
	MaxBody int64 // bytes; 0: no limit
	Methods []string

	OriginTLS      originTLSConfig
	Retries        int
	Passive        upstream.Passive
	SlowStart      time.Duration
	AllowAddresses []netip.Prefix

	Limits   httpfront.Limits
	Timeouts httpfront.Timeouts

	DrainDelay time.Duration // from the signal to the end of listening

	Routes []routeConfig // one for each room of the list
}

// originsConfig is the servers of a site, and how they are checked.
type originsConfig struct {
	Servers []upstream.Origin
	Check   *upstream.Check // nil: not at all
	field   string          // where the servers stand in the file
}

// routeConfig is what a room says of the way to the site.
type routeConfig struct {
	Room    string
	Host    string
	Path    string
	Also    []room.Route
	Origins originsConfig // without servers: those of all
	MaxBody int64         // bytes; 0: that of all
}

// maxBodyFlag binds what a room may say itself.
func maxBodyFlag(fs *pflag.FlagSet, dst *int64) { fs.Var(size.At(dst), "max-body", maxBodyMeaning) }

// checkFields are the settings of one block of checks.
var checkFields = settings.Table[upstream.Check]{
	settings.New("path", "what is requested", requestPath, "", func(c *upstream.Check) *string { return &c.Path }).Must().
		With("With GET, on a new connection each time; redirects are not followed"),
	settings.New("host", "the Host field of the request", hostKind, "", func(c *upstream.Check) *string { return &c.Host }).Unless("the origin's"),
	settings.New("interval", "time from one check to the next", settings.Duration(100*time.Millisecond, time.Hour, 1), 5*time.Second, func(c *upstream.Check) *time.Duration { return &c.Interval }).
		With("Up to a tenth longer or shorter. Shorter: a dead origin is noticed sooner; every node asks every origin"),
	settings.New("timeout", "time for the whole answer, at most interval", settings.Duration(10*time.Millisecond, time.Hour, 1), 2*time.Second, func(c *upstream.Check) *time.Duration { return &c.Timeout }),
	settings.New("healthy-threshold", "good answers in a row that bring an origin in", settings.Int(1, 100), 2, func(c *upstream.Check) *int { return &c.Healthy }),
	settings.New("unhealthy-threshold", "bad answers in a row that take it out", settings.Int(1, 100), 3, func(c *upstream.Check) *int { return &c.Unhealthy }),
	settings.List("expected-status", "status codes of a good answer", statuses, func(c *upstream.Check) *[]upstream.StatusRange { return &c.Status }),
}

func defaultCheck() upstream.Check {
	c := upstream.Check{Status: []upstream.StatusRange{{First: 200, Last: 399}}}
	checkFields.Start(&c)
	return c
}

// checkProxy refuses what fits together in no way.
func (c *config) checkProxy() error {
	p := &c.Proxy
	if len(p.Origins.Servers) == 0 && c.VerdictListen == "" {
		return errors.New("--origin is missing: the address of the site to protect, such as --origin http://127.0.0.1:3000")
	}
	errs := []error{c.checkOriginTLS(), c.checkOrigins(p.Origins)}
	for _, r := range p.Routes {
		errs = append(errs, c.checkOrigins(r.Origins))
	}
	if p.Passive.Ejection > p.Passive.EjectionMax {
		errs = append(errs, c.file.at("eject-time", fmt.Errorf("--eject-time is %s: at most --eject-time-max, %s", settings.Span(p.Passive.Ejection), settings.Span(p.Passive.EjectionMax))))
	}
	return errors.Join(errs...)
}

func (c *config) checkOrigins(o originsConfig) error {
	seen := map[string]bool{}
	for i, s := range o.Servers {
		var err error
		if seen[s.String()] {
			err = fmt.Errorf("%s stands there twice; give it a weight instead", s)
		} else if err = s.CheckAddress(c.Proxy.AllowAddresses); err != nil {
			err = fmt.Errorf("%w with --allow-origin-addresses", err)
		}
		if seen[s.String()] = true; err == nil {
			continue
		}
		field := o.field
		if _, ok := c.file.lines[fmt.Sprintf("%s[%d]", field, i)]; ok {
			field = fmt.Sprintf("%s[%d]", field, i)
		}
		return c.file.at(field, err)
	}
	if len(o.Servers) > upstream.OriginsMax {
		return c.file.at(o.field, fmt.Errorf("%d origins are given: at most %d are allowed", len(o.Servers), upstream.OriginsMax))
	}
	return nil
}

// front returns what of it is the front's.
func (c *proxyConfig) front(to httpfront.Config) httpfront.Config {
	to.Origins = httpfront.Origins{Servers: c.Origins.Servers, Check: c.Origins.Check}
	to.OriginTLS = c.OriginTLS.made
	to.Retries = c.Retries
	if c.Retries == 0 {
		to.Retries = -1
	}
	to.Methods = c.Methods
	to.Passive, to.SlowStart, to.AllowAddresses = c.Passive, c.SlowStart, c.AllowAddresses
	to.Limits, to.Timeouts = c.Limits, c.Timeouts
	to.Limits.Body = c.MaxBody
	if c.Limits.BodyRate == 0 {
		to.Limits.BodyRate = -1
	}
	for _, r := range c.Routes {
		to.Routes = append(to.Routes, httpfront.Route{
			Name: r.Room, Host: r.Host, Path: r.Path, Also: r.Also, Body: r.MaxBody,
			Origins: httpfront.Origins{Servers: r.Origins.Servers, Check: r.Origins.Check},
		})
	}
	return to
}

// text names the origins of all, for the log.
func (o originsConfig) text() string {
	var all []string
	for _, s := range o.Servers {
		all = append(all, s.Text())
	}
	return strings.Join(all, ", ")
}
