package load

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// maxCookies bounds what one visitor keeps, as browsers do.
const maxCookies = 50

// jar keeps the cookies of one visitor. Domain and path are not looked at: all
// targets are one site, and a room's cookie is for the whole of it. The zero
// value is empty.
type jar struct{ cookies []cookie }

type cookie struct {
	name, value string
	expires     time.Time // zero: when the visitor leaves
}

// set takes a Set-Cookie header. One that cannot be read is ignored.
func (j *jar) set(header string, now time.Time) {
	c, err := http.ParseSetCookie(header)
	if err != nil {
		return
	}
	expires := c.Expires
	switch {
	case c.MaxAge > 0:
		expires = now.Add(time.Duration(c.MaxAge) * time.Second)
	case c.MaxAge < 0:
		expires = now
	}
	kept := cookie{name: c.Name, value: c.Value, expires: expires}
	i := slices.IndexFunc(j.cookies, func(had cookie) bool { return had.name == c.Name })
	switch {
	case i >= 0 && kept.dead(now):
		j.cookies = slices.Delete(j.cookies, i, i+1)
	case i >= 0:
		j.cookies[i] = kept
	case len(j.cookies) < maxCookies && !kept.dead(now):
		j.cookies = append(j.cookies, kept)
	}
}

func (c cookie) dead(now time.Time) bool { return !c.expires.IsZero() && !c.expires.After(now) }

// appendHeader appends a Cookie header line to dst, or nothing if no cookie is
// alive.
func (j *jar) appendHeader(dst []byte, now time.Time) []byte {
	first := true
	for _, c := range j.cookies {
		if c.dead(now) || strings.ContainsFunc(c.value, isControl) {
			continue
		}
		if first {
			dst = append(dst, "Cookie: "...)
		} else {
			dst = append(dst, "; "...)
		}
		first = false
		dst = append(append(append(dst, c.name...), '='), c.value...)
	}
	if !first {
		dst = append(dst, "\r\n"...)
	}
	return dst
}
