package operate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

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
