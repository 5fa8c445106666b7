package operate

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTokenOfAFile is one that may do what is asked for, if there is one.
func TestTokenOfAFile(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "",
		"# nothing\n\n":                     "",
		"alone-0123456789\n":                "alone-0123456789",
		"read one\n":                        "one",
		"\ufeffread one\n":                  "one",
		"write two\nread one\n":             "two",
		"read one\nwrite two\nread three\n": "two",
		"write two\nwrite four night shift": "four",
		"write two # of ours\n# read one\n": "two",
	} {
		if got := tokenIn(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestWhoIsNoNode answers as web servers do; nothing of it is printed.
func TestWhoIsNoNode(t *testing.T) {
	for code, body := range map[int]string{200: "<html>", 404: "<html>\x1b[2J", 500: `{"errors": []}`, 403: `"no"`} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			w.Write([]byte(body))
		}))
		c, err := (&clientConfig{Server: srv.URL, Timeout: time.Second}).open()
		if err != nil {
			t.Fatal(err)
		}
		_, asked := c.ask(t.Context(), "GET", "/", nil, nil)
		_, health := c.healthAt(t.Context(), "/readyz")
		for _, err := range []error{asked, health} {
			if _, ok := errors.AsType[NotReached](err); !ok || !strings.Contains(err.Error(), "is not the --admin of a node") || strings.ContainsAny(err.Error(), "<\x1b") {
				t.Errorf("%d %q: %v", code, body, err)
			}
		}
		srv.Close()
	}
}

// TestTokensOfCommands are sent over TLS only, or to this machine.
func TestTokensOfCommands(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tokens")
	if err := os.WriteFile(file, []byte("# people\nread one-0123456789ab\nwrite two-0123456789ab night shift\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		cfg      clientConfig
		variable string
		token    string
		says     string
	}{
		{clientConfig{Server: "127.0.0.1:9080"}, "", "", ""},
		{clientConfig{Server: "http://localhost:9080", TokenFile: file}, "", "two-0123456789ab", ""},
		{clientConfig{Server: "https://node.example:9080"}, "three-0123456789", "three-0123456789", ""},
		{clientConfig{Server: "http://node.example:9080"}, "three-0123456789", "", "over TLS only"},
		{clientConfig{Server: "http://node.example:9080"}, "", "", ""},
		{clientConfig{Server: "ftp://x"}, "", "", "want an address"},
		{clientConfig{Server: "https://node.example", TokenFile: dir + "/none"}, "", "", "--token-file"},
		{clientConfig{Server: "https://node.example", CAFile: file}, "", "", "--ca-file"},
	} {
		t.Setenv(TokenVariable, c.variable)
		c.cfg.Timeout = time.Second
		got, err := c.cfg.open()
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: error %v, want %q", c.cfg, err, c.says)
		}
		if err == nil && got.token != c.token {
			t.Errorf("%+v: token %q, want %q", c.cfg, got.token, c.token)
		}
	}
}
