package upstream

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

func parsed(texts ...string) (all []Origin) {
	for _, s := range texts {
		all = append(all, must(ParseOrigin(s)))
	}
	return all
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	many := make([]Origin, OriginsMax+1)
	for name, tt := range map[string]struct {
		change func(*Config)
		want   []string
	}{
		"none":             {func(c *Config) { c.Origins = nil }, []string{"origins of shop: 0 are given: want 1 to 64"}},
		"too many":         {func(c *Config) { c.Origins = many }, []string{"65 are given"}},
		"zero origin":      {func(c *Config) { c.Origins = many[:1] }, []string{"ParseOrigin"}},
		"twice":            {func(c *Config) { c.Origins = append(c.Origins, parsed("https://a:80 weight=2")...) }, []string{"https://a:80 stands there twice", "weight"}},
		"metadata":         {func(c *Config) { c.Origins = parsed("http://169.254.169.254") }, []string{"http://169.254.169.254", "link-local", "allow"}},
		"metadata over 6":  {func(c *Config) { c.Origins = parsed("http://[fd00:ec2::254]") }, []string{"credentials"}},
		"negative timeout": {func(c *Config) { c.Timeouts.Connect = -1; c.Limits.Conns = -2 }, []string{"timeout connect is -1ns: want more than 0", "limit of connections is -2"}},
		"ejection":         {func(c *Config) { c.Passive.Ejection = time.Hour }, []string{"ejection is 1h0m0s: want at most the longest ejection, 2m0s"}},
		"check path":       {func(c *Config) { c.Check = &Check{} }, []string{`path of checks ""`, "starts with /"}},
		"check space":      {func(c *Config) { c.Check = &Check{Path: "/a b"} }, []string{"spaces"}},
		"check escape":     {func(c *Config) { c.Check = &Check{Path: "/100%"} }, []string{`"/100%"`, "hexadecimal"}},
		"check timeout":    {func(c *Config) { c.Check = &Check{Path: "/", Timeout: 6 * time.Second} }, []string{"timeout of checks is 6s: want at most the interval, 5s"}},
		"check status":     {func(c *Config) { c.Check = &Check{Path: "/", Status: []StatusRange{{100, 200}}} }, []string{"status of checks 100-200: want codes from 200 to 599"}},
	} {
		cfg := Config{Name: "shop", Origins: parsed("http://a")}
		tt.change(&cfg)
		_, err := New(cfg)
		for _, want := range tt.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error is %v, want it to contain %q", name, err, want)
			}
		}
	}
}

func TestNewDoesNotTouchWhatItIsGiven(t *testing.T) {
	check := &Check{Path: "/up"}
	cfg := Config{
		Origins: parsed("http://169.254.1.1"), Check: check,
		AllowAddresses: []netip.Prefix{netip.MustParsePrefix("169.254.1.0/24")},
	}
	must(New(cfg))
	if check.Interval != 0 || cfg.Limits.Conns != 0 {
		t.Errorf("defaults were written into the caller's values: %+v", check)
	}
}
