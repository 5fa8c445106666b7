package room

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/crdt"
)

func TestRoutesThatCannotBe(t *testing.T) {
	base := Settings{Name: "a", Host: "a.example", TotalActiveUsers: 1, NewUsersPerMinute: 1, CookieSuffix: "a"}.WithDefaults()
	for name, tt := range map[string]struct {
		change func(*Settings)
		field  string // "" for none
	}{
		"none":               {func(s *Settings) { s.CookieSuffix = "" }, ""},
		"several":            {func(s *Settings) { s.AdditionalRoutes = []Route{{"b.example", "/"}, {"b.example", "/c"}, {"", "/"}} }, ""},
		"without a suffix":   {func(s *Settings) { s.AdditionalRoutes, s.CookieSuffix = []Route{{"b.example", "/"}}, "" }, "additional-routes"},
		"the main one again": {func(s *Settings) { s.AdditionalRoutes = []Route{{"a.example", ""}} }, "additional-routes[0]"},
		"one twice":          {func(s *Settings) { s.AdditionalRoutes = []Route{{"b.example", "/c"}, {"b.example", "/c/"}} }, "additional-routes[1]"},
		"a port":             {func(s *Settings) { s.AdditionalRoutes = []Route{{"b.example:80", "/"}} }, "additional-routes[0].host"},
		"a relative path":    {func(s *Settings) { s.AdditionalRoutes = []Route{{"b.example", "c"}} }, "additional-routes[0].path"},
		"a dot at the end":   {func(s *Settings) { s.Host = "b.example." }, "host"},
		"two dots":           {func(s *Settings) { s.Host = "b..example" }, "host"},
		"a dot before":       {func(s *Settings) { s.Host = ".example" }, "host"},
		"upper case":         {func(s *Settings) { s.Host = "B.example" }, "host"},
		"a container":        {func(s *Settings) { s.Host = "my_app" }, ""},
		"an address":         {func(s *Settings) { s.Host = "[::1]" }, ""},
		"letters":            {func(s *Settings) { s.Path = "/café au lait/%" }, ""},
		"two slashes":        {func(s *Settings) { s.Path = "/a//b" }, "path"},
		"a dot segment":      {func(s *Settings) { s.Path = "/a/../b" }, "path"},
		"a parameter":        {func(s *Settings) { s.Path = "/a;x" }, "path"},
		"a backslash":        {func(s *Settings) { s.Path = `/a\b` }, "path"},
		"a query":            {func(s *Settings) { s.Path = "/a?b" }, "path"},
		"a line break":       {func(s *Settings) { s.Path = "/a\nb" }, "path"},
		"too many":           {func(s *Settings) { s.AdditionalRoutes = make([]Route, MaxRoutes+1) }, "additional-routes"},
	} {
		s := base
		tt.change(&s)
		err := s.Validate()
		if tt.field == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if e, ok := errors.AsType[*FieldError](err); !ok || e.Field != tt.field {
			t.Errorf("%s: got %v, want a mistake in %s", name, err, tt.field)
		}
	}
}

func TestApart(t *testing.T) {
	in := func(suffix string, routes ...Route) Settings {
		return Settings{Name: "room" + suffix, CookieSuffix: suffix, Host: routes[0].Host, Path: routes[0].Path, AdditionalRoutes: routes[1:]}
	}
	for name, tt := range map[string]struct {
		a, b Settings
		want string // "" for nothing wrong
	}{
		"two hosts":                     {in("", Route{"a.example", "/"}), in("", Route{"b.example", "/"}), ""},
		"a route of both":               {in("x", Route{"a.example", "/"}, Route{"b.example", "/c"}), in("y", Route{"c.example", "/"}, Route{"b.example", "/c/"}), "same host \"b.example\" and path \"/c\""},
		"a cookie on an additional one": {in("x", Route{"a.example", "/"}, Route{"b.example", "/c"}), in("x", Route{"b.example", "/"}), "cookie-suffix"},
		"a cookie on every host":        {in("x", Route{"a.example", "/a"}), in("x", Route{"b.example", "/"}, Route{"", "/c"}), "cookie-suffix"},
		"a host of its own":             {in("x", Route{"a.example", "/"}), in("x", Route{"b.example", "/"}, Route{"", "/c"}), ""},
		"a path on every host":          {in("", Route{"a.example", "/"}), in("", Route{"", "/c"}), ""},
		"cookies of two names":          {in("x", Route{"a.example", "/"}), in("y", Route{"a.example", "/b"}, Route{"", "/"}), ""},
	} {
		for _, pair := range [][2]*Settings{{&tt.a, &tt.b}, {&tt.b, &tt.a}} {
			err := Apart(pair[0], pair[1])
			// Of two spellings of a path the first room's is told.
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "/c/", "/c"), tt.want)) {
				t.Errorf("%s: got %v, want an error about %q", name, err, tt.want)
			}
		}
	}
}

// TestApartIsWhatBrowsersMeet: two rooms are apart just where no host has a browser carry the passes
// of both under one name, and no request is of both. The oracle sends requests to the two.
func TestApartIsWhatBrowsersMeet(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	hosts, paths := []string{"", "a", "b"}, []string{"/", "/x", "/x/y", "/z"}
	met := func(s *Settings, host, path string) (exact bool, length int) { // of the route that the request is on; -1: none
		length = -1
		for r := range s.Routes() {
			on := path == r.Path || strings.HasPrefix(path, strings.TrimSuffix(r.Path, "/")+"/")
			if on && (r.Host == host || r.Host == "") && (r.Host != "" && !exact || r.Host != "" == exact && len(r.Path) > length) {
				exact, length = r.Host != "", len(r.Path)
			}
		}
		return exact, length
	}
	apart := 0
	for i := range 20_000 {
		var both [2]Settings
		for j := range both {
			s := &both[j]
			*s = Settings{Name: string(rune('m' + j)), ID: crdt.RoomID{byte(rng.IntN(4)), 0, 0, 0, byte(j)}, Host: pick(hosts...), Path: pick(paths...), CookieSuffix: pick("", "", "s")}
			if s.CookieSuffix != "" && rng.IntN(2) == 0 {
				s.AdditionalRoutes = []Route{{pick(hosts...), pick(paths...)}}
			}
		}
		a, b, clash := &both[0], &both[1], false
		_, clash = Shared(a, b)
		for _, host := range []string{"a", "b", "c"} {
			seen := [2]bool{}
			for _, path := range paths {
				exactA, lengthA := met(a, host, path)
				exactB, lengthB := met(b, host, path)
				switch {
				case lengthA < 0 && lengthB < 0:
				case lengthB < 0 || lengthA >= 0 && (exactA && !exactB || exactA == exactB && lengthA > lengthB):
					seen[0] = true
				default:
					seen[1] = true
				}
			}
			clash = clash || seen[0] && seen[1] && string(a.AppendCookie(nil)) == string(b.AppendCookie(nil))
		}
		if err := Apart(a, b); (err != nil) != clash {
			t.Fatalf("case %d: %+v and %+v: got %v, want a clash: %v", i, a, b, err, clash)
		}
		if !clash {
			apart++
		}
	}
	if apart < 5000 || apart > 19_000 {
		t.Errorf("%d of 20,000 were apart: the cases are one-sided", apart)
	}
}

func TestRoutesBeginWithTheMainOne(t *testing.T) {
	s := Settings{Host: "a", Path: "/b", AdditionalRoutes: []Route{{"c", "/d"}, {"e", "/"}}}
	if got := slices.Collect(s.Routes()); len(got) != 3 || got[0] != (Route{"a", "/b"}) || got[2] != (Route{"e", "/"}) {
		t.Errorf("got %v", got)
	}
	for r := range s.Routes() { // stops where it is told to
		if r.Host == "c" {
			break
		}
	}
}
