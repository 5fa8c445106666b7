package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/ropeline/ropeline/httpfront/observe/metrics"
)

// metrics returns what the node tells Prometheus: the text, and the value of each series.
func (p *running) metrics() (text []byte, series map[string]float64) {
	p.t.Helper()
	resp, err := http.Get("http://" + p.admin + "/metrics")
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err = io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		p.t.Fatalf("metrics: %d, %v: %s", resp.StatusCode, err, text)
	}
	series = map[string]float64{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, number, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if number == "" {
			name, number, _ = strings.Cut(strings.TrimSpace(line), " ")
		} else {
			name += "}"
		}
		v, err := strconv.ParseFloat(number, 64)
		if err != nil {
			p.t.Fatalf("series %q: %v", line, err)
		}
		series[name] = v
	}
	return text, series
}

// brokenAt serves a site that cuts off who asks for /broken.
func brokenAt(t *testing.T) string {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/broken" {
			io.WriteString(w, "the shop")
			return
		}
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			c.Close()
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// visitor is a browser that knows no names and trusts everybody.
type visitor struct {
	t *testing.T
	http.Client
	cookies []*http.Cookie
}

func newVisitor(t *testing.T) *visitor {
	v := &visitor{t: t}
	v.Client = http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	return v
}

// ask returns the code of the answer, and what it says of its state.
func (v *visitor) ask(method, url string, fields ...string) (code int, state string) {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), method, url, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	req.Host = "shop.example"
	for i := 0; i < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	for _, c := range v.cookies {
		req.AddCookie(c)
	}
	resp, err := v.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	if k := resp.Cookies(); len(k) > 0 {
		v.cookies = k
	}
	return resp.StatusCode, resp.Header.Get("Ropeline-State")
}

// TestMetricsOfANode has visitors of each kind come to a node of a mesh that speaks TLS with
// them, and looks for every metric of the table.
func TestMetricsOfANode(t *testing.T) {
	t.Parallel()
	cert, key := newAuthority(t).issueFor("shop.example", 7)
	nodes := serveMesh(t, brokenAt(t), []string{"a", "a"}, "--total-active-users", "2", "--new-users-per-minute", "20",
		"--tls-cert-file", cert, "--tls-key-file", key, "--path", "/", "--host", "shop.example")
	p, site := nodes[0], "https://"+nodes[0].http
	// Each comes back with what it was told, as a browser does: somebody new each time would queue
	// behind those who were told to wait and never asked again.
	inside := []*visitor{newVisitor(t), newVisitor(t)}
	for i, v := range inside {
		await(t, fmt.Sprintf("visitor %d of two is inside", i+1), func() bool {
			_, state := v.ask("GET", site)
			return state == ""
		})
	}
	if _, state := newVisitor(t).ask("GET", site); state != "waiting" {
		t.Errorf("a third visitor is %q, want waiting", state)
	}
	if code, _ := inside[0].ask("GET", site+"/broken"); code != 502 {
		t.Errorf("where the site breaks off: %d, want 502", code)
	}
	inside[0].ask("OPTIONS", site, "Origin", "https://other.example", "Access-Control-Request-Method", "PUT")
	c, err := tls.Dial("tcp", p.http, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")
	io.Copy(io.Discard, c)
	c.Close()
	idle, err := tls.Dial("tcp", p.http, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()

	const of = `{room="default",zone="default"}`
	at := func(outcome, rest string) string {
		return fmt.Sprintf(`ropeline_requests_total{outcome=%q,%s}`, outcome, rest)
	}
	none, room := `room="",zone=""`, `room="default",zone="default"`
	var text []byte
	var got map[string]float64
	figures := map[string]func(float64) bool{
		"ropeline_node_ready": is(1), "ropeline_clock_ok": is(1), "ropeline_store_ok": is(1), "ropeline_node_leaving": is(0),
		"ropeline_node_boot_number": is(1), "ropeline_store_size_bytes": above(1000), "ropeline_disk_free_bytes": above(1 << 20),
		"ropeline_facts": above(0), "ropeline_facts_limit": above(1000), "ropeline_store_failures_total": is(0),
		`ropeline_peers{state="alive"}`: is(1), `ropeline_peers{state="failed"}`: is(0), "ropeline_mesh_links": above(0),
		"ropeline_mesh_received_bytes_total": above(1000), "ropeline_mesh_sent_bytes_total": above(1000),
		"ropeline_peer_longest_round_trip_seconds": above(0), "ropeline_mesh_panics_total": is(0),
		"ropeline_room_active_users" + of: is(2), "ropeline_room_admitted_users" + of: is(2),
		"ropeline_room_waiting_users" + of: above(0), "ropeline_room_slots" + of: is(0),
		"ropeline_room_active_users_limit" + of: is(2), "ropeline_room_admitted_users_limit" + of: is(20),
		"ropeline_room_session_duration_seconds" + of: is(300), "ropeline_room_tickets_total" + of: is(2),
		"ropeline_room_tickets_refused_total" + of:                                 is(0),
		`ropeline_room_rights_minted{kind="places",room="default",zone="default"}`: is(2),
		"ropeline_room_rights_minter_known" + of:                                   is(1),
		at("admitted", room):                                                       is(2), at("failed", room): is(1), at("queued", room): above(0), at("rejected", room): is(0),
		at("malformed", none): is(1), at("bypassed", none): is(1), at("admitted", none): is(0), at("unavailable", none): is(0),
		`ropeline_request_duration_seconds_count{outcome="admitted"}`: is(2),
		`ropeline_request_duration_seconds_sum{outcome="admitted"}`:   above(0),
		"ropeline_requests_in_flight":                                 is(0), "ropeline_connections": is(1), "ropeline_connections_max": above(0),
		`ropeline_certificate_ok{name="shop.example"}`:                       is(1),
		`ropeline_certificate_expiry_timestamp_seconds{name="shop.example"}`: above(float64(time.Now().Unix())),
		"ropeline_series_left_out":                                           is(0),
	}
	wrong := ""
	defer func() {
		if t.Failed() && wrong != "" {
			t.Log(wrong)
		}
	}()
	await(t, "figures are as wanted", func() bool {
		text, got = p.metrics()
		for name, ok := range figures {
			if v, known := got[name]; !known || !ok(v) {
				wrong = fmt.Sprintf("%s is %v, known: %v", name, v, known)
				return false
			}
		}
		wrong = ""
		return true
	})
	for name, least := range map[string]float64{"ropeline_origin_requests_total{": 4, "ropeline_origin_failures_total{": 1} {
		for series, v := range got {
			if strings.HasPrefix(series, name) && v < least {
				t.Errorf("%s is %v, want %v or more", series, v, least)
			}
		}
	}
	for _, m := range metrics.Table() {
		if strings.HasPrefix(m.Name, "ropeline_limit_") && len(m.Labels) > 0 {
			continue // there is no rate limit here: see TestRateLimitOverTheMesh
		}
		if m.Name == "ropeline_room_capacity_unusable" {
			continue // no node is down here: see TestTwoOfFourNodesAreGoneForGood
		}
		if !bytes.Contains(text, []byte("# TYPE "+m.Name+" "+string(m.Type)+"\n")) {
			t.Errorf("%s is not there", m.Name)
		}
	}
	problems, err := promlint.New(bytes.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, no := range problems {
		t.Errorf("%s: %s", no.Metric, no.Text)
	}
}

func is(want float64) func(float64) bool     { return func(v float64) bool { return v == want } }
func above(least float64) func(float64) bool { return func(v float64) bool { return v > least } }
