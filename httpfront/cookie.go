package httpfront

import (
	"bytes"
	"cmp"
	"strconv"
	"time"

	"github.com/ropeline/ropeline/httpfront/gate/pass"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

const (
	cookieName = "ropeline"
	// hostPrefix makes browsers refuse the cookie from anything but this very
	// host over TLS, so that no sibling host can plant one.
	hostPrefix = "__Host-"

	// Several cookies may have our name, for instance by another path. All are
	// tried, up to a number, because the first may be a stranger's.
	candidatesMax = 4
	candidateMax  = 512
)

// appendCookieName appends the name that a room's pass has.
func appendCookieName(dst []byte, secure bool, s *room.Settings) []byte {
	if secure {
		dst = append(dst, hostPrefix...)
	}
	return s.AppendCookie(append(dst, cookieName...))
}

// eachCookie calls yield with the name and value of every cookie of a field.
func eachCookie(list []byte) func(yield func(name, value []byte) bool) {
	return func(yield func(name, value []byte) bool) {
		for pair := range bytes.SplitSeq(list, []byte(";")) {
			name, value, _ := bytes.Cut(bytes.Trim(pair, " \t"), []byte("="))
			if len(name) > 0 && !yield(name, value) {
				return
			}
		}
	}
}

// isOurs reports whether a cookie is a pass, of whichever room.
func isOurs(name []byte) bool {
	name = bytes.TrimPrefix(name, []byte(hostPrefix))
	rest, ok := bytes.CutPrefix(name, []byte(cookieName))
	return ok && (len(rest) == 0 || rest[0] == '_')
}

// carried is the pass of a request.
type carried struct {
	node.Pass
	known bool // there is one
	stale bool // another one shall take its place: the key retires, or it is bound otherwise
}

// openPass has p be the pass that the request carries for the room. One that is bound to
// anything else than by counts as none.
func (r *request) openPass(p *carried, keys *pass.Keyring, s *room.Settings, by *pass.Binding) {
	*p = carried{}
	if !r.Cookies {
		return
	}
	only := r.onlyCookies()
	if r.before == nil || only == nil || by != nil {
		r.openAny(p, keys, s, by)
		return
	}
	from := openedFrom{keys, s, r.Host, r.cookieSecure(s)}
	if r.before.opened.is(only, from) {
		*p = r.before.opened.carried
		return
	}
	r.openAny(p, keys, s, nil)
	r.before.opened.remember(p, only, from)
}

// openAny is openPass into a zero pass, without a memory.
func (r *request) openAny(best *carried, keys *pass.Keyring, s *room.Settings, by *pass.Binding) {
	var buf [64]byte
	want := appendCookieName(buf[:0], r.cookieSecure(s), s)
	tried := 0
	for list := range r.All("cookie") {
		for name, value := range eachCookie(list) {
			if !bytes.Equal(name, want) || len(value) > candidateMax {
				continue
			}
			if tried++; tried > candidatesMax {
				return
			}
			p, as, err := keys.OpenFrom(value, s.ID, r.Host, by)
			if err == nil && (!best.known || holdsUntil(&p).After(holdsUntil(&best.Pass))) {
				*best = carried{p, true, !as}
			}
		}
	}
}

// bind fills in what passes of the visitor are bound to in the room, and returns it; nil
// if that is nothing.
func (r *request) bind(to *pass.Binding, s *room.Settings) *pass.Binding {
	b := &s.Front.Binding
	if !b.Address && !b.UserAgent {
		return nil
	}
	bits := cmp.Or(b.IPv6Prefix, room.DefaultIPv6Prefix)
	if r.via.Client.Is4() {
		bits = cmp.Or(b.IPv4Prefix, room.DefaultIPv4Prefix)
	}
	to.ByAddress, to.ByAgent = b.Address, b.UserAgent
	to.Address, _ = r.via.Client.Prefix(bits) // zero, as of everybody, without an address
	for v := range r.All("user-agent") {
		to.Agent = v
		break
	}
	return to
}

// holdsUntil is up to when a pass says something: of several, as a browser has them
// that keeps one apart for frames, the last is the one that was given last.
func holdsUntil(p *node.Pass) time.Time {
	if p.Accepted() {
		return p.LeaseEnd
	}
	return p.LastPoll
}

// cookieSecure reports whether the cookie of the room's pass travels over TLS alone.
// Its name says so too.
func (r *request) cookieSecure(s *room.Settings) bool {
	switch s.Front.Cookie.Secure {
	case room.SecureAlways:
		return true
	case room.SecureNever:
		return false
	}
	return r.via.Secure
}

// appendForeignCookies appends a Cookie field with all cookies of list but
// ours: the origin has no use for passes, and what it does not have it cannot
// leak. It appends nothing if no cookie is left.
func appendForeignCookies(dst, list []byte) []byte {
	start := len(dst)
	for pair := range bytes.SplitSeq(list, []byte(";")) {
		pair = bytes.Trim(pair, " \t")
		name, _, _ := bytes.Cut(pair, []byte("="))
		if len(pair) == 0 || isOurs(name) {
			continue
		}
		if len(dst) == start {
			dst = append(dst, "Cookie: "...)
		} else {
			dst = append(dst, "; "...)
		}
		dst = append(dst, pair...)
	}
	if len(dst) == start {
		return dst
	}
	return append(dst, "\r\n"...)
}

// appendSetCookie appends the value of a Set-Cookie field that carries p.
func (r *request) appendSetCookie(dst []byte, keys *pass.Keyring, p *node.Pass, s *room.Settings, now time.Time) []byte {
	dst = appendCookieName(dst, r.cookieSecure(s), s)
	dst = append(dst, '=')
	sealed := *p
	sealed.Room = s.ID
	var to pass.Binding
	dst = keys.AppendSealTo(dst, sealed, r.Host, r.bind(&to, s))
	dst = append(dst, "; Path=/; Max-Age="...)
	dst = strconv.AppendInt(dst, int64(cookieAge(p, s, now)/time.Second), 10)
	return r.appendCookieEnd(dst, s)
}

// appendNoCookie appends the value of a Set-Cookie field that takes the pass
// away from the browser.
func (r *request) appendNoCookie(dst []byte, s *room.Settings) []byte {
	dst = appendCookieName(dst, r.cookieSecure(s), s)
	return r.appendCookieEnd(append(dst, "=; Path=/; Max-Age=0"...), s)
}

// appendCookieEnd appends the attributes that do not depend on the pass. A cookie
// that is taken away needs the same: a browser keeps partitioned ones apart.
func (r *request) appendCookieEnd(dst []byte, s *room.Settings) []byte {
	secure, a := r.cookieSecure(s), &s.Front.Cookie
	if secure {
		dst = append(dst, "; Secure"...)
	}
	dst = append(dst, "; HttpOnly; SameSite="...)
	switch {
	case a.SameSite == room.SameSiteStrict:
		dst = append(dst, "Strict"...)
	case a.SameSite == room.SameSiteLax, !secure: // browsers drop None without Secure
		dst = append(dst, "Lax"...)
	default:
		dst = append(dst, "None"...)
	}
	if a.Partitioned && secure {
		dst = append(dst, "; Partitioned"...)
	}
	return dst
}

// cookieAge is how long the browser shall keep the cookie: as long as the pass
// can be of any use. That is enforced by the room, whose clock is better, so
// this is generous: a session may go on for long after the last cookie that reached the
// browser, and that may be the one of a visitor who still waited.
func cookieAge(p *node.Pass, s *room.Settings, now time.Time) time.Duration {
	age := max(p.LeaseEnd.Sub(now), 0)
	if !p.Accepted() {
		age = s.PlaceKept + max(p.Refresh, 0) + s.SessionDuration
	}
	if s.DisableSessionRenewal {
		return age + time.Minute
	}
	return age + 24*time.Hour
}
