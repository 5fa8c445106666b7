package status

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/must"
	"github.com/ropeline/ropeline/httpfront/certs"
	"github.com/ropeline/ropeline/httpfront/page"
	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node"
)

// wants asks, and fails where what is answered has another code or does not say something.
func wants(t *testing.T, h http.Handler, request string, code int, says string) *httptest.ResponseRecorder {
	t.Helper()
	method, path, _ := strings.Cut(request, " ")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	if w.Code != code || !strings.Contains(w.Body.String(), says) {
		t.Errorf("%s: %d %q, want %d and %q", request, w.Code, w.Body, code, says)
	}
	return w
}

func TestAdmin(t *testing.T) {
	var stuck, unready, failure error
	a := New(Config{
		Status: func() node.Status { return node.Status{Name: "one", Ready: true} },
		Alive:  func() error { return stuck }, Ready: func() error { return unready }, NoTickets: func() error { return failure },
		Logger: slog.New(slog.DiscardHandler),
		Origins: func() []upstream.Status {
			return []upstream.Status{{Origins: []upstream.OriginStatus{{URL: "http://a", State: "down", Reason: "no answer"}}}}
		},
		Certificates: func() []certs.Status { return nil }, Secrets: func() any { return nil },
		Page: func(string, string) (*page.Page, error) { return nil, errors.New("there is no such room") },
	})
	wants(t, a, "GET /healthz", 200, "ok\n")
	stuck = errors.New("stuck: nothing was counted for 20s")
	wants(t, a, "GET /healthz", 503, "for 20s")
	unready = errors.New("waiting for peers")
	wants(t, a, "GET /readyz", 503, "waiting for peers")
	unready = nil
	wants(t, a, "GET /readyz", 200, "ready\n")
	failure = errors.New("store is gone from its path")
	wants(t, a, "GET /readyz", 200, "no tickets: store is gone")

	body := wants(t, a, "GET /status", 200, `"rooms": []`).Body.Bytes()
	wants(t, a, "GET /status", 200, `"certificates": []`)
	var got struct {
		node.Status
		Origins []upstream.Status
	}
	if err := json.Unmarshal(body, &got); err != nil || got.Name != "one" || !got.Ready || len(got.Origins) != 1 || got.Origins[0].Origins[0].State != "down" {
		t.Errorf("status: %s, %v", body, err)
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
		wants(t, a, method+" /status", 405, "")
	}
	wants(t, a, "GET /preview?room=x", 404, "no such room")
	wants(t, a, "GET /nothing", 404, "")
}

func TestPreviewsAreKeptForAWhile(t *testing.T) {
	var p Previews
	now := time.Now()
	keep := func(template string, at time.Time) (path string) { return must.Do(p.Keep(template, at)) }
	if _, err := p.Keep("{{> x}}", now); err == nil {
		t.Error("a template that does not compile is kept")
	}
	first := keep("<p>{{waitTime}} minutes", now)
	if shown := wants(t, &p, "GET "+first+"?waitTime=7", 200, "7 minutes"); shown.Header().Get("Content-Security-Policy") == "" {
		t.Error("a preview is shown without a policy")
	}
	wants(t, &p, "GET "+first+"?colour=red", 400, "colour") // an unknown parameter
	wants(t, &p, "GET "+PreviewsPath+"x", 404, "an hour")   // no preview
	for range previewsMax {
		keep("<p>more", now)
	}
	wants(t, &p, "GET "+first, 404, "")                                    // the oldest of too many
	wants(t, &p, "GET "+keep("<p>old", now.Add(-2*previewsKept)), 404, "") // one that is too old
}
