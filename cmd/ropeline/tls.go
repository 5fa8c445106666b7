package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"

	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/acme"
	"github.com/ropeline/ropeline/httpfront/certs"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/transport"
)

// visitorTLS is how TLS is spoken with visitors. The zero value is not at all.
type visitorTLS struct {
	files    *certs.Files
	obtained *acme.Manager
	listener net.Listener // for TLS; nil if the front opens its own
	redirect httpfront.Redirect
}

// newVisitorTLS reads the certificates. Close is to be called, whatever it returns.
func newVisitorTLS(ctx context.Context, cfg config, dir *node.DataDir, log *slog.Logger) (t visitorTLS, err error) {
	if !cfg.TLS.on() {
		return t, nil
	}
	defer func() {
		if err != nil {
			t.Close()
		}
	}()
	if t.files, err = cfg.TLS.files(certs.Config{Logger: log}); err != nil {
		return t, err
	}
	t.redirect.Listen = cfg.TLS.RedirectListen
	t.redirect.Port = cmp.Or(cfg.TLS.RedirectPort, portOf(cfg.Listen))
	if len(cfg.TLS.ACME.Domains) == 0 {
		return t, nil
	}
	// Authorities come as soon as they are asked, so the ports are open before.
	if t.listener, err = open(ctx, "listen", cfg.Listen); err != nil {
		return t, err
	}
	httpPort := 0
	if cfg.TLS.RedirectListen != "" {
		if t.redirect.Listener, err = open(ctx, "redirect-listen", cfg.TLS.RedirectListen); err != nil {
			return t, err
		}
		httpPort = portOf(t.redirect.Listener.Addr().String())
	}
	if t.obtained, err = cfg.newACME(dir, httpPort, log); err != nil {
		return t, err
	}
	t.redirect.Challenge = t.obtained.Challenge
	return t, nil
}

func open(ctx context.Context, setting, address string) (net.Listener, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, withRemedy(fmt.Errorf("listen for visitors: %w", err), setting)
	}
	return ln, nil
}

func (c *config) newACME(dir *node.DataDir, httpPort int, log *slog.Logger) (*acme.Manager, error) {
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
		TLSPort: portOf(c.Listen), HTTPPort: httpPort, Logger: log,
	})
}

// apply has the front speak TLS.
func (t *visitorTLS) apply(to httpfront.Config) httpfront.Config {
	if t.files == nil && t.obtained == nil {
		return to
	}
	to.TLS = &tls.Config{GetCertificate: chooser(t.files, t.obtained)}
	if t.obtained != nil {
		to.TLS.NextProtos = []string{acme.Protocol}
	}
	to.Listener, to.Redirect = t.listener, t.redirect
	return to
}

// runs returns what has to run beside the front.
func (t *visitorTLS) runs(front *httpfront.Front) []func(context.Context) error {
	var all []func(context.Context) error
	endless := func(run func(context.Context)) {
		all = append(all, func(ctx context.Context) error {
			run(ctx)
			return nil
		})
	}
	if t.files != nil {
		endless(t.files.Run)
	}
	if t.obtained != nil {
		endless(t.obtained.Run)
	}
	if t.redirect.Listen != "" {
		all = append(all, front.RunRedirect)
	}
	return all
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
	for _, ln := range []net.Listener{t.listener, t.redirect.Listener} {
		if ln != nil {
			ln.Close() // a second time, if it was served on
		}
	}
}

// meshIdentity is the operator's own certificate for the mesh, from files that are looked
// at while the node runs. The zero value is none.
type meshIdentity struct {
	*transport.Identity
	watch *certs.Watch
}

// identityFromFiles reads the operator's own certificate, if there is one.
func identityFromFiles(cfg config) (id meshIdentity, err error) {
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

// run takes in the certificate anew when its files change, until ctx ends.
func (id *meshIdentity) run(ctx context.Context, cfg config, log *slog.Logger) error {
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
