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
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/must"
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

	turn  atomic.Int32
	asked sync.Map // ids of operations of that server
}

// meet returns the nodes that the environment names, or a server with a mesh in memory.
func meet(t *testing.T, zone string) *nodes {
	n := &nodes{T: t, token: "secret", zone: fmt.Sprintf("%s-%x", zone, time.Now().UnixNano()), http: http.DefaultTransport}
	given := os.Getenv("ROPELINE_SDK_URLS")
	if given == "" {
		given = n.serve()
	} else {
		n.token = os.Getenv("ROPELINE_SDK_TOKEN")
	}
	if ca := os.Getenv("ROPELINE_SDK_CA"); ca != "" {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(must.Do(os.ReadFile(ca))) {
			t.Fatalf("ROPELINE_SDK_CA: no certificates in %s", ca)
		}
		n.http = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	}
	for one := range strings.SplitSeq(given, ",") {
		n.urls = append(n.urls, must.Do(url.Parse(strings.TrimSpace(one))))
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
	n.api = must.Do(admin.New(admin.Config{Mesh: mesh}))
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Authorization") != "Bearer "+n.token {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		if route, ok := n.api.Route(r.Method, r.URL.EscapedPath()); ok {
			n.asked.Store(route.ID, true)
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
		if _, asked := n.asked.Load(r.ID); strings.HasPrefix(r.Path, "/client/v4/") && !asked && !slices.Contains(but, r.ID) {
			n.Errorf("%s %s was never asked for", r.Method, r.Path)
		}
	}
}

// RoundTrip implements http.RoundTripper: it sends a request to the next node. What was
// written is at all nodes before the next call, or the answer says so.
func (n *nodes) RoundTrip(r *http.Request) (*http.Response, error) {
	u := n.urls[int(n.turn.Add(1))%len(n.urls)]
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = u.Scheme, u.Host, u.Host
	resp, err := n.http.RoundTrip(r)
	if err == nil && resp.Header.Get("Ropeline-Not-Yet-At") != "" {
		n.Errorf("%s %s is answered as not yet at %s, and all nodes run", r.Method, r.URL, resp.Header.Get("Ropeline-Not-Yet-At"))
	}
	return resp, err
}

func (n *nodes) client() *http.Client { return &http.Client{Transport: n} }

// ids returns those of the rooms that a node shows of the zone.
func (n *nodes) ids(u *url.URL) (ids []string) {
	var rooms struct{ Result []struct{ ID string } }
	must.OK(json.Unmarshal([]byte(n.plain(http.MethodGet, u, "")), &rooms))
	for _, r := range rooms.Result {
		ids = append(ids, r.ID)
	}
	return ids
}

// plain sends a request about the rooms of the zone without an SDK, and returns what is answered.
func (n *nodes) plain(method string, u *url.URL, path string) string {
	r := must.Do(http.NewRequest(method, u.String()+"/client/v4/zones/"+n.zone+"/waiting_rooms"+path, nil))
	r.Header.Set("Authorization", "Bearer "+n.token)
	resp := must.Do(n.http.RoundTrip(r))
	defer resp.Body.Close()
	return string(must.Do(io.ReadAll(resp.Body)))
}

// clean deletes the rooms of the test, for real nodes to be as they were.
func (n *nodes) clean() {
	for _, id := range n.ids(n.urls[0]) {
		n.plain(http.MethodDelete, n.urls[0], "/"+id)
	}
	if left := n.ids(n.urls[0]); len(left) > 0 {
		n.Errorf("rooms of the test are left in the zone %s: %v", n.zone, left)
	}
}

// want fails where two values differ.
func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// fields are some of what the API has an SDK show.
type fields map[string]any

// shows fails where what an SDK has made of an answer has other fields, by the names of the API.
func shows(t *testing.T, what string, answer any, want fields) {
	t.Helper()
	var got fields
	must.OK(json.Unmarshal(must.Do(json.Marshal(answer)), &got))
	for name, v := range want {
		if fmt.Sprint(got[name]) != fmt.Sprint(v) {
			t.Errorf("%s: %s is %v, want %v", what, name, got[name], v)
		}
	}
}

// hosts returns the hosts that rules are about, of a list of them or a page.
func hosts(answer any) (names string) {
	for _, part := range strings.Split(string(must.Do(json.Marshal(answer))), `http.host eq \"`)[1:] {
		names += part[:strings.IndexByte(part, '\\')]
	}
	return names
}

// changed is what a room is changed to by each SDK.
func (n *nodes) changed() fields {
	return fields{
		"description": "changed", "queueing_method": "random", "queueing_status_code": 429, "json_response_enabled": true,
		"enabled_origin_commands": []string{"revoke"}, "additional_routes": []any{map[string]any{"host": "also." + n.zone + ".example", "path": "/"}},
		"custom_page_html": "<p>{{waitTime}}", "default_template_language": "de-DE", "turnstile_mode": "off", "turnstile_action": "log", "cookie_suffix": "x",
	}
}
