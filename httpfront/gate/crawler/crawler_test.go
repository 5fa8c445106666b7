package crawler

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropeline/ropeline/bench/must"
)

// zone is a DNS without a network.
type zone struct {
	names map[string][]string // by address
	down  atomic.Bool
	asked atomic.Int64
}

func (z *zone) LookupAddr(_ context.Context, addr string) ([]string, error) {
	z.asked.Add(1)
	if z.down.Load() {
		return nil, errors.New("the DNS is down")
	}
	if names, ok := z.names[addr]; ok {
		return names, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: addr, IsNotFound: true}
}

// LookupNetIP leads back to who has a name, but never to the liar.
func (z *zone) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	for addr, names := range z.names {
		if addr != liar.String() && slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, host) }) {
			return []netip.Addr{netip.MustParseAddr(addr)}, nil
		}
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

var (
	google  = netip.MustParseAddr("192.0.2.1")
	google6 = netip.MustParseAddr("2001:db8::1")
	liar    = netip.MustParseAddr("192.0.2.66") // names itself googlebot.com, which does not lead back
	named   = netip.MustParseAddr("192.0.2.67") // has a name that only looks like it
	fetcher = netip.MustParseAddr("192.0.2.69") // of the same engine, and fetches what users name
	nobody  = netip.MustParseAddr("192.0.2.68")
)

func internet() *zone {
	return &zone{names: map[string][]string{
		google.String():  {"host.example.", "Crawl-1.GoogleBot.com."},
		google6.String(): {"crawl-6.googlebot.com."},
		liar.String():    {"crawl-1.googlebot.com."},
		fetcher.String(): {"google-proxy-192-0-2-69.google.com."},
		named.String():   {"evilgooglebot.com.", "googlebot.com.evil.example."},
	}}
}

const bot = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"

func TestWhoIsACrawler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := running(t, Config{Resolver: internet()})
		for name, tc := range map[string]struct {
			agent string
			addr  netip.Addr
			want  bool
		}{
			"one":                          {bot, google, true},
			"by IPv6":                      {bot, google6, true},
			"by IPv4 in IPv6":              {bot, netip.AddrFrom16(google.As16()), true},
			"whose name leads elsewhere":   {bot, liar, false},
			"whose name only looks like":   {bot, named, false},
			"that fetches for users":       {bot, fetcher, false},
			"without a name":               {bot, nobody, false},
			"who says nothing":             {"Mozilla/5.0", google, false},
			"of another engine":            {"bingbot/2.0", google, false},
			"without an address":           {bot, netip.Addr{}, false},
			"in capitals":                  {"GOOGLEBOT", google, true},
			"that says so after 512 bytes": {string(make([]byte, 600)) + bot, google, false},
		} {
			c.Is([]byte(tc.agent), tc.addr)
			synctest.Wait()
			if got := c.Is([]byte(tc.agent), tc.addr); got != tc.want {
				t.Errorf("%s: %v", name, got)
			}
		}
	})
}

func running(t *testing.T, cfg Config) *Checker {
	c := must.Do(New(cfg))
	go c.Run(t.Context())
	return c
}

func TestNobodyWaitsForTheDNS(t *testing.T) {
	c := must.Do(New(Config{Resolver: internet(), Waiting: 2}))
	// Nothing runs, so a question that waited would wait for ever.
	for i := range 100 {
		if c.Is([]byte(bot), netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})) {
			t.Fatal("an address is a crawler's that nobody has looked up")
		}
	}
	if n := len(c.asked); n != 2 || len(c.pending) != 2 {
		t.Errorf("%d questions wait, and %d are pending", n, len(c.pending))
	}
}

func TestAnswersAreRememberedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := internet()
		c := running(t, Config{Resolver: z})
		is := func() bool {
			c.Is([]byte(bot), google)
			synctest.Wait()
			return c.Is([]byte(bot), google)
		}
		for _, step := range []struct {
			when       string
			after      time.Duration
			down, gone bool
			is         bool
			asked      int64
		}{
			{"while the DNS is down", 0, true, false, false, 1},
			{"at once after a failure", 0, false, false, false, 1},
			{"a minute later", time.Minute, false, false, true, 2},
			{"the same day", 23 * time.Hour, false, true, true, 2},
			{"a day later", time.Hour, false, true, false, 3},
		} {
			time.Sleep(step.after)
			z.down.Store(step.down)
			if step.gone {
				delete(z.names, google.String())
			}
			if got := is(); got != step.is || z.asked.Load() != step.asked {
				t.Errorf("%s: %v, asked %d times, want %v and %d", step.when, got, z.asked.Load(), step.is, step.asked)
			}
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	for _, cfg := range []Config{{Timeout: -1}, {Remember: -1}, {Retry: -1}, {Addresses: -1}, {Waiting: -1}} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}
