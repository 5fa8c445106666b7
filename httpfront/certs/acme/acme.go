package acme

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/ropeline/ropeline/httpfront/certs"
)

// LetsEncrypt is the directory of the authority that is asked if no other one is given.
const LetsEncrypt = certmagic.LetsEncryptProductionCA

// Protocol is what the TLS listener has to offer besides HTTP for TLS-ALPN-01.
const Protocol = "acme-tls/1"

// Config says which certificates are obtained, and how. Domains, Storage and TLSPort are
// required.
type Config struct {
	// Domains are the names to have a certificate for, one each. They have no
	// wildcards, for which proof by DNS would be needed.
	Domains []string
	// Email is where the authority tells of trouble. Empty: nowhere.
	Email string
	// Directory is the address at which the authority's services are listed. Default
	// LetsEncrypt.
	Directory string
	// Roots are the authorities whose certificates Directory may show. Nil means those
	// of the system.
	Roots *x509.CertPool
	// Storage is the directory for certificates, keys and the account. It is shared by
	// the nodes to which a domain leads, and secret.
	Storage string
	// TLSPort is the port that GetCertificate is asked for, and HTTPPort the one that
	// Challenge is; 0 means that HTTP-01 is not used. Both have to be open before Run
	// is called. Requests to the domain's ports 443 and 80 have to arrive there.
	TLSPort, HTTPPort int
	// Logger takes what an operator should know. The default is slog.Default().
	Logger *slog.Logger
}

// Manager obtains, renews and shows certificates. It is safe for concurrent use.
type Manager struct {
	cfg    Config
	log    *zap.Logger
	issuer *certmagic.ACMEIssuer
	magic  *certmagic.Config
	cache  *certmagic.Cache

	mu     sync.Mutex        // guards the following
	failed map[string]string // why a domain has no new certificate; nothing for the others
}

// New returns a Manager that Run will have obtain certificates. Close is to be called,
// also if Run never is.
func New(cfg Config) (*Manager, error) {
	if err := cfg.complete(); err != nil {
		return nil, fmt.Errorf("acme: %w", err)
	}
	m := &Manager{cfg: cfg, log: newZap(cfg.Logger), failed: map[string]string{}}
	m.cache = certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return m.magic, nil },
		Logger:           m.log,
	})
	m.magic = certmagic.New(m.cache, certmagic.Config{
		Storage:            &certmagic.FileStorage{Path: cfg.Storage},
		DefaultServerName:  cfg.Domains[0],
		FallbackServerName: cfg.Domains[0],
		OnEvent:            m.onEvent,
		Logger:             m.log,
		// Public authorities have ended OCSP or are about to; browsers do not ask.
		OCSP: certmagic.OCSPConfig{DisableStapling: true},
	})
	m.issuer = certmagic.NewACMEIssuer(m.magic, certmagic.ACMEIssuer{
		CA:           cfg.Directory,
		Email:        cfg.Email,
		Agreed:       true,
		TrustedRoots: cfg.Roots,
		// The library looks whether somebody listens there, and leaves it at that.
		AltTLSALPNPort:       cfg.TLSPort,
		AltHTTPPort:          cfg.HTTPPort,
		DisableHTTPChallenge: cfg.HTTPPort == 0,
		Logger:               m.log,
	})
	m.magic.Issuers = []certmagic.Issuer{m.issuer}
	return m, nil
}

func (c *Config) complete() error {
	var errs []error
	if len(c.Domains) == 0 {
		errs = append(errs, errors.New("no domains given"))
	}
	for _, d := range c.Domains {
		if strings.Contains(d, "*") {
			errs = append(errs, fmt.Errorf("domain %q: wildcards cannot be proven by HTTP or TLS", d))
		}
	}
	if c.Storage == "" {
		errs = append(errs, errors.New("no storage given"))
	}
	if c.TLSPort == 0 {
		errs = append(errs, errors.New("no TLS port given"))
	}
	c.Directory = cmp.Or(c.Directory, LetsEncrypt)
	if u, err := url.Parse(c.Directory); err != nil || u.Scheme != "https" || u.Host == "" {
		errs = append(errs, fmt.Errorf("directory %q: want an address that begins with https://", c.Directory))
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return errors.Join(errs...)
}

// Run obtains certificates that are missing and renews those that run out, until ctx
// ends. What fails is tried again and again, less and less often.
func (m *Manager) Run(ctx context.Context) {
	if err := m.magic.ManageAsync(ctx, m.cfg.Domains); err != nil {
		m.cfg.Logger.Error("certificates cannot be obtained", "error", err)
	}
	<-ctx.Done()
}

// Close ends what New began.
func (m *Manager) Close() { m.cache.Stop() }

// GetCertificate shows a certificate, for tls.Config, and answers challenges, if Protocol
// is offered. A visitor who asks for none of the domains is shown that of the first.
func (m *Manager) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return m.magic.GetCertificate(hello)
}

// Has reports whether name is one of the domains.
func (m *Manager) Has(name string) bool {
	return slices.ContainsFunc(m.cfg.Domains, func(d string) bool { return strings.EqualFold(d, name) })
}

// Challenge returns what the authority is to find at path of host, as
// httpfront.Redirect.Challenge does.
func (m *Manager) Challenge(host, path string) (content string, ok bool) {
	r := &http.Request{
		Method: http.MethodGet, Host: host, RequestURI: path, URL: &url.URL{Path: path}, Header: http.Header{},
		RemoteAddr: net.IPv4zero.String(),
	}
	var answer challengeAnswer
	if !m.Has(host) || !m.issuer.HandleHTTPChallenge(&answer, r) {
		return "", false
	}
	return answer.String(), true
}

// challengeAnswer takes what the library has to say to the authority.
type challengeAnswer struct{ strings.Builder }

// Header returns fields that nobody reads.
func (*challengeAnswer) Header() http.Header { return http.Header{} }

// WriteHeader does nothing.
func (*challengeAnswer) WriteHeader(int) {}

// onEvent is called by the library.
func (m *Manager) onEvent(_ context.Context, event string, data map[string]any) error {
	domain, _ := data["identifier"].(string)
	switch event {
	case "cert_obtained":
		m.setFailed(domain, "")
		m.cfg.Logger.Info("a certificate was obtained", "domain", domain, "renewal", data["renewal"])
	case "cert_failed":
		err, _ := data["error"].(error)
		m.setFailed(domain, fmt.Sprint(err))
		m.cfg.Logger.Error("a certificate could not be obtained, which is tried again: see that the domain leads to this node, and that its ports 80 or 443 arrive at --redirect-listen or --listen",
			"domain", domain, "renewal", data["renewal"], "error", err)
	}
	return nil
}

func (m *Manager) setFailed(domain, why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if why == "" {
		delete(m.failed, domain)
	} else {
		m.failed[domain] = why
	}
}

// Status returns what is known of the certificate of each domain. NotAfter is zero where
// there is none yet.
func (m *Manager) Status() []certs.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]certs.Status, len(m.cfg.Domains))
	for i, d := range m.cfg.Domains {
		all[i] = certs.Status{Names: []string{d}, Source: "acme", Error: m.failed[d]}
		for _, c := range m.cache.AllMatchingCertificates(d) {
			if end := c.Leaf.NotAfter; end.After(all[i].NotAfter) {
				all[i].NotAfter = end
			}
		}
		if all[i].NotAfter.IsZero() && all[i].Error == "" {
			all[i].Error = "not obtained yet"
		}
	}
	return all
}
