package server

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/bench/must"
	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/upstream"
)

// originsOf returns so many.
func originsOf(n int) (o httpfront.Origins) {
	for i := range n {
		o.Servers = append(o.Servers, must.Do(upstream.ParseOrigin("http://192.0.2.1:"+string(rune('1'+i)))))
	}
	return o
}

// TestBoundsOfConnections: what fits is as it is configured, and else there is something for everybody.
func TestBoundsOfConnections(t *testing.T) {
	one, none := originsOf(1), httpfront.Origins{}
	everything := Config{
		Clients: Clients{VerdictListen: ":1"}, TLS: TLS{CertFiles: []string{"c"}, RedirectListen: ":80"},
		Proxy: to(one, httpfront.Route{Origins: originsOf(2)}, httpfront.Route{}, httpfront.Route{Origins: originsOf(9)}),
	}
	site, few := Config{Proxy: to(one)}, Config{Proxy: to(one)}
	few.Proxy.Limits.Conns = 5
	for _, c := range []struct {
		what  string
		cfg   Config
		limit int
		want  Bounds // without the reserve; zero: there are too few
	}{
		{"a site, with what the unit of systemd has", site, 131_072, Bounds{Visitors: 32768, Origins: 18432, Admin: 1024}},
		{"what docs/operating.md says", site, 65_536, Bounds{Visitors: 32768, Origins: 18432, Admin: 1024}},
		{"everything, with what the unit of systemd has", everything, 131_072, Bounds{Visitors: 32768, Handshakes: 4096, Redirects: 32768, Origins: 32768, Verdicts: 8192, Admin: 1024}},
		{"PROXY headers", Config{Clients: Clients{Edge: httpfront.Edge{ProxyProtocol: []netip.Prefix{{}}}}, Proxy: to(one)}, 65_536, Bounds{Visitors: 32768, Handshakes: 4096, Origins: 18432, Admin: 1024}},
		{"one descriptor too few", site, 52_402, Bounds{Visitors: 32767, Origins: 18432, Admin: 1024}},
		{"a site, with what many systems have", site, 4096, Bounds{Visitors: 1706, Origins: 1706, Admin: 505}},
		{"everything", everything, 4096, Bounds{Visitors: 1091, Handshakes: 136, Redirects: 501, Origins: 1091, Verdicts: 501, Admin: 501}},
		{"a site, with a few", site, 256, Bounds{Visitors: 85, Origins: 85, Admin: 25}},
		{"a site, with next to none", site, 96, Bounds{Visitors: 14, Origins: 14, Admin: 8}},
		{"the fewest", site, 83, Bounds{Visitors: 8, Origins: 8, Admin: 8}},
		{"too few", site, 82, Bounds{}},
		{"less than the reserve", site, 20, Bounds{}},
		{"few are configured", few, 86, Bounds{Visitors: 5, Origins: 5, Admin: 8}},
		{"verdicts alone", Config{Clients: Clients{VerdictListen: ":1"}, Proxy: to(none)}, 1024, Bounds{Verdicts: 854, Admin: 122}},
		{"verdicts alone, all", Config{Clients: Clients{VerdictListen: ":1"}}, 1 << 20, Bounds{Verdicts: 8192, Admin: 1024}},
	} {
		got, err := must.Do(c.cfg.Bounds()).Within(c.limit)
		if err == nil && got.Descriptors() > c.limit {
			t.Errorf("%s: %d descriptors of %d", c.what, got.Descriptors(), c.limit)
		}
		got.reserve = 0
		if got != c.want || (err != nil) != (c.want == Bounds{}) || err != nil && !strings.Contains(err.Error(), "LimitNOFILE") {
			t.Errorf("%s: got %+v and %v, want %+v, or an error that says what to do", c.what, got, err, c.want)
		}
	}
}

// TestBoundsAreNeverMoreThanTheLimit: with any, and those of fewer descriptors are never higher.
func TestBoundsAreNeverMoreThanTheLimit(t *testing.T) {
	c := Config{Clients: Clients{VerdictListen: ":1"}, TLS: TLS{CertFiles: []string{"c"}, RedirectListen: ":80"}, Proxy: to(originsOf(3))}
	wanted := must.Do(c.Bounds())
	var before Bounds
	for limit := 0; limit < wanted.Descriptors()+100; limit += 1 + limit/50 {
		b, err := wanted.Within(limit)
		if err != nil {
			if before != (Bounds{}) {
				t.Fatalf("%d are too few, and less were not: %v", limit, err)
			}
			continue
		}
		if b.Descriptors() > limit || b.Visitors < before.Visitors || b.Origins < min(b.Visitors, wanted.Origins) ||
			min(b.Visitors, b.Handshakes, b.Redirects, b.Verdicts, b.Admin) < leastConns {
			t.Fatalf("of %d: %+v, before %+v", limit, b, before)
		}
		before = b
	}
	if b, err := wanted.Within(wanted.Descriptors()); b != wanted || err != nil {
		t.Errorf("with as many as are wanted: %+v, want %+v", b, wanted)
	}
}

// TestANodeKeepsWithinItsDescriptors: its parts have the bounds that hold, and the log says so once.
func TestANodeKeepsWithinItsDescriptors(t *testing.T) {
	var log bytes.Buffer
	s := &Server{cfg: Config{Descriptors: 256, Proxy: to(originsOf(1))}, log: slog.New(slog.NewTextHandler(&log, nil))}
	must.OK(s.keepWithin())
	if l := s.cfg.Proxy.Limits; l.Conns != 85 || l.Origins != 85 || l.Handshakes != 0 || s.bounds.Admin != 25 || l.Complete() != nil || l.ConnsPerAddress != 21 {
		t.Errorf("got %+v, %+v", l, s.bounds)
	}
	for _, part := range []string{"limit=256", "wanted=52403", "max_connections=85", "of=32768", "LimitNOFILE"} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the log does not say %s: %s", part, log.String())
		}
	}
	log.Reset()
	s.cfg.Descriptors = 65_536
	s.cfg.Proxy.Limits = httpfront.Limits{}
	if err := s.keepWithin(); err != nil || s.cfg.Proxy.Limits.Conns != 32768 || log.Len() > 0 {
		t.Errorf("enough: %v, %d, %s", err, s.cfg.Proxy.Limits.Conns, log.String())
	}
	s.cfg.Descriptors = 40
	if err := s.keepWithin(); err == nil {
		t.Error("a node starts without any use")
	}
}
