package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/must"
	"github.com/ropeline/ropeline/httpfront/operator/adminserver"
	"github.com/ropeline/ropeline/httpfront/operator/dashboard"
)

func TestAdminIsNotForEverybody(t *testing.T) {
	for admin, says := range map[Admin]string{ // "": it is fine
		{Listen: "127.0.0.1:9080"}:                                     "",
		{Listen: "[::1]:9080"}:                                         "",
		{Listen: "localhost:9080"}:                                     "",
		{Listen: "0.0.0.0:9080"}:                                       "needs tokens",
		{Listen: ":9080"}:                                              "needs tokens",
		{Listen: "a.example:9080"}:                                     "needs tokens",
		{Listen: ":9080", TokenFile: "t"}:                              "needs TLS",
		{Listen: ":9080", Token: "0123456789abcdef"}:                   "needs TLS",
		{Listen: ":9080", CertFile: "c", KeyFile: "k"}:                 "needs tokens",
		{Listen: ":9080", TokenFile: "t", CertFile: "c"}:               "belong together",
		{Listen: ":9080", TokenFile: "t", CertFile: "c", KeyFile: "k"}: "",
		{Listen: "127.0.0.1:9080", TokenFile: "t"}:                     "",
	} {
		err := (&Config{Admin: admin}).checkAdmin()
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: error %v, want %q", admin, err, says)
		}
	}
}

// TestTokensOfOperatorsAreFollowed changes their file while the listener runs.
func TestTokensOfOperatorsAreFollowed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	const first, variable, second = "first-0123456789", "variable-0123456789", "second-0123456789"
	must.OK(os.WriteFile(file, []byte("read "+first+"\n"), 0o600))
	o := must.Do(newOperators(&Admin{TokenFile: file, Token: variable}, must.Do(net.Listen("tcp", "127.0.0.1:0")), 0, struct{ dashboard.Source }{},
		http.NotFoundHandler(), nil, nil, slog.New(slog.DiscardHandler)))
	for _, step := range []struct {
		file string
		says string // the error; "": there is none
		want []adminserver.Scope
	}{
		{"read " + first, "", []adminserver.Scope{adminserver.Read, adminserver.Write, adminserver.Nothing}},
		{"nonsense", "line 1", []adminserver.Scope{adminserver.Read, adminserver.Write, adminserver.Nothing}},
		{"write " + second, "", []adminserver.Scope{adminserver.Nothing, adminserver.Write, adminserver.Write}},
	} {
		must.OK(os.WriteFile(file, []byte(step.file+"\n"), 0o600))
		said := ""
		for range 2 { // a file is taken when it was the same twice
			if _, err := o.watch.Look(); err != nil {
				said = err.Error()
			}
		}
		got := []adminserver.Scope{o.server.Scope(first), o.server.Scope(variable), o.server.Scope(second)}
		if !slices.Equal(got, step.want) || (said == "") != (step.says == "") || !strings.Contains(said, step.says) {
			t.Errorf("%q: error %q, tokens are good for %v, want %q and %v", step.file, said, got, step.says, step.want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	must.OK(o.run(ctx))
}
