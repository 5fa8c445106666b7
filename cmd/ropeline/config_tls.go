package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/ropeline/ropeline/httpfront/acme"
	"github.com/ropeline/ropeline/httpfront/certs"
)

// tlsConfig is what the operator says about TLS with visitors.
type tlsConfig struct {
	CertFiles, KeyFiles []string // one key for each certificate
	RedirectListen      string
	RedirectPort        int // 0: that of --listen
	ACME                acmeConfig
}

// acmeConfig says how certificates are obtained; nothing is without Domains.
type acmeConfig struct {
	Domains   []string
	Email     string
	Directory string
	CAFile    string // of the authorities that Directory's own certificate is of; "": the system's
	Agree     bool
	Storage   string // "": in the data directory
}

// on reports whether TLS is spoken with visitors.
func (c *tlsConfig) on() bool { return len(c.CertFiles) > 0 || len(c.ACME.Domains) > 0 }

// checkTLS refuses what cannot work.
func (c *config) checkTLS() error {
	t := &c.TLS
	a := &t.ACME
	switch {
	case len(t.CertFiles) != len(t.KeyFiles):
		return c.file.at("tls-cert-file", fmt.Errorf("--tls-cert-file names %d files and --tls-key-file %d: give one key for each certificate, in the same order", len(t.CertFiles), len(t.KeyFiles)))
	case t.on() && len(c.Proxy.Origins.Servers) == 0:
		return errors.New("TLS with visitors needs --origin: without it this node serves no visitors")
	case t.RedirectListen != "" && !t.on():
		return c.file.at("redirect-listen", errors.New("--redirect-listen needs TLS to send visitors to: give --tls-cert-file and --tls-key-file, or --acme-domains"))
	case t.RedirectListen != "" && t.RedirectListen == c.Listen:
		return c.file.at("redirect-listen", errors.New("--redirect-listen and --listen are the same: one is for TLS, the other for those without"))
	case len(a.Domains) == 0 && (a.Email != "" || a.CAFile != "" || a.Agree || a.Storage != ""):
		return errors.New("--acme-domains is missing: the names to obtain certificates for, such as --acme-domains tickets.example.com")
	case len(a.Domains) > 0 && !a.Agree:
		return c.file.at("acme-domains", fmt.Errorf("--acme-domains needs --acme-agree: read the terms that %s points at, and give it if you agree", a.Directory))
	case len(a.Domains) > 0 && portOf(c.Listen) == 0:
		return c.file.at("acme-domains", errors.New("--acme-domains needs a --listen with a port that is known, such as :443"))
	}
	return nil
}

// portOf returns the port of an address that was checked; 0 means any.
func portOf(address string) int {
	_, port, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(port)
	return n
}

// files reads the certificates that are in files; nil if there are none.
func (c *tlsConfig) files(to certs.Config) (*certs.Files, error) {
	if len(c.CertFiles) == 0 {
		return nil, nil
	}
	for i := range c.CertFiles {
		to.Pairs = append(to.Pairs, certs.Pair{Cert: c.CertFiles[i], Key: c.KeyFiles[i]})
	}
	f, err := certs.Load(to)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert-file: %w", err)
	}
	return f, nil
}

// roots reads the certificates by which the authority is known.
func (c *acmeConfig) roots() (*x509.CertPool, error) {
	if c.CAFile == "" {
		return nil, nil
	}
	roots, err := certs.Roots(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("--acme-ca-file: %w", err)
	}
	return roots, nil
}

// chooser returns how a visitor is shown a certificate: one that was obtained for the name
// that is asked for, else one from files.
func chooser(files *certs.Files, obtained *acme.Manager) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	switch {
	case obtained == nil:
		return files.GetCertificate
	case files == nil:
		return obtained.GetCertificate
	}
	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if slices.Contains(hello.SupportedProtos, acme.Protocol) {
			return obtained.GetCertificate(hello)
		}
		if obtained.Has(hello.ServerName) {
			if c, err := obtained.GetCertificate(hello); err == nil {
				return c, nil
			}
		}
		return files.GetCertificate(hello)
	}
}
