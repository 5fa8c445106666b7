package status

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

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

func TestPreviewsAreKeptForAWhile(t *testing.T) {
	var p Previews
	now := time.Now()
	keep := func(template string, at time.Time) (path string) {
		t.Helper()
		path, err := p.Keep(template, at)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	wants := func(what, path string, code int, says string) {
		t.Helper()
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != code || !strings.Contains(w.Body.String(), says) {
			t.Errorf("%s: %d %s, want %d and %q", what, w.Code, w.Body, code, says)
		}
		if w.Code == 200 && w.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("%s is shown without a policy", what)
		}
	}
	if _, err := p.Keep("{{> x}}", now); err == nil {
		t.Error("a template that does not compile is kept")
	}
	first := keep("<p>{{waitTime}} minutes", now)
	wants("a preview", first+"?waitTime=7", 200, "7 minutes")
	wants("an unknown parameter", first+"?colour=red", 400, "colour")
	wants("no preview", PreviewsPath+"x", 404, "an hour")
	for range previewsMax {
		keep("<p>more", now)
	}
	wants("the oldest of too many", first, 404, "")
	wants("one that is too old", keep("<p>old", now.Add(-2*previewsKept)), 404, "")
}
