package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront/operator/adminserver"
	"github.com/ropeline/ropeline/httpfront/operator/dashboard"
)

func TestAdminIsNotForEverybody(t *testing.T) {
	for _, c := range []struct {
		admin Admin
		says  string // "": it is fine
	}{
		{Admin{Listen: "127.0.0.1:9080"}, ""},
		{Admin{Listen: "[::1]:9080"}, ""},
		{Admin{Listen: "localhost:9080"}, ""},
		{Admin{Listen: "0.0.0.0:9080"}, "needs tokens"},
		{Admin{Listen: ":9080"}, "needs tokens"},
		{Admin{Listen: "a.example:9080"}, "needs tokens"},
		{Admin{Listen: ":9080", TokenFile: "t"}, "needs TLS"},
		{Admin{Listen: ":9080", Token: "0123456789abcdef"}, "needs TLS"},
		{Admin{Listen: ":9080", TokenFile: "t", CertFile: "c"}, "belong together"},
		{Admin{Listen: ":9080", TokenFile: "t", CertFile: "c", KeyFile: "k"}, ""},
		{Admin{Listen: "127.0.0.1:9080", TokenFile: "t"}, ""},
	} {
		cfg := Config{Admin: c.admin}
		err := cfg.checkAdmin()
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: error %v, want %q", c.admin, err, c.says)
		}
	}
}

// TestTokensOfOperatorsAreFollowed changes their file while the listener runs.
func TestTokensOfOperatorsAreFollowed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("read first-0123456789\n")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o, err := newOperators(&Admin{TokenFile: file, Token: "variable-0123456789"}, ln, 0, struct{ dashboard.Source }{}, http.NotFoundHandler(), nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	is := func(token string, want adminserver.Scope) bool { return o.server.Scope(token) == want }
	if !is("first-0123456789", adminserver.Read) || !is("variable-0123456789", adminserver.Write) || !is("second-0123456789", adminserver.Nothing) {
		t.Error("tokens are not those of the file and the one beside it")
	}
	write("nonsense\n")
	for range 2 { // a file is taken when it was the same twice
		if _, err = o.watch.Look(); err != nil {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), "line 1") || !is("first-0123456789", adminserver.Read) {
		t.Errorf("a file that cannot be used: error %v", err)
	}
	write("write second-0123456789\n")
	for range 2 {
		if _, err := o.watch.Look(); err != nil {
			t.Fatal(err)
		}
	}
	if !is("first-0123456789", adminserver.Nothing) || !is("variable-0123456789", adminserver.Write) || !is("second-0123456789", adminserver.Write) {
		t.Error("tokens do not follow their file")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := o.run(ctx); err != nil {
		t.Error(err)
	}
}
