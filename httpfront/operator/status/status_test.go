package status

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/httpfront/certs"
	"github.com/ropeline/ropeline/httpfront/page"
	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node"
)

func TestAdmin(t *testing.T) {
	var stuck, unready, failure error
	a := New(Config{
		Status: func() node.Status { return node.Status{Name: "one", Ready: true} },
		Alive:  func() error { return stuck }, Ready: func() error { return unready }, StoreFailure: func() error { return failure },
		Logger: slog.New(slog.DiscardHandler),
		Origins: func() []upstream.Status {
			return []upstream.Status{{Origins: []upstream.OriginStatus{{URL: "http://a", State: "down", Reason: "no answer"}}}}
		},
		Certificates: func() []certs.Status { return nil }, Secrets: func() any { return nil },
		Page: func(string, string) (*page.Page, error) { return nil, errors.New("there is no such room") },
	})
	wants := func(request string, code int, says string) (body []byte) {
		t.Helper()
		method, path, _ := strings.Cut(request, " ")
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		if w.Code != code || !strings.Contains(w.Body.String(), says) {
			t.Errorf("%s: %d %q, want %d and %q", request, w.Code, w.Body, code, says)
		}
		return w.Body.Bytes()
	}
	wants("GET /healthz", 200, "ok\n")
	stuck = errors.New("stuck: nothing was counted for 20s")
	wants("GET /healthz", 503, "for 20s")
	unready = errors.New("waiting for peers")
	wants("GET /readyz", 503, "waiting for peers")
	unready = nil
	wants("GET /readyz", 200, "ready\n")
	failure = errors.New("store is gone from its path")
	wants("GET /readyz", 200, "no tickets: store is gone")

	body := wants("GET /status", 200, `"rooms": []`)
	wants("GET /status", 200, `"certificates": []`)
	var got struct {
		node.Status
		Origins []upstream.Status
	}
	if err := json.Unmarshal(body, &got); err != nil || got.Name != "one" || !got.Ready || len(got.Origins) != 1 || got.Origins[0].Origins[0].State != "down" {
		t.Errorf("status: %s, %v", body, err)
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
		wants(method+" /status", 405, "")
	}
	wants("GET /preview?room=x", 404, "no such room")
	wants("GET /nothing", 404, "")
}
