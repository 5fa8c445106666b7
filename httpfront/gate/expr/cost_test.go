package expr

import (
	"strings"
	"testing"
)

// TestCostOfAnExpression: what a request can be made to cost counts, also by way of functions and loops.
func TestCostOfAnExpression(t *testing.T) {
	const pattern = ` matches ".{1,900}x"`
	joined := func(value string, n int) string {
		return "concat(" + strings.TrimSuffix(strings.Repeat(value+", ", n), ", ") + ")"
	}
	nested := func(n int) string {
		return strings.Repeat("upper(lower(", n) + joined("http.cookie", 200) + strings.Repeat("))", n)
	}
	for source, allowed := range map[string]bool{
		joined("http.cookie", 300) + pattern:                                                                 false,
		joined("http.cookie", 300) + ` eq "a"`:                                                               true,
		joined("http.cookie", 3) + ` matches "^a[0-9]+$"`:                                                    true,
		"lower(http.cookie)" + pattern:                                                                       true,
		"lower(" + joined("http.cookie", 3) + ")" + pattern:                                                  false,
		"concat(" + joined("http.cookie", 2) + ", upper(http.cookie))" + pattern:                             false,
		"url_decode(" + joined("http.cookie", 3) + `, "r")` + pattern:                                        false,
		nested(1) + ` eq "a"`:                                                                                true,
		nested(12) + ` eq "a"`:                                                                               false,
		"len(" + nested(12) + ") eq 1":                                                                       false,
		"concat(http.host, \"" + strings.Repeat("a", 3000) + "\")" + pattern:                                 false,
		"any(http.request.headers.values[*]" + pattern + ")":                                                 true,
		"any(lower(http.request.headers.values[*])[*]" + pattern + ")":                                       true,
		"any(concat(http.request.headers.values[*], http.cookie)[*]" + pattern + ")":                         false,
		`any(concat(http.request.uri.args["a"][*], http.cookie)[*] eq "a")`:                                  false,
		`any(http.request.headers.names[*] eq "a" and http.cookie` + pattern + ")":                           false,
		`any(http.cookie` + pattern + ` and http.request.headers.names[*] eq "a")`:                           false,
		`any(http.request.headers.names[*] eq "a" and http.referer contains "b")`:                            true,
		`any(http.request.uri.args.names[*] eq "a" and http.request.uri.path eq "/a")`:                       true,
		`any(http.request.uri.args.names[*] eq "a" and http.request.headers["a"][0] eq "b")`:                 false,
		`all(http.request.uri.args.values[*] eq "a" and starts_with(lower(http.request.uri.query), "a=b&"))`: false,
	} {
		e, err := Compile(source, nil)
		switch {
		case allowed && err != nil:
			t.Errorf("%.90s: %v", source, err)
		case !allowed && err == nil:
			t.Errorf("%.90s: %d steps, want it refused", source, e.Steps())
		case !allowed && !strings.Contains(err.Error(), "2000 are allowed"):
			t.Errorf("%.90s: %v", source, err)
		}
	}
}
