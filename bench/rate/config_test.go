package rate

import (
	"errors"
	"strings"
	"testing"
)

// get returns the head of a GET request.
func get(target string) []byte {
	return []byte("GET " + target + " HTTP/1.1\r\nHost: a.example\r\n\r\n")
}

func TestConfigRefuses(t *testing.T) {
	good := Config{Address: "127.0.0.1:80", Requests: [][]byte{get("/")}}
	if _, err := good.withDefaults(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Config){
		"is a URL":   func(c *Config) { c.Address = "https://127.0.0.1/" },
		"host:port":  func(c *Config) { c.Address = "127.0.0.1" },
		"no request": func(c *Config) { c.Requests = nil },
		"request 2":  func(c *Config) { c.Requests = append(c.Requests, get("/")[:20]) },
	} {
		cfg := good
		spoil(&cfg)
		if _, err := cfg.withDefaults(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestHeadsThatAreNone(t *testing.T) {
	for _, text := range []string{
		"", "\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n", "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.0\r\nHost: a\r\n\r\n",
		"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n\r\nbody", "GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nA: b\nC: d\r\n\r\n",
	} {
		if err := checkHead([]byte(text)); err == nil {
			t.Errorf("%q is taken for a head", text)
		}
	}
}

func TestReadHeads(t *testing.T) {
	const text = "\nGET /a HTTP/1.1\r\nCookie: a=1\r\n\r\n\nHEAD /b HTTP/1.1\nhost: other.example\nAccept: */*\n\n\n"
	heads, err := ReadHeads(strings.NewReader(text), "site.example:8080")
	if err != nil || len(heads) != 2 {
		t.Fatalf("got %d heads and %v", len(heads), err)
	}
	for i, want := range []string{
		"GET /a HTTP/1.1\r\nHost: site.example:8080\r\nCookie: a=1\r\n\r\n",
		"HEAD /b HTTP/1.1\r\nhost: other.example\r\nAccept: */*\r\n\r\n",
	} {
		if string(heads[i]) != want {
			t.Errorf("got %q, want %q", heads[i], want)
		}
	}
	for text, want := range map[string]string{"\n\n": "no request", "GET / HTTP/1.1\n\nnonsense\n": "request 2"} {
		if _, err := ReadHeads(strings.NewReader(text), "a"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func TestHeadOfURL(t *testing.T) {
	head, err := Head("http://site.example:8080/a?b=c", []string{"Cookie: a=1"})
	if want := "GET /a?b=c HTTP/1.1\r\nHost: site.example:8080\r\nCookie: a=1\r\n\r\n"; err != nil || string(head) != want {
		t.Errorf("got %q, %v, want %q", head, err, want)
	}
	if address, host, err := Target("http://[::1]"); err != nil || address != "[::1]:80" || host != "[::1]" {
		t.Errorf("got %q and %q, %v", address, host, err)
	}
	if _, err := Head("http://a/", []string{"A: b\r\nC: d"}); err == nil {
		t.Error("two lines went for one")
	}
	if _, _, err := Target("https://a/"); !errors.Is(err, ErrTLS) {
		t.Errorf("got %v for TLS", err)
	}
	for _, raw := range []string{"a:80", "/a", "ftp://a/", "http://", "http://user@a/"} {
		if _, _, err := Target(raw); !errors.Is(err, ErrConfig) {
			t.Errorf("%q: got %v", raw, err)
		}
	}
}
