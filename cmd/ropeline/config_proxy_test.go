package main

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/upstream"
)

// originsOf names origins in one line.
func originsOf(o httpfront.Origins) string {
	var all []string
	for _, s := range o.Servers {
		all = append(all, s.Text())
	}
	return strings.Join(all, ", ")
}

func TestOriginsAsFlags(t *testing.T) {
	cfg := defaultConfig()
	fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
	nodeFlags(fs, &cfg)
	if err := fs.Parse([]string{"--origin", "http://a weight=3", "--origin", "https://b,http://c:8080", "--retries", "0", "--max-body", "10MiB", "--response-timeout", "5s", "--methods", "GET,HEAD", "--min-body-rate", "0"}); err != nil {
		t.Fatal(err)
	}
	if err := cfg.check(); err != nil {
		t.Fatal(err)
	}
	front := cfg.server().Proxy
	if got := originsOf(cfg.Proxy.Origins); got != "http://a weight=3, https://b, http://c:8080" {
		t.Errorf("origins are %s", got)
	}
	if front.Retries >= 0 || front.Limits.Body != 10<<20 || front.Timeouts.Origin != 5*time.Second || front.Timeouts.Upstream.Connect != 5*time.Second || len(front.Methods) != 2 || front.Limits.BodyRate >= 0 || len(front.Origins.Servers) != 3 {
		t.Errorf("the front is told %+v", front)
	}
}

func TestOriginsInTheFile(t *testing.T) {
	cfg, err := parse(t, `
origins:
  - http://a weight=2
  - url: https://b:8443
    weight: 3
  - {url: http://c}
health-check:
  path: /healthz?full=1
  host: Shop.example
  interval: 10s
  timeout: 1s
  healthy-threshold: 4
  unhealthy-threshold: 5
  expected-status: [200, 300-399]
max-body: 5MiB
rooms:
  - room: plain
  - room: tickets
    path: /tickets
    host: shop.example
    cookie-suffix: t
    max-body: 1024
    origins: [http://d]
    health-check: {path: /up}
  - room: inherits
    path: /x
    cookie-suffix: x
    origins: [http://e]
  - room: limited
    path: /y
    cookie-suffix: y
    max-body: 1KiB
`)
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.check(); err != nil {
		t.Fatal(err)
	}
	p := cfg.Proxy
	if got := originsOf(p.Origins); got != "http://a weight=2, https://b:8443 weight=3, http://c" {
		t.Errorf("origins are %s", got)
	}
	c := p.Origins.Check
	if c == nil || c.Path != "/healthz?full=1" || c.Host != "shop.example" || c.Interval != 10*time.Second || c.Timeout != time.Second ||
		c.Healthy != 4 || c.Unhealthy != 5 || len(c.Status) != 2 || c.Status[1] != (upstream.StatusRange{First: 300, Last: 399}) {
		t.Fatalf("the check is %+v", c)
	}
	if len(p.Routes) != 4 {
		t.Fatalf("%d routes, want one for each room: %+v", len(p.Routes), p.Routes)
	}
	if r := p.Routes[0]; r.Name != "plain" || len(r.Origins.Servers) != 0 || r.Body != 0 {
		t.Errorf("the room that says nothing is %+v", r)
	}
	r := p.Routes[1]
	if r.Name != "tickets" || r.Host != "shop.example" || r.Path != "/tickets" || r.Body != 1024 || originsOf(r.Origins) != "http://d" ||
		r.Origins.Check.Path != "/up" || r.Origins.Check.Interval != 5*time.Second || len(r.Origins.Check.Status) != 1 {
		t.Errorf("the room with all is %+v", r)
	}
	if r := p.Routes[2]; originsOf(r.Origins) != "http://e" || r.Origins.Check != c || r.Body != 0 {
		t.Errorf("the room that inherits the check is %+v", r)
	}
	if r := p.Routes[3]; len(r.Origins.Servers) != 0 || r.Body != 1<<10 {
		t.Errorf("the room with a limit is %+v", r)
	}
	// What the front is told must be what the front takes.
	front := cfg.server().Proxy
	if len(front.Routes) != 4 || front.Limits.Body != 5<<20 || front.Routes[1].Body != 1024 {
		t.Errorf("the front is told %+v", front)
	}
}

func TestAFlagWinsOverTheListOfOrigins(t *testing.T) {
	cfg, err := parse(t, "origins: [http://a]", "--origin", "http://b")
	if err != nil || originsOf(cfg.Proxy.Origins) != "http://b" {
		t.Errorf("origins are %s, %v", originsOf(cfg.Proxy.Origins), err)
	}
}

func TestOriginMistakes(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"no list":             {"origins: http://a", []string{":1:10: origins: a list", "single value"}},
		"empty list":          {"origins: []", []string{":1:10: origins: a list with at least one origin"}},
		"not an address":      {"origins:\n  - http://a\n  - b", []string{":3:5: origins[1]: \"b\" is not allowed: http:// or https://"}},
		"weight":              {"origins:\n  - url: http://a\n    weight: 0", []string{":3:13: weight:", "1 to 1000"}},
		"weight in the text":  {"origin: http://a weight=1001", []string{":1:9: origin:", "weight=N, with N from 1 to 1000"}},
		"unknown key":         {"origins:\n  - url: http://a\n    wieght: 1", []string{":3:5: wieght: unknown key", `did you mean "weight"`}},
		"no url":              {"origins:\n  - weight: 1", []string{":2:5: origins[0]: every origin needs one address"}},
		"two urls":            {"origins:\n  - url: http://a,http://b", []string{":2:5: origins[0]: every origin needs one address"}},
		"both":                {"origin: http://a\norigins:\n  - http://b", []string{":3:3: origins:", "\"origin\" in line 1", "keep one"}},
		"twice":               {"origins:\n  - http://a\n  - http://a weight=2", []string{":3:5: origins[1]: http://a stands there twice"}},
		"twice as a flag":     {"origin: [http://a, http://a]", []string{":1:1: origin: http://a stands there twice"}},
		"metadata":            {"origins:\n  - http://169.254.169.254", []string{":2:5: origins[0]:", "link-local", "--allow-origin-addresses"}},
		"metadata of a room":  {"origin: http://a\nrooms:\n  - room: a\n    origins: [\"http://[fd00:ec2::254]\"]", []string{":4:15: rooms[0].origins[0]:", "credentials"}},
		"check without path":  {"origin: http://a\nhealth-check:\n  interval: 5s", []string{":3:3: health-check: what is requested is missing"}},
		"check no mapping":    {"health-check: /up", []string{":1:15: health-check: a mapping is wanted"}},
		"check unknown key":   {"health-check:\n  path: /\n  interval: 5s\n  treshold: 1", []string{":4:3: treshold: unknown key"}},
		"check timeout":       {"health-check:\n  path: /\n  timeout: 6s", []string{":2:3: health-check: timeout 6s is longer than interval 5s"}},
		"check status":        {"health-check: {path: /, expected-status: [99]}", []string{"expected-status:", `"99"`, "200-299"}},
		"check path":          {"health-check: {path: up}", []string{"path:", "starts with /"}},
		"check escape":        {"health-check: {path: /100%}", []string{"path:", "hexadecimal digits"}},
		"check without":       {"origin: http://a\nrooms:\n  - room: a\n    health-check: {path: /}", []string{":4:19: room \"a\": health-check:", "\"origins\" of its own"}},
		"size":                {"max-body: 10MB", []string{":1:11: max-body:", `"10MB"`, "MiB"}},
		"size out of range":   {"max-body: 1025TiB", []string{"max-body:"}},
		"ejection":            {"origin: http://a\neject-time: 3m", []string{":2:1: eject-time: --eject-time is 3m: at most --eject-time-max, 2m"}},
		"timeout":             {"connect-timeout: 0s", []string{":1:18: connect-timeout:", "100ms to 24h"}},
		"method":              {"methods: [GET, get]", []string{":1:16: methods: \"get\" is not allowed: want up to 32 upper-case letters"}},
		"retries":             {"retries: 65", []string{":1:10: retries:", "0 to 64"}},
		"nothing":             {"name: a", []string{"--origin is missing"}},
		"addresses that none": {"allow-origin-addresses: [x]", []string{":1:26: allow-origin-addresses:"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := parse(t, tt.text)
			if err == nil {
				err = cfg.check()
			}
			for _, want := range tt.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error is %v, want it to contain %q", err, want)
				}
			}
		})
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1": 1, "1KiB": 1024, "1024": 1024, "10MiB": 10 << 20, "3GiB": 3 << 30, "1024TiB": 1 << 50} {
		var n int64
		v := size.At(&n)
		if err := v.Set(text); err != nil || n != want {
			t.Errorf("%q: got %d, %v, want %d", text, n, err, want)
		}
		again := int64(-1)
		if err := size.At(&again).Set(v.String()); err != nil || again != want {
			t.Errorf("%q is shown as %q, which is %d, %v", text, v.String(), again, err)
		}
	}
	for _, text := range []string{"", "-1", "+1", "1.5MiB", "1 MiB", "KiB", "99999999999999999999", "1048577GiB"} {
		var n int64
		if err := size.At(&n).Set(text); err == nil {
			t.Errorf("%q is taken as %d", text, n)
		}
	}
}
