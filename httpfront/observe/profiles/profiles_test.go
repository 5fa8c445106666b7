package profiles

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
)

func ask(h http.Handler, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w
}

func TestEveryKindIsServed(t *testing.T) {
	h := New()
	t.Cleanup(func() {
		runtime.SetMutexProfileFraction(0)
		runtime.SetBlockProfileRate(0)
	})
	for _, kind := range append(Kinds(), "cpu?seconds=1") {
		w := ask(h, http.MethodGet, Path+kind)
		unpacked, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if b, err := io.ReadAll(unpacked); w.Code != http.StatusOK || err != nil || len(b) == 0 {
			t.Errorf("%s: %d, %d bytes, %v", kind, w.Code, len(b), err)
		}
	}
}

func TestWhatIsNotServed(t *testing.T) {
	h := new(Handler)
	h.cpu.Lock()
	for _, c := range []struct {
		method, target string
		code           int
		says           string
	}{
		{http.MethodPost, "heap", http.StatusMethodNotAllowed, "GET"},
		{http.MethodGet, "cmdline", http.StatusNotFound, "there are cpu, heap"},
		{http.MethodGet, "", http.StatusNotFound, "there are cpu, heap"},
		{http.MethodGet, "cpu?seconds=0", http.StatusBadRequest, "1 to 60"},
		{http.MethodGet, "cpu?seconds=x", http.StatusBadRequest, "1 to 60"},
		{http.MethodGet, "cpu", http.StatusConflict, "somebody else"},
	} {
		w := ask(h, c.method, Path+c.target)
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s %s: got %d %s", c.method, c.target, w.Code, w.Body)
		}
	}
}
