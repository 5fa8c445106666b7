package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/cmd/cli"
	"github.com/ropeline/ropeline/node"
)

// TestANodeDoesWhatItsFileSaysOfTheFront starts a node from a file with everything in
// it that rooms say of rules, pages and texts.
func TestANodeDoesWhatItsFileSaysOfTheFront(t *testing.T) {
	t.Parallel()
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "the site: "+r.URL.Path)
	}))
	defer origin.Close()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"wait.html":    "<p>{{room}} {{language}} {{operatorMessage}} {{positon}}</p>\n",
		"crawlers.txt": "# of a search engine\n203.0.113.0/24\n",
		"ropeline.yaml": `
origin: ` + origin.URL + `
trusted-proxies: 127.0.0.1
country-header: X-Country
lists:
  office: {addresses: [192.0.2.0/24]}
  crawlers: {addresses-file: crawlers.txt}
  partners: {strings: [partner.example]}
queue-all: true
message: Row A is <sold> out.
rules:
  - expression: ip.src in $office
rooms:
  - room: tickets
    path: /tickets
    cookie-suffix: tickets
    custom-page-file: wait.html
    default-template-language: de-DE
    frame-ancestors: [self, https://partner.example]
    rules:
      - expression: starts_with(http.request.uri.path, "/tickets/static/")
      - expression: ip.src in $crawlers or http.host in $partners
      - {expression: ip.src.country eq "CH", action: bypass_waiting_room}
      - {expression: http.request.method eq "GET", enabled: false}
  - room: shop
    json-response-enabled: false
    queueing-status-code: 202
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := serveNode(t, "a", "one", "--config", filepath.Join(dir, "ropeline.yaml"), "--data-dir", filepath.Join(dir, "data"))

	const site, ofTickets = "the site: ", "<p>tickets de-DE Row A is &lt;sold&gt; out. </p>\n"
	for _, tt := range []struct {
		path   string
		fields []string
		want   string
	}{
		{"/tickets/7", nil, ofTickets},
		{"/tickets/static/logo.svg", nil, site},
		{"/tickets/static%2f7", nil, ofTickets}, // a slash to some sites,
		{"/tickets/7", []string{"X-Forwarded-For", "203.0.113.9"}, site},
		{"/tickets/7", []string{"X-Forwarded-For", "192.0.2.9"}, ofTickets}, // has rules of its own
		{"/tickets/7", []string{"Host", "partner.example"}, site},
		{"/tickets/7", []string{"X-Forwarded-For", "198.51.100.1", "X-Country", "ch"}, site},
		{"/tickets/7", []string{"X-Forwarded-For", "198.51.100.1", "X-Country", "DE"}, ofTickets},
		{"/tickets/7", []string{"Accept-Language", "fr"}, "<p>tickets fr-FR Row A"},
		{"/tickets/7", []string{"Accept", "application/json"}, `"operatorMessage":"Row A is \u003csold\u003e out."`},
		{"/", nil, "Row A is &lt;sold&gt; out."},
		{"/", []string{"Accept", "application/json"}, "<!doctype html>"},
		{"/", []string{"X-Forwarded-For", "192.0.2.9"}, site},
	} {
		resp, body := visit(t, "http://"+p.http+tt.path, tt.fields...)
		if !strings.Contains(body, tt.want) {
			t.Errorf("%s %q: got %.300s\nwant %s", tt.path, tt.fields, body, tt.want)
		}
		if cookies := resp.Cookies(); (tt.want == site) != (len(cookies) == 0) {
			t.Errorf("%s %q: cookies %v", tt.path, tt.fields, cookies)
		}
	}
	resp, _ := visit(t, "http://"+p.http+"/tickets")
	if got := resp.Header.Get("Content-Security-Policy"); got != "frame-ancestors 'self' https://partner.example" {
		t.Errorf("policy %q", got)
	}
	p.await("has counted who passed", 10*time.Second, func(s node.Status) bool {
		passed := map[string]uint64{}
		for _, r := range s.Rooms {
			passed[r.Name] = r.Bypassed
		}
		return passed["tickets"] == 4 && passed["shop"] == 1
	})
	if !strings.Contains(p.Log(), `room=tickets setting=custom-page-html line=1 name=positon did_you_mean=position`) {
		t.Errorf("nothing is said of the name that is not known:\n%s", p.Log())
	}

	if _, body := visit(t, "http://"+p.admin+"/preview?room=tickets&language=es-ES"); body != "<p>tickets es-ES Row A is &lt;sold&gt; out. </p>\n" {
		t.Errorf("preview: %s", body)
	}
	if resp, body := visit(t, "http://"+p.admin+"/preview"); resp.StatusCode != 404 || !strings.Contains(body, "there are shop, tickets") {
		t.Errorf("preview of any room: %d %s", resp.StatusCode, body)
	}
}

// visit sends one request as somebody new; of fields, Host is the host.
func visit(t *testing.T, url string, fields ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		if fields[i] == "Host" {
			req.Host = fields[i+1]
			continue
		}
		req.Header.Set(fields[i], fields[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// TestMistakesOfTheFrontOpenNothing: what does not compile ends the start before
// there is as much as a data directory.
func TestMistakesOfTheFrontOpenNothing(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.html")
	if err := os.WriteFile(bad, []byte("{{#open}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		file string
		args []string
		want []string
	}{
		"in the file": {"rooms:\n  - room: a\n    rules: [{expression: sll}]\n    custom-page-file: bad.html\n", nil, []string{
			`ropeline.yaml:4:14: room "a": rules[0].expression: line 1, column 1: there is no field sll; did you mean ssl?`,
			`ropeline.yaml:5:23: room "a": custom-page-file: `,
		}},
		"by a flag": {"", []string{"--custom-page-file", bad}, []string{"--custom-page-file", "bad.html: template: "}},
		"together":  {"frame-ancestors: none\n", []string{"--frame-ancestors", "none,https://a.example"}, []string{"'none' stands alone"}},
	} {
		t.Run(name, func(t *testing.T) {
			path, data := filepath.Join(dir, "ropeline.yaml"), filepath.Join(dir, "data")
			if err := os.WriteFile(path, []byte("origin: http://127.0.0.1:1\n"+tt.file), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := newRootCommand()
			cmd.SetArgs(append([]string{"run", "--config", path, "--data-dir", data, "--listen", "127.0.0.1:0"}, tt.args...))
			cmd.SetErr(io.Discard)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			err := cmd.ExecuteContext(ctx)
			if _, ok := errors.AsType[cli.UsageError](err); !ok {
				t.Fatalf("error %v, want one of usage", err)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error is\n\t%v\nwant it to contain\n\t%s", err, part)
				}
			}
			if _, err := os.Stat(data); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the data directory was made: %v", err)
			}
		})
	}
}

// TestTheRoomThatQueuesIsTheOneThatServes: a room without servers or limits of its own
// has those of all, also where the path of another room holds its own.
func TestTheRoomThatQueuesIsTheOneThatServes(t *testing.T) {
	t.Parallel()
	site := func(name string) string {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, name) }))
		t.Cleanup(srv.Close)
		return srv.URL
	}
	file := filepath.Join(t.TempDir(), "ropeline.yaml")
	text := `
origin: ` + site("everybody's") + `
max-body: 4KiB
rooms:
  - room: tickets
    path: /tickets
    cookie-suffix: tickets
    max-body: 1KiB
    origins: [` + site("tickets'") + `]
  - room: vip
    path: /tickets/vip
    cookie-suffix: vip
    additional-routes: [{path: /tickets/press}]
  - room: resale
    path: /tickets/resale
    cookie-suffix: resale
    suspended: true
  - room: a
    path: /a
    cookie-suffix: a
    origins: [` + site("a's") + `]
  - room: shop
    host: shop.example
    cookie-suffix: shop
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := serveNode(t, "a", "one", "--config", file, "--data-dir", filepath.Join(filepath.Dir(file), "data"))

	post := func(host, path string, length int) (int, string, []*http.Cookie) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+p.http+path, strings.NewReader(strings.Repeat("x", length)))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body), resp.Cookies()
	}
	for _, tt := range []struct{ host, path, room, site string }{
		{"other.example", "/tickets/7", "tickets", "tickets'"},
		{"other.example", "/tickets/vip/7", "vip", "everybody's"},
		{"other.example", "/tickets/press", "vip", "everybody's"},
		{"other.example", "/tickets/resale/7", "", "everybody's"}, // suspended
		{"other.example", "/a", "a", "a's"},
		{"shop.example", "/a", "shop", "everybody's"},
		{"shop.example", "/tickets/vip", "shop", "everybody's"},
		{"other.example", "/", "", "everybody's"},
	} {
		code, body, cookies := post(tt.host, tt.path, 10)
		if code != 200 || body != tt.site {
			t.Errorf("%s%s: served by %s with %d, want %s", tt.host, tt.path, body, code, tt.site)
		}
		if queued := len(cookies) == 1 && cookies[0].Name == "ropeline_"+tt.room; queued != (tt.room != "") {
			t.Errorf("%s%s: cookies %v, want that of %q", tt.host, tt.path, cookies, tt.room)
		}
		want := 200 // within the limit of all, beyond that of tickets
		if tt.room == "tickets" {
			want = 413
		}
		if code, _, _ := post(tt.host, tt.path, 2<<10); code != want {
			t.Errorf("%s%s: 2 KiB get %d, want %d", tt.host, tt.path, code, want)
		}
		if code, _, _ := post(tt.host, tt.path, 5<<10); code != 413 {
			t.Errorf("%s%s: 5 KiB get %d, want 413", tt.host, tt.path, code)
		}
	}
}
