package server

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node/bootstrap"
	"github.com/ropeline/ropeline/node/settings"
)

// SettingError says what is wrong with a setting, or with how it fits together with others,
// and what to do. Its words are for operators, who know settings by the names of flags.
type SettingError struct {
	Setting string // its name in a configuration file, such as "listen" or "rooms[1].origins[0]"
	Err     error
}

// Error returns what is wrong. It names the setting.
func (e *SettingError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *SettingError) Unwrap() error { return e.Err }

// at is an error about a setting.
func at(setting, format string, args ...any) error {
	return &SettingError{setting, fmt.Errorf(format, args...)}
}

// Check refuses combinations of settings that cannot work, all at once; each part is a
// *SettingError. It looks at files that are named, and opens nothing. Rooms are left to New.
func (c *Config) Check() error {
	return errors.Join(c.checkProxy(), c.checkAdmin(), c.checkTLS(), c.checkPeers(), c.checkMesh(), c.checkRights(), c.checkSignals())
}

// checkProxy refuses what fits together in no way.
func (c *Config) checkProxy() error {
	p := &c.Proxy
	if !c.servesVisitors() && c.Clients.VerdictListen == "" {
		return at("origin", "--origin is missing: the address of the site to protect, such as --origin http://127.0.0.1:3000")
	}
	_, err := c.originTLS()
	errs := []error{err, c.checkOrigins("origin", p.Origins)}
	for i, r := range p.Routes {
		errs = append(errs, c.checkOrigins(fmt.Sprintf("rooms[%d].origins", i), r.Origins))
	}
	if most := p.Passive.EjectionMax; most != 0 && p.Passive.Ejection > most {
		errs = append(errs, at("eject-time", "--eject-time is %s: at most --eject-time-max, %s", settings.Span(p.Passive.Ejection), settings.Span(most)))
	}
	return errors.Join(errs...)
}

func (c *Config) checkOrigins(setting string, o httpfront.Origins) error {
	seen := map[string]bool{}
	for i, s := range o.Servers {
		this := fmt.Sprintf("%s[%d]", setting, i)
		if seen[s.String()] {
			return at(this, "%s stands there twice; give it a weight instead", s)
		}
		seen[s.String()] = true
		if err := s.CheckAddress(c.Proxy.AllowAddresses); err != nil {
			return at(this, "%w with --allow-origin-addresses", err)
		}
	}
	if len(o.Servers) > upstream.OriginsMax {
		return at(setting, "%d origins are given: at most %d are allowed", len(o.Servers), upstream.OriginsMax)
	}
	return nil
}

// servesVisitors reports whether there is a site to send visitors to.
func (c *Config) servesVisitors() bool { return len(c.Proxy.Origins.Servers) > 0 }

// checkAdmin refuses to let everybody in.
func (c *Config) checkAdmin() error {
	a := &c.Admin
	if (a.CertFile == "") != (a.KeyFile == "") {
		return at("admin-tls-cert-file", "--admin-tls-cert-file and --admin-tls-key-file belong together: give both or neither")
	}
	host, _, err := net.SplitHostPort(a.Listen)
	ip := net.ParseIP(host)
	if err != nil || host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil // an address that is none is refused when it is opened
	}
	switch {
	case a.TokenFile == "" && a.Token == "":
		return at("admin", "--admin %s is not on loopback, so it needs tokens: name them with --admin-token-file or in %s, or bind 127.0.0.1", a.Listen, tokenVariable)
	case a.CertFile == "":
		return at("admin", "--admin %s is not on loopback, so it needs TLS, or tokens could be read on the way: give --admin-tls-cert-file and --admin-tls-key-file, or bind 127.0.0.1", a.Listen)
	}
	return nil
}

// checkPeers is about proxies in front.
func (c *Config) checkPeers() error {
	var errs []error
	if c.Clients.VerdictListen != "" && len(c.Clients.TrustedProxies) == 0 {
		errs = append(errs, at("verdict-listen", "--verdict-listen needs --trusted-proxies: the addresses of the proxies that may ask, such as --trusted-proxies 127.0.0.1"))
	}
	if c.Front.CountryHeader != "" && len(c.Clients.TrustedProxies) == 0 {
		errs = append(errs, at("country-header", "--country-header needs --trusted-proxies: the addresses of the proxies that write it, such as --trusted-proxies 10.0.0.0/8; nobody else is believed"))
	}
	if c.Front.VerdictCountryHeader != "" && c.Clients.VerdictListen == "" {
		errs = append(errs, at("verdict-country-header", "--verdict-country-header needs --verdict-listen: it is about proxies that ask for verdicts; for those that this node is behind there is --country-header"))
	}
	if is := c.Proof.Issuer; c.Proof.On && is != "" && strings.TrimSpace(is) == "" {
		errs = append(errs, at("proof-issuer", "--proof-issuer %q is not allowed: a name or an address, which the site is told too", is))
	}
	return errors.Join(errs...)
}

// checkMesh is about other nodes.
func (c *Config) checkMesh() error {
	var errs []error
	m := &c.Mesh
	if len(m.Join) > 0 && m.Listen == "" {
		errs = append(errs, at("join", "--join needs --mesh: the UDP address on which other nodes reach this one, such as --mesh :7946"))
	}
	if m.Listen != "" && m.SecretFile == "" {
		errs = append(errs, at("mesh", "--mesh needs --secret-file: make one with \"ropeline keygen --out secret.key\" and give the same file to every node"))
	}
	var given []string
	for name, value := range map[string]string{"cert-file": m.CertFile, "key-file": m.KeyFile, "ca-file": m.CAFile} {
		if value != "" {
			given = append(given, name)
		}
	}
	if len(given) == 1 || len(given) == 2 {
		errs = append(errs, at(slices.Min(given), "--cert-file, --key-file and --ca-file go together: give all three or none"))
	}
	return errors.Join(errs...)
}

// checkRights refuses what would leave a mesh without capacity, or names one where there is
// none.
func (c *Config) checkRights() error {
	r := &c.Rights
	if err := bootstrap.CheckNames(r.Bootstrap); err != nil {
		return at("bootstrap-nodes", "--bootstrap-nodes: %w", err)
	}
	if c.Mesh.Listen != "" {
		return nil
	}
	switch {
	case r.OnStop == StopLeaves:
		return at("on-stop", "--on-stop leave needs --mesh: a single node has nobody to leave its rights to")
	case len(r.DeclareDead) > 0:
		return at("declare-dead", "--declare-dead needs --mesh: a single node knows of no others")
	case len(r.Bootstrap) > 1 || len(r.Bootstrap) == 1 && r.Bootstrap[0] != c.Name:
		return at("bootstrap-nodes", "--bootstrap-nodes needs --mesh, the UDP address on which these nodes reach this one: a node without it bootstraps alone")
	}
	return nil
}

// checkSignals refuses what nothing would come of.
func (c *Config) checkSignals() error {
	if c.Signals.AccessLog != "" && !c.servesVisitors() {
		return at("access-log", "--access-log needs --origin: it is about requests that this node proxies; those that other proxies ask about are in the access logs of these")
	}
	return nil
}
