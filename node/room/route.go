package room

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"iter"
	"strings"
)

// MaxRoutes is how many additional routes a room may have.
const MaxRoutes = 100

// Route is where requests meet a room: a host, and a path with all that is below
// it.
type Route struct {
	Host string // exact, as by NormalHost; "" matches every host
	Path string // case-sensitive prefix, as by RoutePath; "" means "/"
}

// String returns host and path in one.
func (r Route) String() string { return r.Host + r.Prefix() + "/" }

// Prefix returns the path without a slash at its end: "/a" and "/a/" hold the same
// requests. "/" is "".
func (r Route) Prefix() string { return strings.TrimSuffix(r.Path, "/") }

// same reports whether the same requests are on both.
func (r Route) same(o Route) bool { return r.Host == o.Host && r.Prefix() == o.Prefix() }

// Routes yields where requests meet the room, Host and Path first.
func (s *Settings) Routes() iter.Seq[Route] {
	return func(yield func(Route) bool) {
		if !yield(Route{s.Host, s.Path}) {
			return
		}
		for _, r := range s.AdditionalRoutes {
			if !yield(r) {
				return
			}
		}
	}
}

// Shared returns a route that both a and b have, if there is one.
func Shared(a, b *Settings) (Route, bool) {
	for r := range a.Routes() {
		for o := range b.Routes() {
			if r.same(o) {
				return r, true
			}
		}
	}
	return Route{}, false
}

// AppendCookie appends what tells the name of the room's cookie from those of other rooms: "_"
// and its suffix. Without a suffix it is nothing for the room at "/", and for one below a path
// the first digits of its id, which stay when its path is changed.
func (s *Settings) AppendCookie(dst []byte) []byte {
	switch {
	case s.CookieSuffix != "":
		return append(append(dst, '_'), s.CookieSuffix...)
	case Route{Path: s.Path}.Prefix() != "":
		return hex.AppendEncode(append(dst, '_'), s.ID[:4])
	}
	return dst
}

// takes reports whether the room has a route on a host that holds all that is below a path. A room
// on every host gets no request from there.
func (s *Settings) takes(host string, path Route) bool {
	for r := range s.Routes() {
		if r.Host == host && strings.HasPrefix(path.Prefix()+"/", r.Prefix()+"/") {
			return true
		}
	}
	return false
}

// Apart returns an error if requests or browsers could not tell two rooms apart. A
// cookie is sent to the whole host, so two rooms that share a host and the name of
// the cookie would take turns in overwriting each other's pass, and with it the
// visitor's place.
func Apart(a, b *Settings) error {
	if !mayMeet(a, b) {
		return nil // nearly always, where there are a thousand
	}
	if r, ok := Shared(a, b); ok {
		return fmt.Errorf("%q and %q stand on the same host %q and path %q; give one of them another", a.Name, b.Name, r.Host, r.Path)
	}
	var as, bs [80]byte
	if !bytes.Equal(a.AppendCookie(as[:0]), b.AppendCookie(bs[:0])) {
		return nil
	}
	for r := range a.Routes() {
		for o := range b.Routes() {
			if r.Host == o.Host || r.Host == "" && !b.takes(o.Host, r) || o.Host == "" && !a.takes(r.Host, o) {
				return fmt.Errorf("%q and %q may meet on one host with the same cookie; give one of them a cookie-suffix of its own, such as %q", a.Name, b.Name, b.Name)
			}
		}
	}
	return nil
}

// mayMeet reports whether both rooms may stand on one host.
func mayMeet(a, b *Settings) bool {
	for r := range a.Routes() {
		for o := range b.Routes() {
			if r.Host == o.Host || r.Host == "" || o.Host == "" {
				return true
			}
		}
	}
	return false
}

func (c *checks) routes(s *Settings) {
	if s.CookieSuffix == "" && len(s.AdditionalRoutes) > 0 {
		c.add("additional-routes", s.AdditionalRoutes[0].String(), "a cookie-suffix beside it: the room's cookie is set where other rooms may be")
	}
	if n := len(s.AdditionalRoutes); n > MaxRoutes {
		c.add("additional-routes", fmt.Sprint(n), fmt.Sprintf("at most %d routes", MaxRoutes))
	}
	for i, r := range s.AdditionalRoutes {
		field := fmt.Sprintf("additional-routes[%d]", i)
		judge(c, field+".", RouteFields, &r)
		n := 0
		for o := range s.Routes() {
			if n++; n <= i+1 && r.same(o) {
				c.add(field, r.String(), "a host and a path that the room does not have yet")
				break
			}
		}
	}
}
