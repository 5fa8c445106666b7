package httpfront

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node/room"
)

// site is where a request goes that nothing keeps from the origins.
type site struct {
	group *upstream.Group
	body  int64 // longest request body; 0: no limit
}

// admits refuses a request whose body is longer than the site takes, as far as
// its head tells.
func (s *site) admits(r *request) refusal {
	if s.body > 0 && r.length > s.body {
		return bodyTooLong
	}
	return refusal{}
}

var bodyTooLong = refusal{http.StatusRequestEntityTooLarge, "the body is too long"}

// sites finds the site of a request. It is immutable. It stands apart from rooms
// because a request has a site also where it has no room, or a suspended one.
type sites struct {
	rest   *site                 // of requests that no route takes
	hosts  map[string][]sitePath // longest path first
	any    []sitePath            // of every host
	groups []*upstream.Group     // that of rest first, each once
}

type sitePath struct {
	path string // without a slash at the end
	site *site
}

func newSites(cfg *Config) (*sites, error) {
	if len(cfg.Origins.Servers) == 0 && len(cfg.Routes) == 0 {
		return &sites{}, nil // nothing is served, other proxies are answered
	}
	rest, err := newGroup(cfg, "", cfg.Origins)
	errs := []error{err}
	t := &sites{
		rest:   &site{group: rest, body: cfg.Limits.Body},
		hosts:  map[string][]sitePath{},
		groups: []*upstream.Group{rest},
	}
	for _, r := range cfg.Routes {
		s := &site{group: rest, body: cmp.Or(r.Body, cfg.Limits.Body)}
		if len(r.Origins.Servers) > 0 {
			if s.group, err = newGroup(cfg, r.Name, r.Origins); err != nil {
				errs = append(errs, err)
			}
			t.groups = append(t.groups, s.group)
		} else if r.Origins.Check != nil {
			errs = append(errs, fmt.Errorf("route %s: a check without origins to check", r.Name))
		}
		t.add(room.Route{Host: r.Host, Path: r.Path}, s)
		for _, also := range r.Also {
			t.add(also, s)
		}
	}
	longest := func(a, b sitePath) int { return cmp.Compare(len(b.path), len(a.path)) }
	slices.SortStableFunc(t.any, longest)
	for _, paths := range t.hosts {
		slices.SortStableFunc(paths, longest)
	}
	return t, errors.Join(errs...)
}

func (t *sites) add(r room.Route, s *site) {
	e := sitePath{r.Prefix(), s}
	if r.Host == "" {
		t.any = append(t.any, e)
	} else {
		t.hosts[r.Host] = append(t.hosts[r.Host], e)
	}
}

func newGroup(cfg *Config, name string, o Origins) (*upstream.Group, error) {
	return upstream.New(upstream.Config{
		Name:           name,
		Origins:        o.Servers,
		Check:          o.Check,
		TLS:            cfg.OriginTLS,
		Passive:        cfg.Passive,
		SlowStart:      cfg.SlowStart,
		AllowAddresses: cfg.AllowAddresses,
		Limits:         upstream.Limits{Conns: cfg.Limits.OriginConns, Tunnels: cfg.Limits.Upgrades},
		Timeouts: upstream.Timeouts{
			Wait:      cfg.Timeouts.OriginWait,
			Connect:   cfg.Timeouts.Connect,
			Handshake: cfg.Timeouts.Handshake,
			Send:      cfg.Timeouts.Send,
			Idle:      cfg.Timeouts.OriginIdle,
		},
		Logger: cfg.Logger,
	})
}

// find returns the site with the longest path that holds path, those of the
// exact host before those of every host.
func (t *sites) find(host, path string) *site {
	for _, e := range t.hosts[host] {
		if e.holds(path) {
			return e.site
		}
	}
	for _, e := range t.any {
		if e.holds(path) {
			return e.site
		}
	}
	return t.rest
}

// holds reports whether path is e's or lies below it: "/a" holds "/a" and
// "/a/b", not "/ab".
func (e sitePath) holds(path string) bool {
	rest, ok := strings.CutPrefix(path, e.path)
	return ok && (rest == "" || rest[0] == '/')
}
