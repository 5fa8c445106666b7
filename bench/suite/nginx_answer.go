package suite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/bench/rig/serve"
)

// startFile starts an nginx that has the answer's body in a file.
func startFile(ctx context.Context, p *place, a serve.Answer) (*subject, error) {
	for _, dir := range []string{p.dir, filepath.Dir(p.dir)} { // its workers are somebody else
		if err := os.Chmod(dir, 0o755); err != nil {
			return nil, err
		}
	}
	file := filepath.Join(p.dir, "page")
	if err := os.WriteFile(file, a.Body, 0o644); err != nil {
		return nil, err
	}
	fields, kind := nginxFields(a)
	proc, err := rig.StartNginx(ctx, rig.OfServer, p.dir, rig.NginxConfig{HTTP: fmt.Sprintf(`%s
sendfile on; tcp_nopush on; etag off; add_header Last-Modified ""; server_tokens off;
server { listen %s; keepalive_requests 1000000000; root %s; location / { types {} default_type "%s"; %s } }`, dollar, p.listen, p.dir, kind, fields)})
	sub, err := ready(ctx, p, proc, err)
	if sub != nil {
		sub.path = "/page"
	}
	return sub, err
}

// startMemory starts an nginx that has the answer's body in its configuration.
func startMemory(ctx context.Context, p *place, a serve.Answer) (*subject, error) {
	var pieces, names strings.Builder
	for i, rest := 0, a.Body; len(rest) > 0; i++ {
		piece := rest[:min(len(rest), nginxPiece)]
		rest = rest[len(piece):]
		fmt.Fprintf(&pieces, "map $host $piece%d { default %s; }\n", i, nginxText(string(piece)))
		fmt.Fprintf(&names, "$piece%d", i)
	}
	fields, kind := nginxFields(a)
	proc, err := rig.StartNginx(ctx, rig.OfServer, p.dir, rig.NginxConfig{HTTP: fmt.Sprintf(`%s
%s server_tokens off;
server { listen %s; keepalive_requests 1000000000; location / { default_type "%s"; %s return %d "%s"; } }`, dollar, &pieces, p.listen, kind, fields, a.Status, &names)})
	return ready(ctx, p, proc, err)
}

// nginxPiece is what a word of nginx's configuration may have, with what escaping adds.
const nginxPiece = 1500

// dollar is the only way to have that sign in a value.
const dollar = `geo $dollar { default "$"; }`

// nginxText writes a text as a word of nginx's configuration.
func nginxText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", "${dollar}").Replace(s) + `"`
}

// nginxFields writes the fields of an answer as directives, but the kind of content, which has one of its own.
func nginxFields(a serve.Answer) (directives, kind string) {
	var b strings.Builder
	for _, f := range a.Fields {
		if f[0] == "Content-Type" {
			kind = f[1]
			continue
		}
		fmt.Fprintf(&b, "add_header %s %s always; ", f[0], nginxText(f[1]))
	}
	return b.String(), kind
}
