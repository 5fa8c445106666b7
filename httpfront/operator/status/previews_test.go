package status

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

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
