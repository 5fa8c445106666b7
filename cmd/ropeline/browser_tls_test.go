package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/chromedp"

	"github.com/ropeline/ropeline/httpfront/browsertest"
	"github.com/ropeline/ropeline/node"
)

// ticketShop is a node with one place, at a host of its own, with TLS.
type ticketShop struct {
	*running
	ca     *authority
	url    string
	keys   []string // hashes of the keys that browsers shall trust
	holder *http.Client
}

const (
	shopHost   = "tickets.example"
	shopCookie = "__Host-ropeline"
	inShop     = "Welcome to the shop"

	patience = 2 * time.Minute // with a browser on a busy machine
)

// startTicketShop starts one with more lines in its file, and takes its only place.
func startTicketShop(t *testing.T, config string) *ticketShop {
	t.Helper()
	s := &ticketShop{ca: newAuthority(t)}
	cert, key := s.ca.issueFor(shopHost, 1001)
	s.trust(cert)
	path := filepath.Join(t.TempDir(), "ropeline.yaml")
	config = fmt.Sprintf(`
origin: %s
tls-cert-file: %s
tls-key-file: %s
total-active-users: 1
refresh-interval: 1s
bucket-span: 1s
enabled-origin-commands: [revoke]
`, startTicketOrigin(t), cert, key) + config
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s.running = serveNode(t, "one", "a", "--config", path, "--data-dir", t.TempDir())
	_, port, err := net.SplitHostPort(s.http)
	if err != nil {
		t.Fatal(err)
	}
	s.url = "https://" + net.JoinHostPort(shopHost, port)
	s.holder = s.visitor()
	s.awaitThat("the first visitor is let in", patience, func() bool { // once the node has rights
		return strings.Contains(s.ask(s.holder, "/"), inShop)
	})
	return s
}

// startTicketOrigin serves a site of which /done ends the session, and /stock is for
// scripts.
func startTicketOrigin(t *testing.T) string {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/done":
			w.Header().Set("Ropeline-Command", "revoke")
		case "/stock":
			io.WriteString(w, "12 tickets")
		default:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			io.WriteString(w, "<!doctype html><html lang=en><title>The shop</title><h1 id=shop>"+inShop+"</h1></html>")
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// trust has browsers trust the key of a certificate.
func (s *ticketShop) trust(certFile string) {
	s.ca.t.Helper()
	text, err := os.ReadFile(certFile)
	if err != nil {
		s.ca.t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		s.ca.t.Fatal(err)
	}
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	s.keys = append(s.keys, base64.StdEncoding.EncodeToString(sum[:]))
}

// visitor returns a client that keeps cookies.
func (s *ticketShop) visitor() *http.Client {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	tr := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool(s.t, filepath.Join(s.ca.dir, "ca.pem"))},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", s.http)
		},
	}
	s.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Jar: jar, Timeout: 10 * time.Second}
}

func (s *ticketShop) ask(c *http.Client, path string) string {
	s.t.Helper()
	resp, err := c.Get(s.url + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(body)
}

// holderLeaves makes the place free.
func (s *ticketShop) holderLeaves() {
	s.t.Helper()
	s.ask(s.holder, "/done")
}

// room returns what the node says of the room.
func (s *ticketShop) room() node.RoomStatus {
	s.t.Helper()
	status, err := s.status()
	if err != nil || len(status.Rooms) != 1 {
		s.t.Fatalf("status: %d rooms, %v", len(status.Rooms), err)
	}
	return status.Rooms[0]
}

// browser starts one for which all hosts are on this machine.
func (s *ticketShop) browser(more ...chromedp.ExecAllocatorOption) context.Context {
	s.t.Helper()
	return newBrowser(s.t, append(more,
		chromedp.Flag("host-resolver-rules", "MAP * 127.0.0.1"),
		chromedp.Flag("ignore-certificate-errors-spki-list", strings.Join(s.keys, ",")),
	)...)
}

// passes returns the cookies of the shop that the browser has.
func passes(t *testing.T, browser context.Context) (all []*network.Cookie) {
	t.Helper()
	got, err := chromedp.Call(browser, storage.GetCookies, storage.GetCookiesParams{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range got.Cookies {
		if c.Domain == shopHost {
			all = append(all, c)
		}
	}
	return all
}

// onlyPass returns the one cookie that the browser has of the shop.
func onlyPass(t *testing.T, browser context.Context) *network.Cookie {
	t.Helper()
	all := passes(t, browser)
	if len(all) != 1 {
		t.Fatalf("the browser has %d cookies of the shop, want its pass: %+v", len(all), all)
	}
	c := all[0]
	if c.Name != shopCookie || !c.Secure || !c.HTTPOnly || c.Path != "/" || c.SameSite != network.CookieSameSiteNone || c.Session {
		t.Errorf("the browser keeps %+v", c)
	}
	return c
}

// seesIn reports whether js is true in the page.
func seesIn(ctx context.Context, js string) bool {
	is, err := browsertest.Look(ctx, chromedp.Evaluate[bool](js))
	return err == nil && is
}

// atShop is whether the page is the site, and not a waiting page.
const atShop = "document.querySelector('#shop') !== null"

// TestBrowserKeepsItsPassOverTLS waits and gets in with the cookie that belongs to one
// host alone, keeps its place from one request to the next, and its session over loading
// the site again.
func TestBrowserKeepsItsPassOverTLS(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		noScript bool
	}{{"with JavaScript", false}, {"without JavaScript", true}} {
		t.Run(tt.name, func(t *testing.T) {
			s := startTicketShop(t, "")
			b := s.browser()
			if tt.noScript {
				(&browsertest.Tab{T: t, Ctx: b}).NoScript()
			}
			if err := chromedp.Do(b, chromedp.Navigate(s.url+"/"), chromedp.WaitVisible(chromedp.CSS("main"))); err != nil {
				t.Fatal(err)
			}
			loaded := look(t, b, chromedp.Evaluate[float64](whenLoaded))
			first := onlyPass(t, b)
			if first.PartitionKey != nil {
				t.Errorf("a page in no frame has a cookie apart: %+v", first.PartitionKey)
			}
			asked := howOftenAsked + " >= 2"
			if tt.noScript {
				asked = fmt.Sprintf("%s > %f", whenLoaded, loaded)
			}
			s.awaitThat("the browser asks again, and is given another pass", patience, func() bool {
				return seesIn(b, asked) && onlyPass(t, b).Value != first.Value
			})
			if n := s.room().Waiting; n != 1 {
				t.Errorf("%d are taken to wait, want the one that does", n)
			}
			keep(t, b, "waiting over TLS "+tt.name)
			if got := look(t, b, chromedp.Text(chromedp.CSS("dd[data-v=positionText]"))); got != "1" {
				t.Errorf("the place is %s", got)
			}

			waited := onlyPass(t, b)
			s.holderLeaves()
			s.awaitThat("the browser is let in", patience, func() bool { return seesIn(b, atShop) })
			if in := onlyPass(t, b); in.Value == waited.Value {
				t.Error("the browser is in with the pass with which it waited")
			}
			if got := look(t, b, chromedp.Evaluate[string]("document.cookie")); got != "" {
				t.Errorf("scripts can read %s", got)
			}
			for range 2 {
				if err := chromedp.Do(b, chromedp.Reload()); err != nil {
					t.Fatal(err)
				}
				if !seesIn(b, atShop) {
					t.Error("loaded again, the site is not there any more")
				}
			}
			if r := s.room(); r.Active != 1 || r.Waiting != 0 {
				t.Errorf("%d are inside and %d wait, want the one browser", r.Active, r.Waiting)
			}
		})
	}
}
