package httpfront

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/httpfront/forwarding"
)

// TestOnlyTrustedProxiesTellTheSiteOfVisitors by the fields that are configured for it.
func TestOnlyTrustedProxiesTellTheSiteOfVisitors(t *testing.T) {
	names := func(c *Config) { c.Edge.ClientIPHeader, c.CountryHeader = "X-Visitor", "CF-IPCountry" }
	for name, tt := range map[string]struct {
		change []func(*Config)
		want   bool
	}{
		"a trusted proxy": {[]func(*Config){names, trustLoopback}, true},
		"anybody":         {[]func(*Config){names}, false},
	} {
		var got http.Header
		f := serve(t, nil, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }), tt.change...)
		f.get("/", "X-Visitor", "6.6.6.6", "Cf-Ipcountry", "CH", "X-Other", "1")
		if a, b := got.Get("X-Visitor") == "6.6.6.6", got.Get("Cf-Ipcountry") == "CH"; a != tt.want || b != tt.want || got.Get("X-Other") != "1" {
			t.Errorf("%s: the site is told %v", name, got)
		}
		// Many sites cannot tell a dash from an underscore.
		f.get("/", "x_visitor", "6.6.6.6", "CF_IPCOUNTRY", "CH")
		for field := range got {
			if n := strings.ToLower(field); n == "x_visitor" || n == "cf_ipcountry" {
				t.Errorf("%s: the site is told %s", name, field)
			}
		}
	}
}

// TestNoFieldOfVisitorsReachesTheSite by which it tells who asks, and for what, whoever passed
// them on; but for the one that a trusted proxy is configured to write.
func TestNoFieldOfVisitorsReachesTheSite(t *testing.T) {
	const told = "203.0.113.66"
	for name, tt := range map[string]struct {
		header  string
		trusted []netip.Prefix
		keeps   string
	}{
		"anybody":                                 {"X-Forwarded-For", nil, ""},
		"a trusted proxy":                         {"X-Forwarded-For", loopback, ""},
		"one that tells in a field of its own":    {"CF-Connecting-IP", loopback, "Cf-Connecting-Ip"},
		"anybody, where a proxy tells in a field": {"CF-Connecting-IP", nil, ""},
	} {
		var got http.Header
		f := serve(t, nil, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }), func(c *Config) {
			c.Edge.ClientIPHeader, c.TrustedProxies = tt.header, tt.trusted
		})
		for _, field := range forwarding.Names() {
			if strings.HasSuffix(field, "-") {
				field += "host"
			}
			if tt.trusted != nil && (field == "x-forwarded-host" || field == strings.ToLower(tt.header) && tt.keeps == "") {
				continue // believed
			}
			for _, spelling := range []string{field, strings.ToUpper(field), strings.ReplaceAll(field, "-", "_")} {
				got = nil
				f.get("/", spelling, told)
				if got == nil {
					t.Errorf("%s, %s: the site is not asked", name, spelling)
				}
				for n, values := range got {
					if n != tt.keeps && n != "X-Real-Ip" && n != "X-Forwarded-For" && n != "Forwarded" && strings.Contains(strings.Join(values, " "), told) {
						t.Errorf("%s, %s: the site is told %s: %q", name, spelling, n, values)
					}
				}
				believed := tt.keeps != "" && strings.EqualFold(field, tt.keeps) && !strings.Contains(spelling, "_")
				if is := got.Get("X-Real-Ip") == told; is != believed || (tt.keeps != "" && got.Get(tt.keeps) == told) != believed {
					t.Errorf("%s, %s: believed %v, the site is told %v", name, spelling, is, got)
				}
			}
		}
	}
}
