package main

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOriginsWithCertificatesOfTheirOwn starts nodes before a site with a certificate of
// a private authority for example.com, given by its address.
func TestOriginsWithCertificatesOfTheirOwn(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	site := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.TLS.ServerName
		io.WriteString(w, "the site")
	}))
	defer site.Close()
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: site.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		code int
	}{
		"by the system's roots":   {nil, 502},
		"of the authority":        {[]string{"--origin-ca-file", ca, "--origin-server-name", "Example.com."}, 200},
		"of the authority only":   {[]string{"--origin-ca-file", ca}, 200}, // the certificate is for 127.0.0.1 as well
		"for a name that is none": {[]string{"--origin-ca-file", ca, "--origin-server-name", "other.example"}, 502},
	} {
		t.Run(name, func(t *testing.T) {
			p := serveNode(t, "a", "one", append(c.args, "--origin", site.URL, "--data-dir", t.TempDir())...)
			resp, body := visit(t, "http://"+p.http+"/")
			if resp.StatusCode != c.code || c.code == 200 && body != "the site" {
				t.Fatalf("got %d %.300q, want %d", resp.StatusCode, body, c.code)
			}
			if c.code != 200 {
				return
			}
			want := ""
			if len(c.args) > 2 {
				want = "example.com"
			}
			if got := <-asked; got != want {
				t.Errorf("the site was asked for %q, want %q", got, want)
			}
		})
	}
}

func TestCertificatesOfOriginsAreChecked(t *testing.T) {
	dir := t.TempDir()
	empty, key := filepath.Join(dir, "empty.pem"), filepath.Join(dir, "key.pem")
	for file, text := range map[string]string{empty: "", key: "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]string{
		"origin: https://a\norigin-ca-file: " + filepath.Join(dir, "none.pem"): "ropeline.yaml:2:1: origin-ca-file: --origin-ca-file: open ",
		"origin: https://a\norigin-ca-file: " + empty:                          "empty.pem has no certificate",
		"origin: https://a\norigin-ca-file: " + key:                            "key.pem has no certificate",
		"origin: http://a\norigin-ca-file: " + empty:                           "origins that begin with https://, and there is none",
		"origin: http://a\norigin-server-name: shop.example":                   "ropeline.yaml:2:1: origin-server-name:",
		"origin: https://a\norigin-server-name: shop.example:443":              "without scheme, port",
	} {
		cfg, err := parse(t, text)
		if err == nil {
			err = cfg.check()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want it to contain %q", text, err, want)
		}
	}
	cfg, err := parse(t, "origin: http://a\norigin-server-name: shop.example\nrooms:\n  - {room: a, origins: [https://b]}")
	if err == nil {
		err = cfg.check()
	}
	if err != nil || cfg.Proxy.OriginTLS.ServerName != "shop.example" {
		t.Errorf("of a room: got %+v, %v", cfg.Proxy.OriginTLS, err)
	}
}
