package acme

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/ropeline/ropeline/bench/must"
)

const domain = "tickets.example"

// newManager returns one whose authority cannot be reached.
func newManager(t *testing.T, storage string, log *bytes.Buffer) *Manager {
	t.Helper()
	m := must.Do(New(Config{
		Domains: []string{domain}, Directory: "https://127.0.0.1:1/dir", Storage: storage, TLSPort: 1, HTTPPort: 1,
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	}))
	t.Cleanup(m.Close)
	return m
}

// TestChallengesOfAnotherNodeAreAnswered has the shared storage hold what another node
// put there when it asked for a certificate.
func TestChallengesOfAnotherNodeAreAnswered(t *testing.T) {
	storage := t.TempDir()
	m := newManager(t, storage, new(bytes.Buffer))
	path := challengePath + "token"
	if content, ok := m.Challenge(domain, path); ok {
		t.Fatalf("before anybody asked: got %q", content)
	}
	put := func(kind string) {
		t.Helper()
		text := fmt.Appendf(nil, `{"type": %q, "token": "token", "keyAuthorization": "token.thumbprint", "identifier": {"type": "dns", "value": %q}}`, kind, domain)
		name := filepath.Join("acme", "127.0.0.1-1-dir", "challenge_tokens", domain+".json")
		must.OK((&certmagic.FileStorage{Path: storage}).Store(t.Context(), name, text))
	}
	put("http-01")
	for of, want := range map[[2]string]bool{{domain, path}: true, {"other.example", path}: false, {domain, challengePath + "other"}: false} {
		if content, ok := m.Challenge(of[0], of[1]); ok != want || ok && content != "token.thumbprint" {
			t.Errorf("%q: got %q, %v", of, content, ok)
		}
	}

	put("tls-alpn-01")
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	c := must.Do(m.GetCertificate(&tls.ClientHelloInfo{ServerName: domain, SupportedProtos: []string{Protocol}, Conn: server}))
	leaf := must.Do(x509.ParseCertificate(c.Certificate[0]))
	proof := asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 31} // RFC 8737, section 3
	proves := func(e pkix.Extension) bool { return e.Id.Equal(proof) && e.Critical }
	if !slices.Equal(leaf.DNSNames, []string{domain}) || !slices.ContainsFunc(leaf.Extensions, proves) {
		t.Errorf("names %q, extensions %v", leaf.DNSNames, leaf.Extensions)
	}
}

const challengePath = "/.well-known/acme-challenge/"

// TestFailuresAreTold has an authority that nobody is at.
func TestFailuresAreTold(t *testing.T) {
	m := newManager(t, t.TempDir(), new(bytes.Buffer))
	if s := m.Status(); len(s) != 1 || s[0].Error != "not obtained yet" || s[0].Names[0] != domain || !s[0].NotAfter.IsZero() {
		t.Errorf("before the start: %+v", s)
	}
	failed := make(chan struct{})
	tell := m.magic.OnEvent
	m.magic.OnEvent = func(ctx context.Context, event string, data map[string]any) error {
		err := tell(ctx, event, data)
		if event == "cert_failed" {
			close(failed)
		}
		return err
	}
	must.Run(t, func(ctx context.Context) error { m.Run(ctx); return nil })
	<-failed
	if s := m.Status(); !strings.Contains(s[0].Error, "connection refused") {
		t.Errorf("afterwards: %+v", s)
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	good := Config{Domains: []string{domain}, Storage: t.TempDir(), TLSPort: 443}
	for want, change := range map[string]func(*Config){
		"no domains":           func(c *Config) { c.Domains = nil },
		"wildcards":            func(c *Config) { c.Domains = []string{"*.example"} },
		"no storage":           func(c *Config) { c.Storage = "" },
		"no TLS port":          func(c *Config) { c.TLSPort = 0 },
		"begins with https://": func(c *Config) { c.Directory = "http://ca.example/dir" },
	} {
		cfg := good
		change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want something about %q", err, want)
		}
	}
}

func TestLogOfTheLibrary(t *testing.T) {
	var log bytes.Buffer
	z := newZap(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo})))
	z.Info("detail", zap.String("a", "b"))
	z.With(zap.Int("n", 1)).Error("trouble", zap.String("domain", domain))
	z.Warn("note")
	got := log.String()
	if strings.Contains(got, "detail") || !strings.Contains(got, `level=WARN msg="acme: trouble" n=1 domain=tickets.example`) ||
		!strings.Contains(got, `level=INFO msg="acme: note"`) {
		t.Errorf("got:\n%s", got)
	}
}
