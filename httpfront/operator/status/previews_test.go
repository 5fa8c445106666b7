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
	show := func(path string) (int, string) {
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code == 200 && w.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("%s is shown without a policy", path)
		}
		return w.Code, w.Body.String()
	}
	if _, err := p.Keep("{{> x}}", now); err == nil {
		t.Error("a template that does not compile is kept")
	}
	first, err := p.Keep("<p>{{waitTime}} minutes", now)
	if err != nil {
		t.Fatal(err)
	}
	if code, body := show(first + "?waitTime=7"); code != 200 || !strings.Contains(body, "7 minutes") {
		t.Errorf("a preview: %d %s", code, body)
	}
	if code, body := show(first + "?colour=red"); code != 400 || !strings.Contains(body, "colour") {
		t.Errorf("an unknown parameter: %d %s", code, body)
	}
	if code, body := show(PreviewsPath + "x"); code != 404 || !strings.Contains(body, "an hour") {
		t.Errorf("no preview: %d %s", code, body)
	}
	for range previewsMax {
		if _, err := p.Keep("<p>more", now); err != nil {
			t.Fatal(err)
		}
	}
	if code, _ := show(first); code != 404 {
		t.Errorf("the oldest of too many: %d", code)
	}
	old, err := p.Keep("<p>old", now.Add(-2*previewsKept))
	if err != nil {
		t.Fatal(err)
	}
	if code, _ := show(old); code != 404 {
		t.Errorf("one that is too old: %d", code)
	}
}
