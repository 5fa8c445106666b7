package httpfront

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net/netip"
	"strings"

	"github.com/ropeline/ropeline/httpfront/edge"
	"github.com/ropeline/ropeline/httpfront/gate/visitor"
	"github.com/ropeline/ropeline/httpfront/http1"
)

// Edge says how client connections are taken, besides Config.TLS. The zero value
// is plain connections, straight from visitors.
type Edge struct {
	// ProxyProtocol are the peers whose connections have to begin with a PROXY
	// header, of version 1 or 2, that says who the visitor is. Connections without
	// one are closed. From other peers none is looked for, so one that is sent is
	// refused for a malformed request.
	ProxyProtocol []netip.Prefix
	// ClientIPHeader is the field in which trusted proxies name the visitor:
	//
	//   - X-Forwarded-For, a list to which each proxy adds at the right; with it,
	//     X-Forwarded-Proto, X-Forwarded-Host and X-Forwarded-Port are believed, and
	//     the host decides about rooms and routes where Host leads to no room by its name;
	//   - Forwarded (RFC 7239), which says all of that; a malformed one is refused;
	//   - any other, such as X-Real-IP, which holds one address, and with which the
	//     same is believed as with X-Forwarded-For.
	//
	// Every trusted proxy has to write it, or visitors do. Default X-Forwarded-For.
	ClientIPHeader string
}

// complete checks e and fills its defaults in.
func (e *Edge) complete() error {
	e.ClientIPHeader = strings.ToLower(cmp.Or(e.ClientIPHeader, visitor.FieldForwardedFor))
	if !http1.IsName(e.ClientIPHeader) {
		return fmt.Errorf("client IP header %q: want the name of a header field", e.ClientIPHeader)
	}
	return nil
}

// edgeConfig says how to take client connections, with TLS if secure is given.
func (f *Front) edgeConfig(secure *tls.Config) edge.Config {
	limits := &f.cfg.Limits
	return edge.Config{
		TLS:     secure,
		Proxied: f.cfg.Edge.ProxyProtocol,
		Trusted: f.cfg.TrustedProxies,
		Limits:  edge.Limits{Conns: limits.Conns, PerAddress: limits.ConnsPerAddress, Handshakes: limits.Handshakes, BodyRate: limits.BodyRate},
		Head:    f.cfg.Timeouts.Head,
		Write:   f.cfg.Timeouts.Write,
		Log:     f.cfg.Logger,

		Refuse:   f.turnedAway,
		Panicked: f.logPanic,
	}
}
