package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront/certs"
)

// issueFor writes a certificate of a for a host, and its key, over those that have the
// same names.
func (a *authority) issueFor(host string, serial int64) (cert, key string) {
	a.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(serial), DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, a.cert, private.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.write(host+".crt", "CERTIFICATE", der), a.write(host+".key", "PRIVATE KEY", secret)
}

// pool returns the certificates of a PEM file.
func pool(t *testing.T, path string) *x509.CertPool {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		t.Fatalf("no certificates in %q", text)
	}
	return roots
}

// shownAt returns the certificate that a node shows to a browser that trusts roots.
func shownAt(address, host string, roots *x509.CertPool) (*x509.Certificate, error) {
	c, err := tls.DialWithDialer(&net.Dialer{Timeout: 5 * time.Second}, "tcp", address, &tls.Config{ServerName: host, RootCAs: roots})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0], nil
}

// certificates returns what the status of a node says of its certificates.
func (p *running) certificates() (all []certs.Status) {
	p.t.Helper()
	resp, err := http.Get("http://" + p.admin + "/status")
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	var s struct {
		Certificates []certs.Status `json:"certificates"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		p.t.Fatal(err)
	}
	return s.Certificates
}

// awaitThat polls until ok returns true.
func (p *running) awaitThat(what string, limit time.Duration, ok func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(limit); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("%s: not so within %v: %s", p.name, limit, what)
		}
	}
}

// clientOf returns a visitor of a node, wherever it is, that has a certificate for a host, which follows no redirects.
func clientOf(t *testing.T, roots *x509.CertPool, host string) *http.Client {
	c := &http.Client{
		Timeout:       10 * time.Second,
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: host}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// TestVisitorsSpeakTLS starts a node with certificates from files, for visitors and for
// the mesh, and gives it new ones while it runs.
func TestVisitorsSpeakTLS(t *testing.T) {
	inTestAll(t)
	t.Parallel()
	ca := newAuthority(t)
	roots := pool(t, filepath.Join(ca.dir, "ca.pem"))
	const host, id = "tickets.example", "1a"
	cert, key := ca.issueFor(host, 1001)
	meshID := strings.Repeat(id, 16)
	secret := filepath.Join(t.TempDir(), "secret.key")
	keygen(t, secret)
	redirect := freeAddress(t)
	args := append(ca.issue("a", meshID), "--origin", startOrigin(t), "--data-dir", t.TempDir(), "--secret-file", secret,
		"--mesh", freeAddress(t), "--bootstrap-nodes", "one", "--tls-cert-file", cert, "--tls-key-file", key, "--redirect-listen", redirect)
	p := serveNode(t, "one", "a", args...)

	_, port, _ := net.SplitHostPort(p.http)
	client := clientOf(t, roots, host)
	req, _ := http.NewRequest("GET", "http://"+redirect+"/a?b=c", nil)
	req.Host = host
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if want := "https://" + host + ":" + port + "/a?b=c"; resp.StatusCode != 308 || resp.Header.Get("Location") != want {
		t.Errorf("without TLS: got %d to %q, want 308 to %q", resp.StatusCode, resp.Header.Get("Location"), want)
	}
	resp, err = client.Get("https://" + p.http + "/")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != 200 || !strings.Contains(string(body), "The shop") || !strings.Contains(strings.Join(resp.Header["Set-Cookie"], ""), "Secure") {
		t.Errorf("with TLS: got %d, %q, %q", resp.StatusCode, resp.Header["Set-Cookie"], body)
	}
	if got := p.certificates(); len(got) != 1 || got[0].Source != cert || got[0].Names[0] != host || got[0].NotAfter.IsZero() || got[0].Error != "" {
		t.Errorf("status: %+v", got)
	}

	ca.issueFor(host, 1002)
	ca.issue("a", meshID)
	p.awaitThat("shows the new certificate", 60*time.Second, func() bool {
		c, err := shownAt(p.http, host, roots)
		return err == nil && c.SerialNumber.Int64() == 1002
	})
	p.awaitThat("takes in the certificate for the mesh", 60*time.Second, func() bool {
		return strings.Contains(p.Log(), "a new certificate for the mesh is in use")
	})
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestStartRefusesCertificatesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	p := startNode(t, "one", "a", "--origin", "http://127.0.0.1:1", "--data-dir", t.TempDir(),
		"--tls-cert-file", "/nowhere/a.crt", "--tls-key-file", "/nowhere/a.key")
	<-p.Ended()
	if code := p.Code(); code == 0 || !strings.Contains(p.Log(), "/nowhere/a.crt") {
		t.Errorf("exit code %d, log:\n%s", code, p.Log())
	}
}
