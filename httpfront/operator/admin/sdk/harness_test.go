package sdk

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/operator/admin"
	"github.com/ropeline/ropeline/httpfront/operator/admin/admintest"
)

// begin is when the events of the tests are planned from.
var begin = time.Now().UTC().Truncate(time.Second).AddDate(0, 0, 1)

// nodes are those that calls are sent to, in turn. It is the transport of an HTTP client.
type nodes struct {
	*testing.T
	base  string // of the API, for SDKs
	token string
	zone  string // of this test alone

	urls []*url.URL
	http http.RoundTripper
	api  *admin.API // of the server in memory; nil: the nodes are real

	mu    sync.Mutex // guards the following
	turn  int
	asked map[string]bool // ids of operations
}

// meet returns the nodes that the environment names, or a server with a mesh in memory.
func meet(t *testing.T, zone string) *nodes {
	n := &nodes{T: t, token: "secret", zone: fmt.Sprintf("%s-%x", zone, time.Now().UnixNano()), http: http.DefaultTransport, asked: map[string]bool{}}
	given := os.Getenv("ROPELINE_SDK_URLS")
	if given == "" {
		given = n.serve()
	} else {
		n.token = os.Getenv("ROPELINE_SDK_TOKEN")
	}
	if ca := os.Getenv("ROPELINE_SDK_CA"); ca != "" {
		pem, err := os.ReadFile(ca)
		pool := x509.NewCertPool()
		if err != nil || !pool.AppendCertsFromPEM(pem) {
			t.Fatalf("ROPELINE_SDK_CA: no certificates in %s (%v)", ca, err)
		}
		n.http = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	}
	for one := range strings.SplitSeq(given, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil || u.Host == "" {
			t.Fatalf("ROPELINE_SDK_URLS: %q is no address", one)
		}
		n.urls = append(n.urls, u)
	}
	n.base = n.urls[0].String() + "/client/v4"
	t.Cleanup(n.clean)
	return n
}

// serve starts three servers with one mesh in memory, and returns their addresses.
func (n *nodes) serve() string {
	mesh := &admintest.Mesh{States: func(crdt.RoomID) (admin.RoomState, bool) {
		return admin.RoomState{Status: "queueing", Waiting: 90, Active: 200, Wait: 61 * time.Second}, true
	}}
	var err error
	if n.api, err = admin.New(admin.Config{Mesh: mesh}); err != nil {
		n.Fatal(err)
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Authorization") != "Bearer "+n.token {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		resp := n.api.Do(r.Context(), admin.Request{
			Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.Query(), ContentType: r.Header.Get("Content-Type"), Body: body, Origin: "http://" + r.Host,
		})
		w.Header().Set("Content-Type", resp.ContentType)
		w.WriteHeader(resp.Status)
		w.Write(resp.Body) // who is gone needs no answer
	})
	var all []string
	for range 3 {
		server := httptest.NewServer(handler)
		n.Cleanup(server.Close)
		all = append(all, server.URL)
	}
	return strings.Join(all, ",")
}

// wantAll fails where an operation of the dialect was not asked for, but for some.
func (n *nodes) wantAll(but ...string) {
	n.Helper()
	if n.api == nil {
		return
	}
	for _, r := range n.api.Routes() {
		if strings.HasPrefix(r.Path, "/client/v4/") && !n.asked[r.ID] && !slices.Contains(but, r.ID) {
			n.Errorf("%s %s was never asked for", r.Method, r.Path)
		}
	}
}

// RoundTrip implements http.RoundTripper: it sends a request to the next node. What was
// written is to be at all nodes before the next call.
func (n *nodes) RoundTrip(r *http.Request) (*http.Response, error) {
	u := n.next(r)
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = u.Scheme, u.Host, u.Host
	resp, err := n.http.RoundTrip(r)
	if err == nil && r.Method != http.MethodGet {
		err = n.settle()
	}
	return resp, err
}

// next returns the node that a request goes to.
func (n *nodes) next(r *http.Request) *url.URL {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.api != nil {
		if route, ok := n.api.Route(r.Method, r.URL.EscapedPath()); ok {
			n.asked[route.ID] = true
		}
	}
	n.turn++
	return n.urls[n.turn%len(n.urls)]
}

func (n *nodes) client() *http.Client { return &http.Client{Transport: n} }

// settle waits until all nodes show the same.
func (n *nodes) settle() error {
	if len(n.urls) == 1 {
		return nil
	}
	deadline, begun := time.NewTimer(10*time.Second), time.Now()
	defer deadline.Stop()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		var seen []string
		for _, u := range n.urls {
			all, err := n.all(u)
			if err != nil {
				return err
			}
			if !slices.Contains(seen, all) {
				seen = append(seen, all)
			}
		}
		if len(seen) == 1 {
			n.Logf("all nodes show it after %v", time.Since(begun).Round(time.Millisecond))
			return nil
		}
		select {
		case <-deadline.C:
			return fmt.Errorf("after 10 s the nodes show %d different things:\n%s", len(seen), strings.Join(seen, "\n"))
		case <-again.C:
		}
	}
}

// all returns all that a node shows of the zone.
func (n *nodes) all(u *url.URL) (string, error) {
	at := "/client/v4/zones/" + n.zone + "/waiting_rooms"
	list, err := n.get(u, at)
	if err != nil {
		return "", err
	}
	settings, err := n.get(u, at+"/settings")
	if err != nil {
		return "", err
	}
	var rooms struct{ Result []struct{ ID string } }
	if err := json.Unmarshal([]byte(list), &rooms); err != nil {
		return "", err
	}
	all := list + settings
	for _, r := range rooms.Result {
		for _, below := range []string{"/events", "/rules"} {
			more, err := n.get(u, at+"/"+r.ID+below)
			if err != nil {
				return "", err
			}
			all += more
		}
	}
	return all, nil
}

func (n *nodes) get(u *url.URL, path string) (string, error) { return n.plain(http.MethodGet, u, path) }

// plain sends a request without an SDK.
func (n *nodes) plain(method string, u *url.URL, path string) (string, error) {
	r, err := http.NewRequest(method, u.String()+path, nil)
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer "+n.token)
	resp, err := n.http.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// clean deletes the rooms of the test from real nodes.
func (n *nodes) clean() {
	if n.api != nil {
		return
	}
	at := "/client/v4/zones/" + n.zone + "/waiting_rooms"
	list, err := n.get(n.urls[0], at)
	var rooms struct{ Result []struct{ ID string } }
	if err == nil {
		err = json.Unmarshal([]byte(list), &rooms)
	}
	for _, r := range rooms.Result {
		if _, failed := n.plain(http.MethodDelete, n.urls[0], at+"/"+r.ID); failed != nil {
			err = failed
		}
	}
	if err != nil {
		n.Errorf("rooms of the test are left in the zone %s: %v", n.zone, err)
	}
}

// must returns a value, and ends the test if there is an error.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// want fails where two values differ.
func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
