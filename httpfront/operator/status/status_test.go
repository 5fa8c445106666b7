package status

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/httpfront/certs"
	"github.com/ropeline/ropeline/httpfront/page"
	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node"
)

func TestAdmin(t *testing.T) {
	state := node.Status{Name: "one", Ready: true}
	var stuck error
	unready := errors.New("waiting for peers")
	var failure error
	a := New(Config{
		Status: func() node.Status { return state }, Alive: func() error { return stuck }, Ready: func() error { return unready }, StoreFailure: func() error { return failure }, Logger: slog.New(slog.DiscardHandler),
		Origins: func() []upstream.Status {
			return []upstream.Status{{Origins: []upstream.OriginStatus{{URL: "http://a", State: "down", Reason: "no answer"}}}}
		},
		Certificates: func() []certs.Status { return nil }, Secrets: func() any { return nil },
		Page: func(string, string) (*page.Page, error) { return nil, errors.New("there is no such room") },
	})
	ask := func(method, path string) (int, string) {
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		return w.Code, w.Body.String()
	}
	get := func(path string) (int, string) { return ask("GET", path) }

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
	unready = nil
	if code, body := get("/readyz"); code != 200 || body != "ready\n" {
		t.Errorf("readyz: %d %q", code, body)
	}
	failure = errors.New("store is gone from its path")
	if code, body := get("/readyz"); code != 200 || !strings.Contains(body, "no tickets: store is gone") {
		t.Errorf("readyz of a node without a store: %d %q", code, body)
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
		if code, _ := ask(method, "/status"); code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d, want 405", method, code)
		}
	}
	if code, body := get("/preview?room=x"); code != 404 || !strings.Contains(body, "no such room") {
		t.Errorf("a preview of a room that is not there: %d %s", code, body)
	}
	if code, _ := get("/nothing"); code != 404 {
		t.Errorf("unknown path: %d, want 404", code)
	}
}
