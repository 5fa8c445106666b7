package httpfront

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node"
)

func TestAdminBindsLoopbackOnly(t *testing.T) {
	status := func() node.Status { return node.Status{} }
	for addr, ok := range map[string]bool{
		"":                true,
		"127.0.0.1:0":     true,
		"127.9.9.9:80":    true,
		"[::1]:8081":      true,
		"localhost:8081":  true,
		":8081":           false,
		"0.0.0.0:8081":    false,
		"[::]:8081":       false,
		"192.0.2.1:8081":  false,
		"example.org:80":  false,
		"localhost":       false,
		"127.0.0.1.:8081": false,
	} {
		_, err := NewAdmin(AdminConfig{Listen: addr, Status: status})
		if (err == nil) != ok {
			t.Errorf("listen on %q: got error %v, want ok %v", addr, err, ok)
		}
	}
}

func TestAdmin(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	state := node.Status{Name: "one", Reason: "waiting for peers"}
	a, err := NewAdmin(AdminConfig{
		Listener: ln, Status: func() node.Status { return state }, Logger: testLogger(t),
		Origins: func() []upstream.Status {
			return []upstream.Status{{Origins: []upstream.OriginStatus{{URL: "http://a", State: "down", Reason: "no answer"}}}}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, a.Run)

	get := func(path, host string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+ln.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if host != "" {
			req.Host = host
		}
		req.Close = true
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}

	if code, body := get("/healthz", ""); code != 200 || body != "ok\n" {
		t.Errorf("healthz: %d %q", code, body)
	}
	if code, body := get("/readyz", ""); code != 503 || !strings.Contains(body, "waiting for peers") {
		t.Errorf("readyz while not ready: %d %q", code, body)
	}
	state.Ready = true
	if code, body := get("/readyz", ""); code != 200 || body != "ready\n" {
		t.Errorf("readyz: %d %q", code, body)
	}
	code, body := get("/status", "")
	var got node.Status
	if err := json.Unmarshal([]byte(body), &got); code != 200 || err != nil || got.Name != "one" || !got.Ready {
		t.Errorf("status: %d %q, %v", code, body, err)
	}
	var origins struct{ Origins []upstream.Status }
	if err := json.Unmarshal([]byte(body), &origins); err != nil || len(origins.Origins) != 1 || origins.Origins[0].Origins[0].State != "down" {
		t.Errorf("status tells nothing of the origins: %s, %v", body, err)
	}
	if !strings.Contains(body, `"rooms": []`) || !strings.Contains(body, `"certificates": []`) {
		t.Errorf("status has no empty lists of rooms and certificates: %s", body)
	}
	if code, _ := get("/status", "evil.example"); code != http.StatusMisdirectedRequest {
		t.Errorf("status by a foreign name: %d, want 421", code)
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
		req, err := http.NewRequest(method, "http://"+ln.Addr().String()+"/status", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Close = true
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d, want 405", method, resp.StatusCode)
		}
	}
	if code, _ := get("/nothing", ""); code != 404 {
		t.Errorf("unknown path: %d, want 404", code)
	}
}
