package transport

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	spiffeHost = "ropeline"

	// leafLife is short because nothing revokes a leaf made from the
	// secret; leafSlack lets peers with a clock far behind accept it, so
	// that a wrong clock shows as an offset and not as a split mesh.
	leafLife  = 7 * 24 * time.Hour
	leafSlack = 48 * time.Hour

	maxPeerChain = 4 // certificates; what QUIC carries in a handshake is limited anyway
)

// Identity is what a node proves itself with, and what it accepts as proof
// from others. It is safe for concurrent use, and may be shared by meshes of
// the same node.
type Identity struct {
	id   PeerID
	key  ed25519.PrivateKey // of one that was made from a secret: the node's own, as name is
	name string             // in the leaf
	site string

	resetKey [32]byte // the same after a restart, or peers could not be told of it

	mu   sync.Mutex // guards the following
	cur  material
	make func(now time.Time) (material, error) // nil: certificates come from files, see Reload
}

// material is one leaf and the roots that go with it; never changed once made.
type material struct {
	leaf    tls.Certificate
	roots   *x509.CertPool
	renewAt time.Time // zero: never
	keyed   bool      // the id of a node is that of its key; else whoever makes certificates chooses it
}

// IDOf returns the id of the node with a key, which is any bytes that nobody else has. It is a hash of the public key that
// the node's certificates are for, so nobody goes by it without the key, though everybody who has the secret of
// the mesh can make certificates.
func IDOf(key []byte) PeerID { return idOf(nodeKey(key).Public().(ed25519.PublicKey)) }

func idOf(public ed25519.PublicKey) PeerID {
	sum := sha256.Sum256(public)
	return PeerID(sum[:len(PeerID{})])
}

func nodeKey(key []byte) ed25519.PrivateKey {
	seed := sha256.Sum256(append([]byte("ropeline node\x00"), key...))
	return ed25519.NewKeyFromSeed(seed[:])
}

// IdentityFromSecret makes the identity of the node with a key (see IDOf) in the mesh with a secret. The
// certificate authority is a function of the secret, so every node has the
// same one and none has to be asked. The leaf is valid for a week around now
// and is renewed by itself half-way, for as long as the process runs.
func IdentityFromSecret(secret Secret, key []byte, name, site string, now time.Time) (*Identity, error) {
	switch {
	case secret.IsZero():
		return nil, errors.New("identity: the secret is empty")
	case len(key) == 0:
		return nil, errors.New("identity: the node has no key")
	}
	id := IDOf(key)
	if err := checkLabel("site", site, maxSiteLen); err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	if name == "" {
		name = id.Short()
	}
	if err := checkLabel("name", name, maxNameLen); err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	i := &Identity{id: id, key: nodeKey(key), name: name, site: site}
	i.resetKey = sha256.Sum256(append([]byte("ropeline mesh reset\x00"), key...))
	return i, i.Use([]Secret{secret}, now)
}

// Use has an identity that was made from a secret go by others from now on: its leaf
// comes from the first, and peers may have theirs from any. Connections that are open
// stay.
func (i *Identity) Use(secrets []Secret, now time.Time) error {
	switch {
	case len(secrets) == 0:
		return errors.New("identity: no secret is given")
	case i.key == nil:
		return errors.New("identity: made from files, a secret cannot replace it")
	}
	roots := x509.NewCertPool()
	var signer *x509.Certificate
	var signerKey ed25519.PrivateKey
	for n, s := range secrets {
		ca, key, err := clusterCA(s)
		if err != nil {
			return err
		}
		if roots.AddCert(ca); n == 0 {
			signer, signerKey = ca, key
		}
	}
	remake := func(now time.Time) (material, error) {
		leaf, err := newLeaf(signer, signerKey, i.key, i.name, i.site, now)
		if err != nil {
			return material{}, err
		}
		return material{leaf: leaf, roots: roots, renewAt: now.Add(leafLife / 2), keyed: true}, nil
	}
	cur, err := remake(now)
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.make, i.cur = remake, cur
	return nil
}

// clusterCA makes the authority of a secret: an Ed25519 key from the secret
// and, since that kind of signature has no randomness, the same certificate
// byte for byte on every node. It does not expire; the secret is what is
// replaced.
func clusterCA(secret Secret) (*x509.Certificate, ed25519.PrivateKey, error) {
	key := ed25519.NewKeyFromSeed(secret.Derive("mesh ca key", ed25519.SeedSize))
	tmpl := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "ropeline mesh"},
		NotBefore:             time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:              time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		IsCA:                  true,
		MaxPathLenZero:        true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		return nil, nil, fmt.Errorf("identity: make authority: %w", err)
	}
	ca, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("identity: make authority: %w", err)
	}
	return ca, key, nil
}

func newLeaf(ca *x509.Certificate, caKey, key ed25519.PrivateKey, name, site string, now time.Time) (tls.Certificate, error) {
	public := key.Public().(ed25519.PublicKey)
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("identity: make leaf serial: %w", err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		URIs:         []*url.URL{nodeURI(idOf(public), site)},
		NotBefore:    now.Add(-leafSlack),
		NotAfter:     now.Add(leafLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, ca, public, caKey)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("identity: make leaf: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("identity: make leaf: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}

// IdentityFromFiles makes an identity from the PEM contents of an operator's
// files: the node's certificate with any intermediates behind it, its key,
// and the authorities that peers are checked against. Node id and site are
// read from the certificate's one URI of the form
// spiffe://ropeline/SITE/NODE-ID. The certificate must serve both as server
// and as client.
func IdentityFromFiles(certPEM, keyPEM, caPEM []byte) (*Identity, error) {
	mat, err := materialFromPEM(certPEM, keyPEM, caPEM)
	if err != nil {
		return nil, err
	}
	id, site, err := nodeOf(mat.leaf.Leaf)
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	i := &Identity{id: id, site: site, cur: mat}
	der, err := x509.MarshalPKCS8PrivateKey(mat.leaf.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("identity: key: %w", err)
	}
	reset, err := hkdf.Key(sha256.New, der, nil, "ropeline mesh reset "+id.String(), len(i.resetKey))
	if err != nil {
		return nil, fmt.Errorf("identity: derive reset key: %w", err)
	}
	copy(i.resetKey[:], reset)
	return i, nil
}

// Reload replaces the certificate, key and authorities of an identity that
// came from files, for connections made from now on. The new certificate
// must be for the same node and site.
func (i *Identity) Reload(certPEM, keyPEM, caPEM []byte) error {
	mat, err := materialFromPEM(certPEM, keyPEM, caPEM)
	if err != nil {
		return err
	}
	id, site, err := nodeOf(mat.leaf.Leaf)
	if err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	if id != i.id || site != i.site {
		return fmt.Errorf("identity: the new certificate is for node %s in site %q, not for node %s in site %q", id, site, i.id, i.site)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.make != nil {
		return errors.New("identity: made from a secret, files cannot replace it")
	}
	i.cur = mat
	return nil
}

func materialFromPEM(certPEM, keyPEM, caPEM []byte) (material, error) {
	leaf, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return material{}, fmt.Errorf("identity: certificate and key: %w", err)
	}
	if leaf.Leaf == nil {
		if leaf.Leaf, err = x509.ParseCertificate(leaf.Certificate[0]); err != nil {
			return material{}, fmt.Errorf("identity: certificate: %w", err)
		}
	}
	if len(leaf.Certificate) > maxPeerChain {
		return material{}, fmt.Errorf("identity: chain of %d certificates, at most %d fit into a handshake", len(leaf.Certificate), maxPeerChain)
	}
	roots, err := rootsFromPEM(caPEM)
	if err != nil {
		return material{}, err
	}
	var chain []*x509.Certificate
	for _, der := range leaf.Certificate {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return material{}, fmt.Errorf("identity: certificate: %w", err)
		}
		chain = append(chain, c)
	}
	// The date is left to each handshake: a process that starts with an
	// expired file can still be helped by Reload.
	at := time.Now()
	if at.Before(leaf.Leaf.NotBefore) || at.After(leaf.Leaf.NotAfter) {
		at = leaf.Leaf.NotBefore.Add(time.Second)
	}
	if err := verifyChain(chain, roots, at); err != nil {
		return material{}, fmt.Errorf("identity: own certificate: %w", err)
	}
	return material{leaf: leaf, roots: roots}, nil
}

func rootsFromPEM(caPEM []byte) (*x509.CertPool, error) {
	roots, n := x509.NewCertPool(), 0
	for rest := caPEM; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("identity: authority: %w", err)
		}
		if !c.IsCA {
			return nil, fmt.Errorf("identity: authority %q is not a CA certificate", c.Subject)
		}
		roots.AddCert(c)
		n++
	}
	if n == 0 {
		return nil, errors.New("identity: no authority found: want PEM with at least one CERTIFICATE")
	}
	return roots, nil
}

// ID returns the node that the certificate names.
func (i *Identity) ID() PeerID { return i.id }

// Site returns the site that the certificate names.
func (i *Identity) Site() string { return i.site }

// current returns the leaf and roots to use now, and renews them when due. A
// renewal that fails leaves the old leaf in use: it is still valid for half
// of its life.
func (i *Identity) current(now time.Time) material {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.make != nil && !now.Before(i.cur.renewAt) {
		if mat, err := i.make(now); err == nil {
			i.cur = mat
		}
	}
	return i.cur
}

// nodeURI is how a certificate names a node.
func nodeURI(id PeerID, site string) *url.URL {
	return &url.URL{Scheme: "spiffe", Host: spiffeHost, Path: "/" + site + "/" + id.String()}
}

// nodeOf reads the node out of a certificate. There must be exactly one URI:
// with two, reader and issuer might have different ones in mind.
func nodeOf(c *x509.Certificate) (PeerID, string, error) {
	if c == nil || len(c.URIs) != 1 {
		return PeerID{}, "", errors.New("certificate does not have exactly one URI name")
	}
	u := c.URIs[0]
	site, hexID, ok := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	if !ok {
		return PeerID{}, "", fmt.Errorf("certificate URI %q: want spiffe://%s/SITE/NODE-ID", u, spiffeHost)
	}
	if err := checkLabel("site", site, maxSiteLen); err != nil {
		return PeerID{}, "", fmt.Errorf("certificate URI %q: %w", u, err)
	}
	id, err := ParsePeerID(hexID)
	if err != nil {
		return PeerID{}, "", fmt.Errorf("certificate URI %q: %w", u, err)
	}
	// One text for one node: user, port, query, upper case are refused.
	if u.String() != nodeURI(id, site).String() {
		return PeerID{}, "", fmt.Errorf("certificate URI %q: want %q", u, nodeURI(id, site))
	}
	return id, site, nil
}

// verify checks a peer's certificates.
func (m *material) verify(chain []*x509.Certificate, now time.Time) error {
	if err := verifyChain(chain, m.roots, now); err != nil || !m.keyed {
		return err
	}
	public, ok := chain[0].PublicKey.(ed25519.PublicKey)
	if id, _, _ := nodeOf(chain[0]); !ok || id != idOf(public) {
		return fmt.Errorf("certificate for node %s, whose key it has not", id)
	}
	return nil
}

// verifyChain checks a peer's certificates against roots. Names of hosts play
// no part: peers are who their URI says, wherever they are.
func verifyChain(chain []*x509.Certificate, roots *x509.CertPool, now time.Time) error {
	if len(chain) == 0 {
		return errors.New("no certificate")
	}
	if len(chain) > maxPeerChain {
		return fmt.Errorf("chain of %d certificates, at most %d are looked at", len(chain), maxPeerChain)
	}
	inter := x509.NewCertPool()
	for _, c := range chain[1:] {
		inter.AddCert(c)
	}
	// Every node both dials and listens, so both uses are asked for.
	for _, use := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		_, err := chain[0].Verify(x509.VerifyOptions{
			Roots: roots, Intermediates: inter, CurrentTime: now,
			KeyUsages: []x509.ExtKeyUsage{use},
		})
		if err != nil {
			return err
		}
	}
	_, _, err := nodeOf(chain[0])
	return err
}
