package main

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node"
)

// ca is a certificate authority that speaks ACME, as a process of its own: Pebble, which
// the authors of Let's Encrypt make for tests.
type ca struct {
	t         *testing.T
	directory string // where its services are listed
	rootFile  string // what its own certificate is of
	roots     *x509.CertPool
}

// startCA starts an authority that looks at domains on these ports of this machine. The
// test is skipped where the programs are not there.
func startCA(t *testing.T, httpAddress, tlsAddress string) *ca {
	t.Helper()
	programs := map[string]string{"pebble": "", "pebble-challtestsrv": ""}
	for name := range programs {
		path, err := filepath.Abs(filepath.Join("../../artifacts", name))
		if err != nil || !isFile(path) {
			if path, err = exec.LookPath(name); err != nil {
				t.Skipf("%s is not installed; \"make acme\" builds it and runs this test", name)
			}
		}
		programs[name] = path
	}
	own := newAuthority(t)
	cert, key := own.issueFor("localhost", 1)
	directory, management, dns := freeAddress(t), freeAddress(t), freeAddress(t)
	settings, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": directory, "managementListenAddress": management, "certificate": cert, "privateKey": key,
		"httpPort": portOf(t, httpAddress), "tlsPort": portOf(t, tlsAddress),
	}})
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(own.dir, "pebble.json")
	if err := os.WriteFile(config, settings, 0o600); err != nil {
		t.Fatal(err)
	}
	runBeside(t, programs["pebble-challtestsrv"], nil, "-dnsserver", dns, "-defaultIPv4", "127.0.0.1", "-defaultIPv6", "",
		"-http01", "", "-https01", "", "-tlsalpn01", "", "-management", freeAddress(t))
	// Without pauses of its own, which are up to five seconds.
	runBeside(t, programs["pebble"], []string{"PEBBLE_VA_NOSLEEP=1"}, "-config", config, "-dnsserver", dns)
	c := &ca{t: t, rootFile: filepath.Join(own.dir, "ca.pem"), roots: x509.NewCertPool()}
	_, port, _ := strings.Cut(directory, ":")
	c.directory = "https://localhost:" + port + "/dir"
	c.awaitRoot(fmt.Sprintf("https://localhost:%d/roots/0", portOf(c.t, management)))
	return c
}

// runBeside runs a program until the test ends.
func runBeside(t *testing.T, program string, env []string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), env...)
	var log lockedBuffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("log of %s:\n%s", filepath.Base(program), log.String())
		}
	})
}

// awaitRoot waits for the authority, and takes the root of what it issues.
func (c *ca) awaitRoot(url string) {
	c.t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig.RootCAs = pool(c.t, c.rootFile)
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport, Timeout: 5 * time.Second}
	var err error
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		var resp *http.Response
		if resp, err = client.Get(url); err != nil {
			continue
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if c.roots.AppendCertsFromPEM(text) {
			return
		}
		err = fmt.Errorf("got %d %q", resp.StatusCode, text)
	}
	c.t.Fatalf("the authority does not answer: %v", err)
}

// flags are those of a node that obtains a certificate for host.
func (c *ca) flags(host string, more ...string) []string {
	return append([]string{
		"--origin", startOrigin(c.t), "--data-dir", c.t.TempDir(), "--acme-domains", host,
		"--acme-directory", c.directory, "--acme-ca-file", c.rootFile, "--acme-agree",
	}, more...)
}

// TestACME obtains certificates from a real authority, by each way of proof, and has
// another node use one of them.
func TestACME(t *testing.T) {
	const host = "tickets.example"
	for _, way := range []string{"http-01", "tls-alpn-01"} {
		t.Run(way, func(t *testing.T) {
			redirect, secure := freeAddress(t), freeAddress(t)
			seen, storage := [2]string{redirect, secure}, t.TempDir()
			// Nobody is where the other way of proof would be looked for.
			if way == "http-01" {
				seen[1] = freeAddress(t)
			} else {
				seen[0] = freeAddress(t)
			}
			authority := startCA(t, seen[0], seen[1])
			p := startNodeAt(t, "one", "a", secure, authority.flags(host, "--redirect-listen", redirect, "--acme-storage", storage)...)
			p.awaitThat("shows a certificate of the authority", 60*time.Second, func() bool {
				_, err := shownAt(secure, host, authority.roots)
				return err == nil
			})
			first, err := shownAt(secure, host, authority.roots)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.certificates(); len(got) != 1 || got[0].Source != "acme" || !got[0].NotAfter.Equal(first.NotAfter) || got[0].Error != "" {
				t.Errorf("status: %+v", got)
			}
			if !strings.Contains(p.Log(), "a certificate was obtained") {
				t.Error("nothing is logged of it")
			}
			if code := p.stop(); code != 0 {
				t.Errorf("exit code %d", code)
			}

			// The domain leads to another node as well, which shares the storage.
			other := freeAddress(t)
			q := startNodeAt(t, "two", "a", other, authority.flags(host, "--acme-storage", storage)...)
			q.await("is ready", 20*time.Second, func(s node.Status) bool { return s.Ready })
			q.awaitThat("shows the same certificate", 20*time.Second, func() bool {
				c, err := shownAt(other, host, authority.roots)
				return err == nil && c.SerialNumber.Cmp(first.SerialNumber) == 0
			})
		})
	}
}

// portOf returns the port of an address.
func portOf(t *testing.T, address string) int {
	t.Helper()
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return int(at.Port())
}
