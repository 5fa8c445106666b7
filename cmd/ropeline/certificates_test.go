package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node"
)

// authority is an operator's own.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{t: t, dir: t.TempDir(), key: key}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "operator"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	a.write("ca.pem", "CERTIFICATE", der)
	return a
}

func (a *authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// issue returns the flags of a node with a certificate for site and id.
func (a *authority) issue(site, id string) []string {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: id},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		URIs:        []*url.URL{{Scheme: "spiffe", Host: "ropeline", Path: "/" + site + "/" + id}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return []string{
		"--cert-file", a.write(id+".pem", "CERTIFICATE", der), "--key-file", a.write(id+".key", "PRIVATE KEY", secret),
		"--ca-file", filepath.Join(a.dir, "ca.pem"),
	}
}

// TestOperatorCertificates runs a mesh on certificates of an operator's own; a
// node with one of another authority finds no mesh.
func TestOperatorCertificates(t *testing.T) {
	inTestAll(t)
	t.Parallel()
	ours, other := newAuthority(t), newAuthority(t)
	secret := filepath.Join(t.TempDir(), "secret.key")
	keygen(t, secret)
	origin, seed := startOrigin(t), freeAddress(t)
	start := func(a *authority, name, id, mesh string) *running {
		args := append(a.issue("a", id), "--origin", origin, "--secret-file", secret, "--data-dir", t.TempDir(), "--mesh", mesh, "--bootstrap-nodes", "one,two")
		if mesh != seed {
			args = append(args, "--join", seed)
		}
		p := &running{t: t, name: name, site: "a", args: args, served: true, http: freeAddress(t), admin: freeAddress(t)}
		p.start()
		p.endWithTest()
		return p
	}
	first := start(ours, "one", strings.Repeat("1a", 16), seed)
	second := start(ours, "two", strings.Repeat("2b", 16), freeAddress(t))
	stranger := start(other, "three", strings.Repeat("3c", 16), freeAddress(t))
	for _, p := range []*running{first, second} {
		p.await("is ready and sees the other", 20*time.Second, func(s node.Status) bool { return s.Ready && sees(1, "alive")(s) })
	}
	stranger.await("waits for a mesh", 20*time.Second, func(s node.Status) bool {
		return !s.Ready && s.Mesh == "" && len(s.Peers) == 0 && strings.Contains(s.Reason, "waiting for a node of a mesh")
	})
	for _, p := range []*running{first, second} {
		p.await("sees nobody else", time.Second, func(s node.Status) bool { return len(s.Peers) == 1 })
	}
	if s, err := first.status(); err != nil || s.Node != strings.Repeat("1a", 16) {
		t.Errorf("node = %q, error %v; want the id of the certificate", s.Node, err)
	}
}
