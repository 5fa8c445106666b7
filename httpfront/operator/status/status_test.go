package status

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node"
)

func TestAdmin(t *testing.T) {
	state := node.Status{Name: "one", Reason: "waiting for peers"}
	var stuck error
	a, err := New(Config{
		Status: func() node.Status { return state }, Alive: func() error { return stuck }, Logger: slog.New(slog.DiscardHandler),
		Origins: func() []upstream.Status {
			return []upstream.Status{{Origins: []upstream.OriginStatus{{URL: "http://a", State: "down", Reason: "no answer"}}}}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(a)
	defer srv.Close()

	get := func(path string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+path, nil)
		if err != nil {
			t.Fatal(err)
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

	if code, body := get("/healthz"); code != 200 || body != "ok\n" {
		t.Errorf("healthz: %d %q", code, body)
	}
	stuck = errors.New("stuck: nothing was counted for 20s")
	if code, body := get("/healthz"); code != 503 || !strings.Contains(body, "for 20s") {
		t.Errorf("healthz of a node that is stuck: %d %q", code, body)
	}
	if code, body := get("/readyz"); code != 503 || !strings.Contains(body, "waiting for peers") {
		t.Errorf("readyz while not ready: %d %q", code, body)
	}
	state.Ready = true
	if code, body := get("/readyz"); code != 200 || body != "ready\n" {
		t.Errorf("readyz: %d %q", code, body)
	}
	code, body := get("/status")
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
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
		req, err := http.NewRequest(method, srv.URL+"/status", nil)
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
	if code, _ := get("/nothing"); code != 404 {
		t.Errorf("unknown path: %d, want 404", code)
	}
}
