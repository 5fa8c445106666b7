package dashboard

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

func body(resp *http.Response) []byte { return must(io.ReadAll(resp.Body)) }

func TestVendoredFiles(t *testing.T) {
	for name, want := range map[string]string{
		"uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
		"uPlot.min.css":     "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
	} {
		if sum := sha256.Sum256(must(static.ReadFile("static/uplot/" + name))); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s is not the file that its README names: %x", name, sum)
		}
	}
}

func TestFilesArePackedAsAsked(t *testing.T) {
	s := serve(t, newFakeMesh(1, 2, 2), nil)
	plain := body(s.get("/dashboard/base.css"))
	for _, c := range []struct {
		accept, encoding string
		unpack           func(io.Writer, []byte) (int, error)
		most             int // bytes
	}{
		{"", "", io.Writer.Write, len(plain)},
		{"identity", "", io.Writer.Write, len(plain)},
		{"gzip", "gzip", fasthttp.WriteGunzip, len(plain) / 2},
		{"gzip, deflate, br", "br", fasthttp.WriteUnbrotli, len(plain) / 2},
	} {
		resp := s.get("/dashboard/base.css", "Accept-Encoding", c.accept)
		got := body(resp)
		if e := resp.Header.Get("Content-Encoding"); e != c.encoding || len(got) > c.most {
			t.Errorf("accepting %q: got it as %q of %d bytes, want %q of at most %d", c.accept, e, len(got), c.encoding, c.most)
		}
		var unpacked bytes.Buffer
		if _, err := c.unpack(&unpacked, got); err != nil || !bytes.Equal(unpacked.Bytes(), plain) {
			t.Errorf("accepting %q: other bytes come out: %v", c.accept, err)
		}
	}
}

func TestFilesSayWhatTheyAre(t *testing.T) {
	s := serve(t, newFakeMesh(1, 2, 2), nil)
	for path, contentType := range map[string]string{
		"/dashboard/": "text/html; charset=utf-8", "/dashboard/index.html": "text/html; charset=utf-8",
		"/dashboard/main.js": "text/javascript; charset=utf-8", "/dashboard/base.css": "text/css; charset=utf-8",
		"/dashboard/icon.svg": "image/svg+xml", "/dashboard/uplot/LICENSE": "text/plain; charset=utf-8",
	} {
		resp := s.get(path)
		for name, want := range map[string]string{
			"Content-Type": contentType, "Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache",
			"Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "Vary": "Accept-Encoding",
		} {
			if got := resp.Header.Get(name); got != want || resp.StatusCode != 200 {
				t.Errorf("%s: %s, %s is %q, want %q", path, resp.Status, name, got, want)
			}
		}
		etag := resp.Header.Get("ETag")
		if again := s.get(path, "If-None-Match", `"other", W/`+etag); again.StatusCode != http.StatusNotModified || len(body(again)) > 0 {
			t.Errorf("%s: asked for again with its ETag, it is %s", path, again.Status)
		}
		equal(t, path+": asked for again with another ETag", s.get(path, "If-None-Match", `"other"`).StatusCode, 200)
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") || strings.Contains(policy, "*") {
		t.Errorf("the policy allows more than what comes with the page: %s", policy)
	}
}

func TestRoutes(t *testing.T) {
	s := serve(t, newFakeMesh(1, 2, 2), nil)
	for _, c := range []struct {
		path string
		code int
		says string
	}{
		{"/dashboard/nothing.js", 404, "nothing.js"},
		{"/dashboard/../doc.go", 404, ""},
		{"/dashboard/%2e%2e/doc.go", 404, ""},
		{"/other", 404, ""},
		{"/api/v1/other", 404, ""},
		{"/api/v1/rooms/none/watch", 404, `there is no room \"none\"`},
	} {
		resp := s.get(c.path)
		if b := body(resp); resp.StatusCode != c.code || !strings.Contains(string(b), c.says) {
			t.Errorf("%s: got %s %s, want %d and %q in it", c.path, resp.Status, b, c.code, c.says)
		}
	}
	for _, path := range []string{"/dashboard/", "/api/v1/watch"} {
		resp := must(http.Post(s.url(path), "text/plain", nil))
		if resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("POST %s: got %s, want 405", path, resp.Status)
		}
		resp.Body.Close()
	}
	for path, want := range map[string]string{
		"/": "nothing true", "/dashboard": "nothing true", "/dashboard/app.js": "nothing true", "/api/v1/watch": "read true", "/api/v1/rooms/x/watch": "read true",
		"/api/v1/rooms/x": "read false", "/api/v1/rooms//watch": "read false", "/other": "read false",
	} {
		scope, known := s.Needs("GET", path)
		equal(t, path, fmt.Sprint(scope, known), want)
	}
	equal(t, "/dashboard leads to", s.get("/dashboard").Request.URL.Path, "/dashboard/")
}

func TestConfigIsChecked(t *testing.T) {
	for _, cfg := range []Config{{Authorize: func(string) bool { return true }}, {Source: newFakeMesh(1, 1, 1)}} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v: want an error", cfg)
		}
	}
}
