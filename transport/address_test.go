package transport

import (
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAdvertisedAddress(t *testing.T) {
	port := uint16(7000)
	for _, tc := range []struct{ bound, advertise, want string }{
		{"10.1.2.3:7000", "", "10.1.2.3:7000"},
		{"10.1.2.3:7000", "192.0.2.1:9", "192.0.2.1:9"},
		{"0.0.0.0:7000", "192.0.2.1:0", "192.0.2.1:7000"},
		{"[::]:7000", "[2001:db8::1]:9", "[2001:db8::1]:9"},
	} {
		got, err := advertised(Config{Advertise: tc.advertise}, netip.MustParseAddrPort(tc.bound))
		if err != nil || got.String() != tc.want {
			t.Errorf("%s, %q: got %v, %v, want %s", tc.bound, tc.advertise, got, err, tc.want)
		}
	}
	got, err := advertised(Config{}, netip.AddrPortFrom(netip.IPv4Unspecified(), port))
	if err != nil || got.Addr().IsUnspecified() || got.Port() != port {
		t.Errorf("wildcard: got %v, %v, want an address of this machine", got, err)
	}
}

// TestOwnAddress has machines with interfaces and routes of several kinds choose.
func TestOwnAddress(t *testing.T) {
	const out4, out6 = "192.0.2.1:9", "[2001:db8::1]:9"
	for _, c := range []struct {
		name   string
		seeds  []string
		routes map[string][]string // from where packets to a host:port leave
		local  []string
		only4  bool
		want   string
		names  []string // what an error has to name
	}{
		{name: "nothing but loopback", local: []string{"127.0.0.1", "::1", "fe80::1"}, want: "127.0.0.1"},
		{name: "the same, with a node to join there", seeds: []string{"a:1"}, routes: map[string][]string{"a:1": {"127.0.0.1"}}, local: []string{"127.0.0.1"}, want: "127.0.0.1"},
		{name: "nothing but loopback yet, with a node to join elsewhere", seeds: []string{"a:1", "b:1"}, routes: map[string][]string{"a:1": {"127.0.0.1"}}, local: []string{"127.0.0.1"}, names: []string{"b:1", "network", "advertise"}},
		{name: "one card", local: []string{"127.0.0.1", "10.0.0.5", "fe80::1"}, want: "10.0.0.5"},
		{name: "one card of both families", local: []string{"10.0.0.5", "fd00::5"}, want: "10.0.0.5"},
		{name: "a bridge before the card that leads outside", routes: map[string][]string{out4: {"10.0.0.5"}}, local: []string{"172.17.0.1", "10.0.0.5"}, want: "10.0.0.5"},
		{name: "a bridge, and only IPv6 leads outside", routes: map[string][]string{out6: {"fd77::2"}}, local: []string{"172.17.0.1", "fd77::2"}, want: "fd77::2"},
		{name: "the same, on a socket of IPv4", routes: map[string][]string{out6: {"fd77::2"}}, local: []string{"172.17.0.1", "fd77::2"}, only4: true, want: "172.17.0.1"},
		{name: "two cards, and no route outside", local: []string{"10.0.0.5", "172.17.0.1"}, names: []string{"10.0.0.5", "172.17.0.1", "advertise"}},
		{name: "a node to join, on the other card than outside", seeds: []string{"a:1"}, routes: map[string][]string{"a:1": {"10.9.0.5"}, out4: {"10.0.0.5"}}, want: "10.9.0.5"},
		{name: "nodes to join, all by one card", seeds: []string{"a:1", "b:1"}, routes: map[string][]string{"a:1": {"10.9.0.5"}, "b:1": {"10.9.0.5", "fd00::5"}}, want: "10.9.0.5"},
		{name: "nodes to join, by two cards", seeds: []string{"a:1", "b:1"}, routes: map[string][]string{"a:1": {"10.9.0.5"}, "b:1": {"10.8.0.5"}, out4: {"10.0.0.5"}}, names: []string{"10.9.0.5", "10.8.0.5"}},
		{name: "a node to join on this machine", seeds: []string{"a:1"}, routes: map[string][]string{"a:1": {"127.0.0.1"}, out4: {"10.0.0.5"}}, want: "10.0.0.5"},
		{name: "a node to join that cannot be found", seeds: []string{"a:1"}, routes: map[string][]string{out4: {"10.0.0.5"}}, want: "10.0.0.5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ownAddress(surroundings{
				sources: func(target string) []netip.Addr { return parseAddrs(c.routes[target]) },
				local:   func() ([]netip.Addr, error) { return parseAddrs(c.local), nil },
			}, c.seeds, c.only4)
			if c.want != "" {
				if err != nil || got.String() != c.want {
					t.Errorf("got %v, %v, want %s", got, err, c.want)
				}
				return
			}
			if err == nil || slices.ContainsFunc(c.names, func(name string) bool { return !strings.Contains(err.Error(), name) }) {
				t.Errorf("got %v, %v, want an error that names %q", got, err, c.names)
			}
		})
	}
}

func parseAddrs(texts []string) (addrs []netip.Addr) {
	for _, text := range texts {
		addrs = append(addrs, netip.MustParseAddr(text))
	}
	return addrs
}

// TestSourcesTowards asks this machine's routes.
func TestSourcesTowards(t *testing.T) {
	if got := sourcesTowards("127.0.0.1:9"); !slices.Equal(got, parseAddrs([]string{"127.0.0.1"})) {
		t.Errorf("towards 127.0.0.1: got %v", got)
	}
	if got := sourcesTowards("no-such-host.invalid:9"); len(got) != 0 {
		t.Errorf("towards a name that there is not: got %v", got)
	}
}

// TestAPeerAtThisAddress has a node advertise the address of another one, and a node that
// takes the place of another one, at its address: only the first is told of.
func TestAPeerAtThisAddress(t *testing.T) {
	const warning = "advertises this node's own address"
	bubble(t, func(t *testing.T) {
		c := newCluster(t, newWire(lanDelay))
		var logs [5]logged
		start := func(i int, set func(*Config)) *testNode {
			cfg := c.config(i, 1, 0)
			cfg.Logger = slog.New(slog.NewTextHandler(&logs[i], nil))
			set(&cfg)
			return c.start(cfg)
		}
		a := start(1, func(*Config) {})
		join := func(cfg *Config) { cfg.Seeds = []string{a.addr.String()} }
		b := start(2, join)
		a.waitAlive(1, 15*time.Second)

		b.kill()
		b = start(3, func(cfg *Config) { // made once more, with an empty disk
			join(cfg)
			cfg.PacketConn = c.conn(2, 7000)
		})
		a.waitState(b.id, Alive, 15*time.Second)
		time.Sleep(2 * time.Minute)
		if strings.Contains(logs[3].String(), warning) {
			t.Errorf("a node in the place of another one: %s", &logs[3])
		}

		start(4, func(cfg *Config) {
			join(cfg)
			cfg.Advertise = b.addr.String()
		})
		waitUntil(t, 2*time.Minute, "b is told", func() bool { return strings.Contains(logs[3].String(), warning) })
	})
}
