package transport

import (
	"crypto/tls"
	"errors"
	"slices"
	"time"
)

// alpn keeps other QUIC speakers, and other versions of this protocol, out
// before any of our bytes are exchanged.
const alpn = "ropeline-mesh/2"

var errALPN = errors.New("peer does not speak " + alpn)

// tlsConfig serves both ends. Go's own verification is switched off because
// it is about host names, which peers do not have; verifyPeer takes its place
// and is called on every handshake. There are no session tickets: a peer that
// is no longer trusted must not come back on an old one.
func (i *Identity) tlsConfig() *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{alpn},
		ClientAuth:             tls.RequireAnyClientCert,
		InsecureSkipVerify:     true, //nolint:gosec // see verifyPeer
		SessionTicketsDisabled: true,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			leaf := i.current(time.Now()).leaf
			return &leaf, nil
		},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			leaf := i.current(time.Now()).leaf
			return &leaf, nil
		},
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			// Go lets a client through that names no protocol at all.
			if !slices.Contains(hello.SupportedProtos, alpn) {
				return nil, errALPN
			}
			return nil, nil
		},
		VerifyConnection: i.verifyPeer,
	}
}

func (i *Identity) verifyPeer(cs tls.ConnectionState) error {
	if cs.NegotiatedProtocol != alpn {
		return errALPN
	}
	now := time.Now()
	cur := i.current(now)
	return strangerOf(cur.verify(cs.PeerCertificates, now))
}
