package main

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/httpfront/server"
	"github.com/ropeline/ropeline/node/room"
)

// servedRooms returns the rooms as a server completes them.
func (c *config) servedRooms() ([]room.Settings, error) {
	to := c.server()
	return to.ServedRooms()
}

// parse reads a configuration file's text as `ropeline run` would, after args.
func parse(t *testing.T, text string, args ...string) (config, error) {
	t.Helper()
	return parseBeside(t, nil, text, args...)
}

// readAs reads a configuration file as `ropeline run` would, after args.
func readAs(t *testing.T, path string, args ...string) (config, error) {
	t.Helper()
	cfg := defaultConfig()
	fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
	nodeFlags(fs, &cfg)
	roomFlags(fs, &cfg.Room)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	err := readConfigFile(path, fs, &cfg)
	return cfg, err
}

func TestVerdictsAndProofsAreChecked(t *testing.T) {
	for file, want := range map[string]string{
		"verdict-listen: 127.0.0.1:9081\n":                           "trusted-proxies",
		"verdict-listen: 9081\ntrusted-proxies: 127.0.0.1\n":         "verdict-listen",
		"origin: http://x\nproof: maybe\n":                           "proof",
		"origin: http://x\nproof-header: \"a b\"\n":                  "proof-header",
		"origin: http://x\nproof-header: \"-\"\n":                    "proof-header",
		"origin: http://x\nproof: true\nproof-issuer: \" \"\n":       "proof-issuer",
		"trusted-proxies: 127.0.0.1\nadmin: 127.0.0.1:1\nname: a1\n": "origin",
	} {
		cfg, err := parse(t, file)
		if err == nil {
			err = cfg.check()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want a word about %s", file, err, want)
		}
	}
	cfg, err := parse(t, "verdict-listen: 127.0.0.1:9081\ntrusted-proxies: 127.0.0.1\nproof: true\nproof-header: X-Admitted\n")
	if err == nil {
		err = cfg.check()
	}
	if err != nil || len(cfg.Proxy.Origins.Servers) != 0 || !cfg.Proof.On || cfg.Proof.Header != "X-Admitted" || cfg.Proof.Issuer != "ropeline" {
		t.Errorf("got %+v, %v", cfg.Proof, err)
	}
}

func TestConfigFileSetsWhatFlagsLeave(t *testing.T) {
	cfg, err := parse(t, "\ufeff"+`
# a node of two
origin: http://127.0.0.1:3000
listen: :8088
join: [a1:7946, "b1:7946"]
trusted-proxies:
  - 10.0.0.0/8
  - 192.0.2.7
session-duration: 90s
total-active-users: 500
new-users-per-minute: 50
policy: curve
curve-factor: 1.5
`, "--total-active-users", "7")
	if err != nil {
		t.Fatal(err)
	}
	if got := originsOf(cfg.Proxy.Origins); got != "http://127.0.0.1:3000" {
		t.Errorf("origin = %q", got)
	}
	if got := strings.Join(cfg.Mesh.Join, " "); got != "a1:7946 b1:7946" {
		t.Errorf("join = %q", got)
	}
	if len(cfg.Clients.TrustedProxies) != 2 || cfg.Clients.TrustedProxies[1].String() != "192.0.2.7/32" {
		t.Errorf("trusted proxies = %v", cfg.Clients.TrustedProxies)
	}
	if cfg.Room.TotalActiveUsers != 7 {
		t.Errorf("total-active-users = %d, want 7: the flag wins", cfg.Room.TotalActiveUsers)
	}
	if cfg.Room.SessionDuration != 90*time.Second || cfg.Room.Policy != room.Curve || cfg.Room.CurveFactor != 1.5 || cfg.Room.NewUsersPerMinute != 50 {
		t.Errorf("room = %+v", cfg.Room)
	}
}

func TestConfigFileListsRooms(t *testing.T) {
	cfg, err := parse(t, `
origin: https://shop.example
refresh-interval: 10s
rooms:
  - room: tickets
    path: /tickets
    cookie-suffix: tickets
    total-active-users: 20
  - room: shop
    host: Shop.Example
`)
	if err != nil {
		t.Fatal(err)
	}
	rooms, err := cfg.servedRooms()
	if err != nil {
		t.Fatal(err)
	}
	if len(rooms) != 2 || rooms[0].Name != "tickets" || rooms[0].Path != "/tickets" || rooms[0].TotalActiveUsers != 20 {
		t.Errorf("rooms = %+v", rooms)
	}
	if rooms[1].Host != "shop.example" || rooms[1].RefreshInterval != 10*time.Second || rooms[1].TotalActiveUsers != 200 {
		t.Errorf("second room = %+v, want the file's and the default values where it says nothing", rooms[1])
	}
	if rooms[0].ID == rooms[1].ID {
		t.Error("two rooms have the same id")
	}
}

func TestConfigFileMistakes(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string // parts of the message
	}{
		{"unknown key", "origin: http://a\ntotal-active-user: 5", []string{":2:1: total-active-user: unknown key", `did you mean "total-active-users"`}},
		{"unknown key far from any", "colour: red", []string{":1:1: colour: unknown key", "Allowed are", "origin", "rooms"}},
		{"wrong type", "total-active-users: many", []string{":1:21: total-active-users:", `"many"`, "whole number from 1 to 2147483647"}},
		{"text where a number is wanted", "total-active-users: \"500\"", []string{":1:21: total-active-users:", "without quotes"}},
		{"no number", "curve-factor: .nan", []string{":1:15: curve-factor:", "a number from 0.01 to 8"}},
		{"truth value", "name: true", []string{":1:7: name:", "truth value"}},
		{"origin with an impossible port", "origin: http://a:99999", []string{":1:9: origin:", "a port is from 1 to 65535"}},
		{"list where one value is wanted", "listen: [a, b]", []string{":1:9: listen: one value is wanted; this is a list"}},
		{"mapping where one value is wanted", "listen:\n  port: 80", []string{"listen: one value is wanted; this is a mapping"}},
		{"no value", "name:", []string{":1:7: name: one value is wanted; this is a missing value"}},
		{"zero", "total-active-users: 0", []string{"total-active-users:", `"0"`, "1 to 2147483647"}},
		{"too many", "new-users-per-minute: 2147483648", []string{"new-users-per-minute:", "2147483647"}},
		{"duration without a unit", "session-duration: 300", []string{"session-duration:", `"300"`, "1s to 24h", "such as 5m"}},
		{"word not in the list", "policy: fair", []string{"policy:", `"fair"`, "even, curve, counter, open"}},
		{"status code", "queueing-status-code: 503", []string{"200, 202 or 429"}},
		{"origin with a path", "origin: http://a/b", []string{"origin:", "http://10.0.0.5:3000"}},
		{"address without a port", "listen: 127.0.0.1", []string{"listen:", "host:port"}},
		{"join without a host", "join: [\":7946\"]", []string{"join:", "host:port of another node"}},
		{"host with a scheme", "host: http://a", []string{"host:", "without scheme"}},
		{"host with two dots", "host: shop..example", []string{"host:", "a host name"}},
		{"host with a dot before", "host: .shop", []string{"host:", "a host name"}},
		{"host of other letters", "host: bücher.example", []string{"host:", "xn--"}},
		{"certificate for an address", "acme-domains: \"[::1]\"", []string{"acme-domains:", "a host name of letters"}},
		{"path with dot segments", "path: /a/../b", []string{"path:", "\"..\" as a segment"}},
		{"path with dot segments, encoded", "additional-routes:\n  - path: /a/%2e%2e/b", []string{":2:11: path:", "\"..\" as a segment"}},
		{"path with parameters", "path: /a;b", []string{"path:", "\";\""}},
		{"path with an encoded slash", "path: /a%2Fb", []string{"path:", "encoded slashes"}},
		{"path with a backslash", "path: /a\\b", []string{"path:", "backslashes"}},
		{"relative path", "path: a/b", []string{"path:", `begins with "/"`}},
		{"path with a query", "path: /a?b", []string{"path:", "without query"}},
		{"cidr", "trusted-proxies: [10.0.0.0/8, nonsense]", []string{"trusted-proxies:", `"nonsense"`, "10.0.0.0/8"}},
		{"twice", "name: a\nname: b", []string{"name"}},
		{"not a mapping", "- a\n- b", []string{":1:1: the file: a mapping is wanted", "list"}},
		{"broken YAML", "a: [", []string{"not valid YAML"}},
		{"anchors", "name: &x a\nsite: *x", []string{"anchor"}},
		{"two documents", "name: a\n---\nname: b", []string{"one document"}},
		{"room without a name", "rooms:\n  - path: /a", []string{":2:5: rooms[0]: every room in the list needs a name"}},
		{"unknown key in a room", "rooms:\n  - room: a\n    listen: :80", []string{":3:5: room \"a\": listen: unknown key"}},
		{"bad value in a room", "rooms:\n  - room: a\n  - room: b\n    total-active-users: -1", []string{":4:25: room \"b\": total-active-users:"}},
		{"rooms alike", "rooms:\n  - room: a\n  - room: a", []string{":3:5: rooms[1]:", "used twice"}},
		{"rooms like refused ones", "rooms:\n  - {room: a, host: x}\n  - {room: b, host: x}\n  - {room: b, host: y}\n  - {room: d, host: y}", []string{
			`:3:5: rooms[1]: "a" and "b" stand on the same host`, `:4:5: rooms[2]: the name "b" is used twice`, `:5:5: rooms[3]: "b" and "d" stand on the same host`,
		}},
		{"rooms is no list", "rooms: a", []string{":1:8: rooms: a list"}},
		{"rooms is empty", "rooms: []", []string{":1:8: rooms: a list with at least one room"}},
		{"a name beside the list", "room: shop\nrooms:\n  - room: a", []string{":1:1: room: the rooms under", "leave this line out"}},
		{"text for a truth value", "queue-all: \"true\"", []string{":1:12: queue-all: true or false is wanted", "without quotes"}},
		{"a word for a truth value", "suspended: yes", []string{":1:12: suspended:", `"yes"`, "true or false"}},
		{"a method that is none", "queueing-method: lifo", []string{":1:18: queueing-method:", `"lifo"`, "fifo, random, passthrough, reject"}},
		{"a command that is none", "enabled-origin-commands: [revoke, admit]", []string{":1:35: enabled-origin-commands:", `"admit"`, "one of revoke"}},
		{"routes that are no list", "additional-routes: a.example", []string{":1:20: additional-routes: a list of routes is wanted", "single value"}},
		{"a route that is no mapping", "additional-routes:\n  - a.example", []string{":2:5: additional-routes[0]: a mapping is wanted"}},
		{"a route without anything", "cookie-suffix: a\nadditional-routes:\n  - {}", []string{":3:5: additional-routes[0]: every route needs"}},
		{"a route with a wildcard", "additional-routes:\n  - host: \"*.example\"", []string{":2:11: host:", `"*.example"`, "wildcard"}},
		{"a route with a query", "additional-routes:\n  - host: a.example\n    path: /a?b", []string{":3:11: path:", "without query"}},
		{"an unknown key in a route", "additional-routes:\n  - host: a.example\n    paths: /a", []string{":3:5: paths: unknown key", `did you mean "path"`}},
		{"routes without a suffix", "host: a.example\nadditional-routes:\n  - host: b.example", []string{":3:3: additional-routes:", `"b.example/"`, "want a cookie-suffix beside it"}},
		{"a route twice", "cookie-suffix: a\nadditional-routes:\n  - host: b.example\n  - host: b.example\n    path: /", []string{":4:5: additional-routes[1]:", "b.example/", "does not have yet"}},
		{"a route of another room", "rooms:\n  - room: a\n    host: a.example\n  - room: b\n    host: b.example\n    cookie-suffix: b\n    additional-routes: [{host: a.example}]", []string{":4:5: rooms[1]:", "same host \"a.example\""}},
		{"a cookie of another room", "rooms:\n  - room: a\n    host: a.example\n    cookie-suffix: x\n  - room: b\n    host: b.example\n    cookie-suffix: x\n    additional-routes: [{host: a.example, path: /b}]", []string{":5:5: rooms[1]:", "a cookie-suffix of its own"}},
		{"a share frozen for too long", "share-freeze: 25h", []string{":1:15: share-freeze:", "1s to 24h", "0s for not at all"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parse(t, tt.text)
			if err == nil {
				t.Fatal("the file was accepted")
			}
			for _, part := range append(tt.want, "ropeline.yaml") {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error is\n\t%v\nwant it to contain %q", err, part)
				}
			}
		})
	}
}

func TestConfigFileReportsAllMistakesAtOnce(t *testing.T) {
	_, err := parse(t, "total-active-users: 0\npolicy: fair\nsesion-duration: 5m")
	if err == nil {
		t.Fatal("the file was accepted")
	}
	for _, line := range []string{":1:", ":2:", ":3:"} {
		if !strings.Contains(err.Error(), line) {
			t.Errorf("error is\n%v\nwant it to name line %s", err, line)
		}
	}
}

func TestConfigCombinations(t *testing.T) {
	tests := []struct {
		name string
		text string
		want string
	}{
		{"no origin", "name: a", "--origin is missing"},
		{"join without mesh", "origin: http://a\njoin: [b:1]", "ropeline.yaml:2:1: join: --join needs --mesh"},
		{"mesh without secret", "origin: http://a\nmesh: :7946", "ropeline.yaml:2:1: mesh: --mesh needs --secret-file"},
		{"half a certificate", "origin: http://a\nmesh: :1\nsecret-file: s\ncert-file: c", "ropeline.yaml:4:1: cert-file: --cert-file, --key-file and --ca-file go together"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg, err := parse(t, tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if err := cfg.check(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want it to contain %q", err, tt.want)
			}
		})
	}
}

func TestCombinationOnTheCommandLineNamesNoFile(t *testing.T) {
	cfg, err := parse(t, "origin: http://a", "--join", "b:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.check(); err == nil || strings.Contains(err.Error(), "ropeline.yaml") {
		t.Errorf("error = %v, want one that does not blame the file", err)
	}
}

// TestTheEnvironmentIsTaken where it says what no flag does.
func TestTheEnvironmentIsTaken(t *testing.T) {
	t.Setenv(tokenVariable, "")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	if c := defaultConfig(); c.Admin.Token != "" || c.Signals.OTLPFromEnv {
		t.Errorf("from nowhere: token %q, collector %v", c.Admin.Token, c.Signals.OTLPFromEnv)
	}
	t.Setenv(tokenVariable, "0123456789abcdef")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
	if c := defaultConfig(); c.Admin.Token != "0123456789abcdef" || !c.Signals.OTLPFromEnv {
		t.Errorf("got token %q, collector %v", c.Admin.Token, c.Signals.OTLPFromEnv)
	}
}

func TestRoomsThatCannotBeToldApartAreRefused(t *testing.T) {
	for rooms, want := range map[string]string{
		"{room: a, path: /a, cookie-suffix: x}, {room: a, path: /b}":         "used twice",
		"{room: a, path: /a, cookie-suffix: x}, {room: b, path: /a}":         "same host",
		"{room: a, path: /a, cookie-suffix: x}, {room: b, path: /a/}":        "same host",
		"{room: a, path: /a}, {room: b, path: /b}":                           "",
		"{room: a}, {room: b, host: b.example}":                              "",
		"{room: a, host: b.example}, {room: b}":                              "",
		"{room: a, host: a.example}, {room: b, host: a.example, path: /b}":   "",
		"{room: a, cookie-suffix: x}, {room: b, path: /b, cookie-suffix: x}": "cookie-suffix",
		"{room: a, path: /a, cookie-suffix: x}, {room: b, path: /b}":         "",
		"{room: a, host: a.example}, {room: b, host: b.example}":             "",
	} {
		_, err := parse(t, "rooms: ["+rooms+"]")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error = %v, want one about %q", rooms, err, want)
		}
	}
}

func TestDefaultsAreValid(t *testing.T) {
	s := defaultRoom()
	s.ID = server.RoomID(s.Name)
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}
