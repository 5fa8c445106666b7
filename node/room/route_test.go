package room

import (
	"errors"
	"slices"
	"strings"
	"testing"
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
		"a cookie on every host":        {in("x", Route{"a.example", "/"}), in("x", Route{"b.example", "/"}, Route{"", "/c"}), "cookie-suffix"},
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
