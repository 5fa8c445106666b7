package room

import (
	"fmt"
	"strings"
	"testing"
)

func TestReadPath(t *testing.T) {
	for _, tt := range []struct {
		raw                string
		decoded, route     string
		literal, literalBy string
	}{
		{"/", "/", "/", "", ""},
		{"", "/", "/", "", ""},
		{"/a/b.html", "/a/b.html", "/a/b.html", "", ""},
		{"/.well-known/x", "/.well-known/x", "/.well-known/x", "", ""},
		{"/a...b/...", "/a...b/...", "/a...b/...", "", ""},
		{"//a///b/", "/a/b/", "/a/b/", "", ""},
		{"/%61/caf%C3%A9", "/a/café", "/a/café", "", ""},
		{"/café", "/café", "/café", "", ""},
		{"/%2561", "/%61", "/%61", "", ""},
		{"/100%/%zz%4", "/100%/%zz%4", "/100%/%zz%4", "", ""},
		{"/a;x=1/b;y", "/a;x=1/b;y", "/a/b", "", ""},
		{"/;/a", "/;/a", "/a", "", ""},
		{"/a%3bx", "/a;x", "/a", "", ""},
		{"/;x", "/;x", "/", "", ""},
		{"/a%2Fb%2fc", "/a/b/c", "/a/b/c", "/a%2Fb%2Fc", "/a%2Fb%2Fc"},
		{"/a;%2fb", "/a;/b", "/a/b", "/a;%2Fb", "/a"},
	} {
		got, err := ReadPath([]byte(tt.raw))
		if want := (Path{tt.decoded, tt.route, tt.literal, tt.literalBy}); err != nil || got != want {
			t.Errorf("%q: got %+q, %v\nwant %+q", tt.raw, got, err, want)
		}
	}
}

func TestPathsWithTwoReadings(t *testing.T) {
	for raw, want := range map[string]error{
		"/static/../buy":         errDots,
		"/static/./buy":          errDots,
		"/static/..":             errDots,
		"/static/%2e%2e/buy":     errDots,
		"/static/.%2E/buy":       errDots,
		"/static/..;/buy":        errDots,
		"/static/..;x=y/buy":     errDots,
		"/static/..%3b/buy":      errDots,
		"/.;/tickets":            errDots,
		"/static%2f..%2fbuy":     errDots,
		"/static/x;%2f..%2f/buy": errDots,
		`/static/..\buy`:         errBackslash,
		`/static/..%5cbuy`:       errBackslash,
		`/\tickets`:              errBackslash,
		"/a%5Cb":                 errBackslash,
		"/tickets%00":            errControl,
		"/tickets\x00":           errControl,
		"/tickets%0a":            errControl,
		"/tickets\n":             errControl,
		"/%7ftickets":            errControl,
		"/tickets%c2%85":         errControl,
	} {
		if got, err := ReadPath([]byte(raw)); err != want {
			t.Errorf("%q: got %+q, %v, want %v", raw, got, err, want)
		}
	}
}

// FuzzReadPath holds what readings of paths have in common, whatever comes.
func FuzzReadPath(f *testing.F) {
	for _, s := range []string{"/", "/a/b", "//a;x/%2e", "/a%2fb;c", "/%2e%2e;", `/\`, "*", "/%", "/a/;/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		p, err := ReadPath([]byte(raw))
		if err != nil {
			return
		}
		for _, s := range []string{p.Decoded, p.Route, p.Literal, p.LiteralRoute} {
			if s == "" && s == p.Literal {
				continue
			}
			if s == "" || s[0] != '/' || strings.Contains(s, "//") || strings.ContainsAny(s, "\\\x00") ||
				strings.Contains(s+"/", "/../") || strings.Contains(s+"/", "/./") {
				t.Fatalf("%q is read as %+q", raw, p)
			}
		}
		if strings.Contains(p.Route+p.LiteralRoute, ";") {
			t.Fatalf("%q: a route with parameters: %+q", raw, p)
		}
		if (p.Literal == "") == strings.Contains(strings.ToLower(raw), "%2f") {
			t.Fatalf("%q: an encoded slash: %+q", raw, p)
		}
	})
}

func TestNormalHost(t *testing.T) {
	for host, want := range map[string]string{
		"SHOP.example.": "shop.example", "my_app": "my_app", "192.0.2.1": "192.0.2.1", "xn--bcher-kva.example": "xn--bcher-kva.example",
		"[0:0::1]": "[::1]", "[2001:DB8::1]": "[2001:db8::1]",
		"": "", ".": "", ".shop": "", "shop..example": "", "shop.example..": "", "bücher.example": "", "a b": "", "a:80": "",
		"[": "", "[]": "", "[::1": "", "[::1]:80": "", "[fe80::1%eth0]": "", "[192.0.2.1]": "", "*.example": "", strings.Repeat("a", 254): "",
	} {
		if got, ok := NormalHost(host); got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", host, got, ok, want)
		}
	}
}

// TestRoutePathsAreThoseOfRequests: whatever is configured is found by a request that is
// spelled so.
func TestRoutePathsAreThoseOfRequests(t *testing.T) {
	for path, want := range map[string]string{
		"/": "/", "//": "/", "/a": "/a", "/a/": "/a/", "/x//y": "/x/y", "/%61": "/a", "/caf%C3%A9": "/café", "/café": "/café",
		"/a%20b": "/a b", "/%2561": "/%61", "/.well-known": "/.well-known",
		"": "", "a": "", "/a?b": "", "/a#b": "", "/a%3fb": "", "/a%0ab": "", "/a/../b": "", "/a/%2e/b": "", "/a;x": "", "/a%3bx": "",
		`/a\b`: "", "/a%5cb": "", "/a%2fb": "", "/a%00": "", "/" + strings.Repeat("a", 2048): "",
	} {
		got, err := RoutePath(path)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", path, got, err, want)
		}
		if err != nil {
			continue
		}
		var table Table[bool]
		table.Add(Route{Path: got}, true)
		asked, err := ReadPath([]byte(path))
		if err != nil {
			t.Fatal(err)
		}
		if found, _ := table.Find("", asked.Route); !found {
			t.Errorf("%q: a request for it is not found at %q", path, got)
		}
		if s := (Settings{Path: got}); strings.Contains(fmt.Sprint(s.Validate()), "path:") {
			t.Errorf("%q: %v", path, s.Validate())
		}
	}
}
