package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/ropeline/ropeline/httpfront/certs"
	"github.com/ropeline/ropeline/httpfront/operator/adminserver"
	"github.com/ropeline/ropeline/httpfront/operator/dashboard"
)

// operators is the listener for operators, with the files that it goes by.
type operators struct {
	cfg    *Admin
	log    *slog.Logger
	tokens *adminserver.Tokens
	watch  *certs.Watch // of the tokens; nil: they are in no file
	files  *certs.Files // nil: without TLS

	dashboard *dashboard.Handler
	server    *adminserver.Server
}

// newOperators reads the files. There are conns connections at one time. plain answers at the paths that adminPaths has.
func newOperators(cfg *Admin, ln net.Listener, conns int, source dashboard.Source, plain http.Handler, more []adminserver.Part, stopping <-chan struct{}, log *slog.Logger) (*operators, error) {
	o := &operators{cfg: cfg, log: log}
	if err := o.readTokens(); err != nil {
		return nil, err
	}
	sc := adminserver.Config{Listener: ln, Conns: conns, Tokens: o.tokens, Stopping: stopping, Logger: log}
	if cfg.CertFile != "" {
		var err error
		if o.files, err = certs.Load(certs.Config{Pairs: []certs.Pair{{Cert: cfg.CertFile, Key: cfg.KeyFile}}, Logger: log}); err != nil {
			return nil, fmt.Errorf("--admin-tls-cert-file: %w", err)
		}
		sc.TLS = &tls.Config{GetCertificate: o.files.GetCertificate, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	}
	var err error
	if o.dashboard, err = dashboard.New(dashboard.Config{Source: source, Authorize: o.mayLook, Logger: log}); err != nil {
		return nil, err
	}
	sc.Health = adminserver.NewPaths(plain, healthPaths)
	sc.Parts = append([]adminserver.Part{adminserver.NewPaths(plain, adminPaths), o.dashboard}, more...)
	if o.server, err = adminserver.New(sc); err != nil {
		return nil, err
	}
	return o, nil
}

// adminPaths are what the node tells of itself alone.
var adminPaths = map[string]adminserver.Scope{
	"/status":  adminserver.Read,
	"/preview": adminserver.Read,
}

// healthPaths are what balancers and supervisors ask.
var healthPaths = map[string]adminserver.Scope{
	"/healthz": adminserver.Nothing,
	"/readyz":  adminserver.Nothing,
}

func (o *operators) mayLook(token string) bool {
	return o.server.Scope(token) >= adminserver.Read
}

// tokenVariable is where operators give Admin.Token; the program reads it.
const tokenVariable = "ROPELINE_ADMIN_TOKEN"

// readTokens reads the tokens; their file is followed from then on.
func (o *operators) readTokens() (err error) {
	if o.cfg.TokenFile == "" {
		return o.useTokens(nil)
	}
	o.watch, err = certs.NewWatch([]string{o.cfg.TokenFile}, o.useTokens)
	return err
}

// useTokens has the tokens be those of the file, if there is one, and the one that stands beside it.
func (o *operators) useTokens(file [][]byte) (err error) {
	t := new(adminserver.Tokens)
	for _, text := range file {
		if t, err = adminserver.ParseTokens(string(text)); err != nil {
			return fmt.Errorf("--admin-token-file %s: %w", o.cfg.TokenFile, err)
		}
	}
	if o.cfg.Token != "" {
		if err := t.Add(o.cfg.Token, adminserver.Write); err != nil {
			return fmt.Errorf("%s: %w", tokenVariable, err)
		}
	}
	if o.tokens = t; o.server != nil {
		return o.server.SetTokens(t)
	}
	return nil
}

// run serves operators until ctx ends, and follows the files.
func (o *operators) run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(func() { _ = o.dashboard.Run(ctx) }) // it fails never
	if o.files != nil {
		wg.Go(func() { _ = looksAt(o.cfg.CertFile, endless(o.files.Run), o.log)(ctx) })
	}
	if o.watch != nil {
		wg.Go(func() { _ = looksAt(o.cfg.TokenFile, endless(o.followTokens), o.log)(ctx) })
	}
	return o.server.Run(ctx)
}

// followTokens reads the tokens again whenever their file has changed.
func (o *operators) followTokens(ctx context.Context) {
	o.watch.Run(ctx, certs.Interval, func(_ bool, err error) {
		if err != nil {
			o.log.Error("the tokens of operators stay as they were: their file cannot be used", "error", err)
			return
		}
		o.log.Info("tokens of operators read again", "file", o.cfg.TokenFile)
	})
}
