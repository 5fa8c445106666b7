package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// Addresses are those at which a server listens, host:port; "": it does not.
type Addresses struct {
	Visitors, Redirect, Verdicts, Admin string // TCP
	Mesh                                string // UDP
}

// Addresses returns where s listens, from New on.
func (s *Server) Addresses() Addresses {
	a := Addresses{addressOf(s.ports.visitors), addressOf(s.ports.redirect), addressOf(s.ports.verdicts), addressOf(s.ports.admin), ""}
	if s.mesh != nil {
		a.Mesh = s.mesh.Addr().String()
	}
	return a
}

func addressOf(ln net.Listener) string {
	if ln == nil {
		return ""
	}
	return ln.Addr().String()
}

// ports are the listeners of a server; nil: there is none.
type ports struct{ visitors, redirect, verdicts, admin net.Listener }

// openPorts opens those that cfg asks for.
func openPorts(cfg *Config) (p ports, err error) {
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	for _, o := range []struct {
		ln                    *net.Listener
		setting, address, who string
		wanted                bool
	}{
		{&p.visitors, "listen", cfg.Clients.Listen, "visitors", cfg.servesVisitors()},
		{&p.redirect, "redirect-listen", cfg.TLS.RedirectListen, "visitors without TLS", cfg.TLS.RedirectListen != ""},
		{&p.verdicts, "verdict-listen", cfg.Clients.VerdictListen, "proxies", cfg.Clients.VerdictListen != ""},
		{&p.admin, "admin", cfg.Admin.Listen, "operators", true},
	} {
		if !o.wanted {
			continue
		}
		var lc net.ListenConfig
		ln, err := lc.Listen(context.Background(), "tcp", o.address)
		if err != nil {
			return p, withRemedy(fmt.Errorf("listen for %s: %w", o.who, err), o.setting)
		}
		*o.ln = ln
	}
	return p, nil
}

// close closes them; those that were served on are closed already.
func (p *ports) close() {
	for _, ln := range []net.Listener{p.visitors, p.redirect, p.verdicts, p.admin} {
		if ln != nil {
			ln.Close()
		}
	}
}

// withRemedy says what to do where an address of this machine could not be opened, which was
// set by setting.
func withRemedy(err error, setting string) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w; end the program that has it, or choose another address with --%s", err, setting)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w; this machine does not have it: choose another address with --%s", err, setting)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%w; ports below 1024 want CAP_NET_BIND_SERVICE: give the program that, or choose another with --%s", err, setting)
	}
	return err
}
