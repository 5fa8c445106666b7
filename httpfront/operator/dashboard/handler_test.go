package dashboard

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

func body(t *testing.T, resp *http.Response) []byte {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestVendoredFiles(t *testing.T) {
	for name, want := range map[string]string{
		"uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
		"uPlot.min.css":     "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
	} {
		b, err := static.ReadFile("static/uplot/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s is not the file that its README names: %x", name, sum)
		}
	}
}

func TestFilesArePackedAsAsked(t *testing.T) {
	s := serve(t, newFakeMesh(1, 2, 2), nil)
	plain := body(t, s.get("/dashboard/base.css"))
	for _, c := range []struct{ accept, encoding string }{{"", ""}, {"gzip", "gzip"}, {"gzip, deflate, br", "br"}, {"identity", ""}} {
		resp := s.get("/dashboard/base.css", "Accept-Encoding", c.accept)
		got := body(t, resp)
		if e := resp.Header.Get("Content-Encoding"); e != c.encoding {
			t.Errorf("accepting %q: got it as %q, want %q", c.accept, e, c.encoding)
		}
		unpacked, err := got, error(nil)
		switch c.encoding {
		case "gzip":
			unpacked, err = unpack(fasthttp.WriteGunzip, got)
		case "br":
			unpacked, err = unpack(fasthttp.WriteUnbrotli, got)
		}
		if err != nil || !bytes.Equal(unpacked, plain) {
			t.Errorf("accepting %q: other bytes come out: %v", c.accept, err)
		}
		if c.encoding != "" && len(got) > len(plain)/2 {
			t.Errorf("packed as %s it is %d of %d bytes", c.encoding, len(got), len(plain))
		}
	}
}

func unpack(write func(io.Writer, []byte) (int, error), packed []byte) ([]byte, error) {
	var b bytes.Buffer
	_, err := write(&b, packed)
	return b.Bytes(), err
}

func TestFilesSayWhatTheyAre(t *testing.T) {
	s := serve(t, newFakeMesh(1, 2, 2), nil)
	for path, contentType := range map[string]string{
		"/dashboard/": "text/html; charset=utf-8", "/dashboard/index.html": "text/html; charset=utf-8",
		"/dashboard/main.js": "text/javascript; charset=utf-8", "/dashboard/base.css": "text/css; charset=utf-8",
		"/dashboard/icon.svg": "image/svg+xml", "/dashboard/uplot/LICENSE": "text/plain; charset=utf-8",
	} {
		resp := s.get(path)
		if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != contentType {
			t.Errorf("%s: %s as %q, want %q", path, resp.Status, resp.Header.Get("Content-Type"), contentType)
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache",
			"Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "Vary": "Accept-Encoding",
		} {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		etag := resp.Header.Get("ETag")
		if again := s.get(path, "If-None-Match", `"other", W/`+etag); again.StatusCode != http.StatusNotModified || len(body(t, again)) > 0 {
			t.Errorf("%s: asked for again with its ETag, it is %s", path, again.Status)
		}
		if other := s.get(path, "If-None-Match", `"other"`); other.StatusCode != 200 {
			t.Errorf("%s: asked for again with another ETag, it is %s", path, other.Status)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") || strings.Contains(policy, "*") {
		t.Errorf("the policy allows more than what comes with the page: %s", policy)
	}
}

func TestRoutes(t *testing.T) {
	s := serve(t, newFakeMesh(1, 2, 2), nil)
	id := s.mesh.snap.Rooms[0].ID
	span := "from=2026-07-01T18:00:00Z&to=2026-07-01T19:00:00Z"
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
		{"/api/v1/rooms/none/history?" + span + "&step=60", 404, `there is no room \"none\"`},
		{"/api/v1/rooms/" + id + "/history?" + span + "&step=60", 200, `"active":[`},
		{"/api/v1/rooms/" + id + "/history", 400, `"field":"from"`},
		{"/api/v1/rooms/" + id + "/history?" + span + "&step=0", 400, "whole seconds from 1 to 2678400"},
		{"/api/v1/rooms/" + id + "/history?" + span + "&step=1", 400, "2 seconds or more"},
		{"/api/v1/rooms/" + id + "/history?from=2026-07-01T18:00:00Z&to=2026-07-01T18:00:00Z&step=1", 400, "a time after from"},
		{"/api/v1/rooms/" + id + "/history?from=2026-07-01T18:00:00Z&to=2027-07-01T18:00:00Z&step=86400", 400, "744h0m0s"},
		{"/api/v1/rooms/" + id + "/history?from=yesterday&to=2026-07-01T18:00:00Z&step=1", 400, `from is \"yesterday\"`},
	} {
		resp := s.get(c.path)
		if b := body(t, resp); resp.StatusCode != c.code || !strings.Contains(string(b), c.says) {
			t.Errorf("%s: got %s %s, want %d and %q in it", c.path, resp.Status, b, c.code, c.says)
		}
	}
	for path, want := range map[string]int{"/dashboard/": 405, "/api/v1/watch": 405} {
		resp, err := http.Post(s.url(path), "text/plain", nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != want || resp.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("POST %s: got %s, want %d", path, resp.Status, want)
		}
		resp.Body.Close()
	}
	if resp := s.get("/dashboard"); resp.Request.URL.Path != "/dashboard/" {
		t.Errorf("/dashboard leads to %s", resp.Request.URL)
	}
}

func TestHistoryHasNullForWhatIsNotKnown(t *testing.T) {
	s := serve(t, newFakeMesh(1, 2, 2), nil)
	var h struct {
		Step   float64    `json:"step_seconds"`
		Active []*float64 `json:"active"`
	}
	b := body(t, s.get("/api/v1/rooms/"+s.mesh.snap.Rooms[0].ID+"/history?from=2026-07-01t18:00:00z&to=2026-07-01T19:00:00Z&step=60"))
	if err := json.Unmarshal(b, &h); err != nil {
		t.Fatal(err)
	}
	if h.Step != 60 || len(h.Active) != 60 || h.Active[0] != nil || h.Active[59] == nil {
		t.Errorf("got %s", b)
	}
	if b, err := json.Marshal(History{}); err != nil || strings.Contains(string(b), "null") {
		t.Errorf("a history of nothing is %s, %v", b, err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	may := func(string) bool { return true }
	mesh := newFakeMesh(1, 1, 1)
	for name, cfg := range map[string]Config{
		"no source": {Authorize: may}, "no authorize": {Source: mesh},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}
