package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"slices"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/certs"
	"github.com/ropeline/ropeline/httpfront/certs/acme"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/transport"
)

// visitorTLS is how TLS is spoken with visitors. The zero value is not at all.
type visitorTLS struct {
	files    *certs.Files
	obtained *acme.Manager
	redirect httpfront.Redirect
}

// newVisitorTLS reads the certificates. Close is to be called, whatever it returns.
func newVisitorTLS(cfg *Config, at *ports, dir *node.DataDir, log *slog.Logger) (t visitorTLS, err error) {
	if !cfg.TLS.on() {
		return t, nil
	}
	if t.files, err = cfg.TLS.files(certs.Config{Logger: log}); err != nil {
		return t, err
	}
	t.redirect.Listener = at.redirect
	t.redirect.Port = cmp.Or(cfg.TLS.RedirectPort, portOf(at.visitors.Addr().String()))
	if len(cfg.TLS.ACME.Domains) == 0 {
		return t, nil
	}
	// Authorities come as soon as they are asked: the ports are open.
	if t.obtained, err = cfg.newACME(dir, portOf(addressOf(at.redirect)), log); err != nil {
		return t, err
	}
	t.redirect.Challenge = t.obtained.Challenge
	return t, nil
}

// files reads the certificates that are in files; nil if there are none.
func (c *TLS) files(to certs.Config) (*certs.Files, error) {
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

func (c *Config) newACME(dir *node.DataDir, httpPort int, log *slog.Logger) (*acme.Manager, error) {
	a := &c.TLS.ACME
	roots, err := a.roots()
	if err != nil {
		return nil, err
	}
	storage := a.Storage
	if storage == "" {
		if storage, err = dir.Sub("acme"); err != nil {
			return nil, err
		}
	}
	return acme.New(acme.Config{
		Domains: a.Domains, Email: a.Email, Directory: a.Directory, Roots: roots, Storage: storage,
		TLSPort: portOf(c.Clients.Listen), HTTPPort: httpPort, Logger: log,
	})
}

// roots reads the certificates by which the authority is known.
func (c *ACME) roots() (*x509.CertPool, error) {
	if c.CAFile == "" {
		return nil, nil
	}
	roots, err := certs.Roots(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("--acme-ca-file: %w", err)
	}
	return roots, nil
}

// apply has the front speak TLS.
func (t *visitorTLS) apply(to *httpfront.Config) {
	if t.files == nil && t.obtained == nil {
		return
	}
	to.TLS = &tls.Config{GetCertificate: chooser(t.files, t.obtained)}
	if t.obtained != nil {
		to.TLS.NextProtos = []string{acme.Protocol}
	}
	to.Redirect = t.redirect
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

// runs returns what has to run beside the front.
func (t *visitorTLS) runs(front *httpfront.Front, log *slog.Logger) []part {
	var all []part
	if t.files != nil {
		all = append(all, looksAt("certificates", endless(t.files.Run), log))
	}
	if t.obtained != nil {
		all = append(all, endless(t.obtained.Run))
	}
	if t.redirect.Listener != nil {
		all = append(all, front.RunRedirect)
	}
	return all
}

// endless is a part that fails never.
func endless(run func(context.Context)) part {
	return func(ctx context.Context) error {
		run(ctx)
		return nil
	}
}

// status returns what is known of the certificates.
func (t *visitorTLS) status() []certs.Status {
	var all []certs.Status
	if t.obtained != nil {
		all = t.obtained.Status()
	}
	if t.files != nil {
		all = append(all, t.files.Status()...)
	}
	return all
}

// Close gives back what newVisitorTLS took and nobody ran.
func (t *visitorTLS) Close() {
	if t.obtained != nil {
		t.obtained.Close()
	}
}

// meshIdentity is the operator's own certificate for the mesh, from files that are looked
// at while the node runs. The zero value is none.
type meshIdentity struct {
	*transport.Identity
	watch *certs.Watch
}

// identityFromFiles reads the operator's own certificate, if there is one.
func identityFromFiles(cfg *Mesh) (id meshIdentity, err error) {
	if cfg.CertFile == "" {
		return id, nil
	}
	id.watch, err = certs.NewWatch([]string{cfg.CertFile, cfg.KeyFile, cfg.CAFile}, func(pem [][]byte) error {
		if id.Identity != nil {
			return id.Reload(pem[0], pem[1], pem[2])
		}
		made, err := transport.IdentityFromFiles(pem[0], pem[1], pem[2])
		id.Identity = made
		return err
	})
	if err != nil {
		return meshIdentity{}, fmt.Errorf("certificate %s: %w", cfg.CertFile, err)
	}
	return id, nil
}

// nodeID returns the id that the certificate is for; zero: there is none.
func (id *meshIdentity) nodeID() (is crdt.NodeID) {
	if id.Identity != nil {
		is = crdt.NodeID(id.ID())
	}
	return is
}

// IdentityFromFiles reads the node's own certificate; nil if there is none.
func (c *Mesh) IdentityFromFiles() (*transport.Identity, error) {
	id, err := identityFromFiles(c)
	return id.Identity, err
}

// run takes in the certificate again when its files change, until ctx ends.
func (id *meshIdentity) run(ctx context.Context, cfg *Mesh, log *slog.Logger) error {
	id.watch.Run(ctx, certs.Interval, func(_ bool, err error) {
		if err != nil {
			log.Error("the certificate for the mesh was changed to one that cannot be used; the one before stays in use: give one of this node and site, its key, and its authority",
				"cert", cfg.CertFile, "key", cfg.KeyFile, "ca", cfg.CAFile, "error", err)
			return
		}
		log.Info("a new certificate for the mesh is in use", "cert", cfg.CertFile)
	})
	return nil
}
