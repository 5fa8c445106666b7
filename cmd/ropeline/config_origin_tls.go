package main

import (
	"crypto/tls"
	"fmt"
	"slices"

	"github.com/ropeline/ropeline/httpfront/certs"
	"github.com/ropeline/ropeline/httpfront/upstream"
)

// originTLSConfig is how origins with https prove who they are.
type originTLSConfig struct {
	CAFile     string // of the authorities that count; "": the system's
	ServerName string // that their certificates are for; "": that of each address

	made *tls.Config // by check; nil: as by default
}

// checkOriginTLS refuses what cannot work, and reads the file.
func (c *config) checkOriginTLS() error {
	t := &c.Proxy.OriginTLS
	if t.CAFile == "" && t.ServerName == "" {
		return nil
	}
	field := "origin-ca-file"
	if t.CAFile == "" {
		field = "origin-server-name"
	}
	https := slices.ContainsFunc(c.Proxy.Origins.Servers, upstream.Origin.TLS)
	for _, r := range c.Proxy.Routes {
		https = https || slices.ContainsFunc(r.Origins.Servers, upstream.Origin.TLS)
	}
	if !https {
		return c.file.at(field, fmt.Errorf("--%s is about origins that begin with https://, and there is none", field))
	}
	t.made = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile == "" {
		return nil
	}
	var err error
	if t.made.RootCAs, err = certs.Roots(t.CAFile); err != nil {
		return c.file.at(field, fmt.Errorf("--%s: %w", field, err))
	}
	return nil
}
