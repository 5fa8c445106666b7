package edge

import (
	"bufio"
	"fmt"
	"net"
	"net/netip"

	"github.com/pires/go-proxyproto"
	"github.com/pires/go-proxyproto/tlvparse"
)

// proxyHeader is what a proxy in front of us says of a connection, in version 1
// or 2 of the PROXY protocol:
// https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt
type proxyHeader struct {
	visitor netip.AddrPort // invalid if the connection is the proxy's own
	tls     bool           // the visitor speaks TLS with the proxy
}

// proxyHeaderMin is the room that a reader of PROXY headers needs: one of version
// 1 has to come in one piece. The longest of version 2 is a limit of the library.
const proxyHeaderMin = 256

// readProxyHeader reads a PROXY header from br and nothing behind it.
//
// The commands LOCAL and UNKNOWN, and visitors who came over a Unix socket, leave
// the visitor's address out: the proxy speaks for itself. Of version 2, UNSPEC is
// refused unless it is LOCAL, as are addresses of UDP.
func readProxyHeader(br *bufio.Reader) (proxyHeader, error) {
	h, err := proxyproto.Read(br)
	if err != nil {
		return proxyHeader{}, fmt.Errorf("PROXY header: %w", err)
	}
	if h.Command.IsLocal() {
		return proxyHeader{}, nil
	}
	out := proxyHeader{tls: saysTLS(h)}
	switch a := h.SourceAddr.(type) {
	case *net.TCPAddr:
		ap := a.AddrPort()
		out.visitor = netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
		return out, nil
	case *net.UnixAddr:
		return out, nil
	}
	return proxyHeader{}, fmt.Errorf("PROXY header: %v is not TCP", h.TransportProtocol)
}

// saysTLS reports whether h says that the visitor speaks TLS with the proxy. All
// other things that a header may carry are skipped.
func saysTLS(h *proxyproto.Header) bool {
	tlvs, err := h.TLVs()
	if err != nil {
		return false
	}
	for _, t := range tlvs {
		if t.Type == proxyproto.PP2_TYPE_SSL && len(t.Value) > 0 {
			return t.Value[0]&tlvparse.PP2_BITFIELD_CLIENT_SSL != 0
		}
	}
	return false
}
