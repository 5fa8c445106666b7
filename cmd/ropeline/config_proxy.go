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

func defaultProxy() proxyConfig {
	return proxyConfig{
		Retries:   1,
		Passive:   upstream.Passive{Failures: 3, Ejection: 10 * time.Second, EjectionMax: 2 * time.Minute},
		SlowStart: 10 * time.Second,
		Limits: httpfront.Limits{
			Conns: 32768, ConnsPerAddress: 200, Handshakes: 4096, Requests: 1000, BodyRate: 240,
			OriginConns: 1024, Upgrades: 16384,
		},
		Timeouts: httpfront.Timeouts{
			Head: 10 * time.Second, Idle: 30 * time.Second, Body: 30 * time.Second, Write: 30 * time.Second,
			Connect: 5 * time.Second, Handshake: 5 * time.Second, Send: 30 * time.Second, OriginWait: 10 * time.Second,
			Origin: time.Minute, Stream: 5 * time.Minute, Tunnel: 2 * time.Minute, OriginIdle: 4 * time.Second,
			Drain: 25 * time.Second,
		},
	}
}

// bindOrigin binds the origins, but for the form of a list with weights and
// checks, which only a file can hold.
func (c *proxyConfig) bindOrigin(fs *pflag.FlagSet) {
	fs.Var(origins.At(&c.Origins.Servers), "origin", "the site to protect, such as http://127.0.0.1:3000; several servers of it, each perhaps with \" weight=N\"")
}

// bind binds the rest.
func (c *proxyConfig) bind(fs *pflag.FlagSet) {
	c.OriginTLS.bind(fs)
	maxBodyFlag(fs, &c.MaxBody)
	fs.Var(methods.At(&c.Methods), "methods", "the only methods that are let through (default: all but CONNECT and TRACE)")
	fs.Var(settings.Int(0, upstream.OriginsMax).At(&c.Retries), "retries", "how many more origins a request is sent to if the one before cannot have acted on it")
	fs.Var(settings.Int(1, 1000).At(&c.Passive.Failures), "eject-after", "how many requests in a row an origin fails to answer before it is left alone")
	ejection := func(dst *time.Duration) settings.Value { return settings.Duration(time.Second, time.Hour, 1).At(dst) }
	fs.Var(ejection(&c.Passive.Ejection), "eject-time", "for how long at first; each time that follows soon is twice as long")
	fs.Var(ejection(&c.Passive.EjectionMax), "eject-time-max", "for how long at most")
	fs.Var(settings.Duration(time.Millisecond, time.Hour, 1).At(&c.SlowStart), "slow-start", "time over which an origin that was out gets its whole share again")
	fs.Var(prefixes.At(&c.AllowAddresses), "allow-origin-addresses", "addresses of origins that are allowed although they are link-local or known for handing out credentials")
	c.bindTimeouts(fs)
	most := func(dst *int, name, usage string) { fs.Var(settings.Int(1, 1<<20).At(dst), name, usage) }
	most(&c.Limits.Conns, "max-connections", "connections of visitors at one time")
	most(&c.Limits.ConnsPerAddress, "max-connections-per-address", "of them, those of one address (IPv6: of one /64)")
	most(&c.Limits.Handshakes, "max-handshakes", "connections in their TLS handshake, or before their PROXY header, at one time")
	most(&c.Limits.Requests, "max-requests-per-connection", "requests that one connection may bring")
	fs.Var(settings.Int(0, 1<<20).At(&c.Limits.BodyRate), "min-body-rate", "bytes per second of a request body that have to come on average; 0: no minimum")
	most(&c.Limits.OriginConns, "max-origin-requests", "requests with one origin at one time")
	most(&c.Limits.Upgrades, "max-upgrades", "upgraded connections (WebSocket) at one time")
}

// bindTimeouts binds one flag for each phase of a request.
func (c *proxyConfig) bindTimeouts(fs *pflag.FlagSet) {
	t := &c.Timeouts
	phase := func(dst *time.Duration, name, usage string) {
		fs.Var(settings.Duration(100*time.Millisecond, 24*time.Hour, 1).At(dst), name, usage)
	}
	phase(&t.Head, "head-timeout", "how long a visitor may take for the head of a request")
	phase(&t.Body, "body-timeout", "longest pause inside a request body")
	phase(&t.Write, "write-timeout", "longest that a visitor may take to accept the next piece of an answer")
	phase(&t.Idle, "idle-timeout", "how long a visitor's connection without a request is kept")
	phase(&t.OriginWait, "origin-wait-timeout", "how long a request waits for a free place at an origin")
	phase(&t.Connect, "connect-timeout", "for connecting to an origin")
	phase(&t.Handshake, "tls-handshake-timeout", "for TLS with an origin")
	phase(&t.Send, "send-timeout", "longest that an origin may take to accept the next piece of a request")
	phase(&t.Origin, "response-timeout", "how long an origin may take from the end of a request to the head of its response")
	phase(&t.Stream, "stream-timeout", "longest pause inside a response body")
	phase(&t.Tunnel, "tunnel-timeout", "longest silence, both ways, of an upgraded connection")
	phase(&t.OriginIdle, "origin-idle-timeout", "how long an unused connection to an origin is kept")
	fs.Var(settings.Duration(0, time.Hour, 1).At(&c.DrainDelay), "drain-delay", "how long a node that is being stopped still takes visitors, while /readyz says 503; 0s: not at all")
	phase(&t.Drain, "drain-timeout", "how long requests under way may go on when the node is stopped")
}

func maxBodyFlag(fs *pflag.FlagSet, dst *int64) {
	fs.Var(size.At(dst), "max-body", "longest body of a request, such as 10MiB; 0: no limit")
}

// checkFlags binds one block of checks.
func checkFlags(fs *pflag.FlagSet, c *upstream.Check) {
	fs.Var(requestPath.At(&c.Path), "path", "what is requested")
	fs.Var(hostKind.At(&c.Host), "host", "the Host field of the request")
	fs.Var(settings.Duration(100*time.Millisecond, time.Hour, 1).At(&c.Interval), "interval", "time from one check to the next")
	fs.Var(settings.Duration(10*time.Millisecond, time.Hour, 1).At(&c.Timeout), "timeout", "for the whole answer")
	fs.Var(settings.Int(1, 100).At(&c.Healthy), "healthy-threshold", "good answers in a row that bring an origin in")
	fs.Var(settings.Int(1, 100).At(&c.Unhealthy), "unhealthy-threshold", "bad answers in a row that take it out")
	fs.Var(statuses.At(&c.Status), "expected-status", "status codes of a good answer")
}

func defaultCheck() upstream.Check {
	return upstream.Check{
		Interval: 5 * time.Second, Timeout: 2 * time.Second, Healthy: 2, Unhealthy: 3,
		Status: []upstream.StatusRange{{First: 200, Last: 399}},
	}
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
