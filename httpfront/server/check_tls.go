package server

import (
	"crypto/tls"
	"net"
	"slices"
	"strconv"

	"github.com/ropeline/ropeline/httpfront/certs"
	"github.com/ropeline/ropeline/httpfront/upstream"
)

// on reports whether TLS is spoken with visitors.
func (c *TLS) on() bool { return len(c.CertFiles) > 0 || len(c.ACME.Domains) > 0 }

// checkTLS refuses what cannot work.
func (c *Config) checkTLS() error {
	t := &c.TLS
	a := &t.ACME
	switch {
	case len(t.CertFiles) != len(t.KeyFiles):
		return at("tls-cert-file", "--tls-cert-file names %d files and --tls-key-file %d: give one key for each certificate, in the same order", len(t.CertFiles), len(t.KeyFiles))
	case t.on() && !c.servesVisitors():
		return at("origin", "TLS with visitors needs --origin: without it this node serves no visitors")
	case t.RedirectListen != "" && !t.on():
		return at("redirect-listen", "--redirect-listen needs TLS to send visitors to: give --tls-cert-file and --tls-key-file, or --acme-domains")
	case t.RedirectListen != "" && t.RedirectListen == c.Clients.Listen && portOf(c.Clients.Listen) != 0:
		return at("redirect-listen", "--redirect-listen and --listen are the same: one is for TLS, the other for those without")
	case len(a.Domains) == 0 && (a.Email != "" || a.CAFile != "" || a.Agree || a.Storage != ""):
		return at("acme-domains", "--acme-domains is missing: the names to obtain certificates for, such as --acme-domains tickets.example.com")
	case len(a.Domains) > 0 && !a.Agree:
		return at("acme-domains", "--acme-domains needs --acme-agree: read the terms that %s points at, and give it if you agree", a.Directory)
	case len(a.Domains) > 0 && portOf(c.Clients.Listen) == 0:
		return at("acme-domains", "--acme-domains needs a --listen with a port that is known, such as :443")
	}
	return nil
}

// portOf returns the port of an address; 0 means any.
func portOf(address string) int {
	_, port, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(port)
	return n
}

// originTLS returns how origins with https prove who they are; nil is as by default.
func (c *Config) originTLS() (*tls.Config, error) {
	t := &c.Proxy.OriginTLS
	if t.CAFile == "" && t.ServerName == "" {
		return nil, nil
	}
	setting := "origin-ca-file"
	if t.CAFile == "" {
		setting = "origin-server-name"
	}
	https := slices.ContainsFunc(c.Proxy.Origins.Servers, upstream.Origin.TLS)
	for _, r := range c.Proxy.Routes {
		https = https || slices.ContainsFunc(r.Origins.Servers, upstream.Origin.TLS)
	}
	if !https {
		return nil, at(setting, "--%s is about origins that begin with https://, and there is none", setting)
	}
	made := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile == "" {
		return made, nil
	}
	var err error
	if made.RootCAs, err = certs.Roots(t.CAFile); err != nil {
		return nil, at(setting, "--%s: %w", setting, err)
	}
	return made, nil
}
