package suite

import (
	"fmt"
	"strings"

	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/bench/rig/serve"
)

// startFile starts an nginx that has the answer's body in a file.
func startFile(p *place, a serve.Answer) *subject {
	p.readable("page", a.Body)
	fields, kind := nginxFields(a)
	sub := p.ready(rig.StartNginx(p.ctx, rig.OfServer, p.dir, rig.NginxConfig{HTTP: fmt.Sprintf(`%s
sendfile on; tcp_nopush on; etag off; add_header Last-Modified ""; server_tokens off;
server { listen %s; keepalive_requests 1000000000; root %s; location / { types {} default_type "%s"; %s } }`, dollar, p.listen, p.dir, kind, fields)}))
	sub.path = "/page"
	return sub
}

// startMemory starts an nginx that has the answer's body in its configuration.
func startMemory(p *place, a serve.Answer) *subject {
	var pieces, names strings.Builder
	for i, rest := 0, a.Body; len(rest) > 0; i++ {
		piece := rest[:min(len(rest), nginxPiece)]
		rest = rest[len(piece):]
		fmt.Fprintf(&pieces, "map $host $piece%d { default %s; }\n", i, nginxText(string(piece)))
		fmt.Fprintf(&names, "$piece%d", i)
	}
	fields, kind := nginxFields(a)
	return p.ready(rig.StartNginx(p.ctx, rig.OfServer, p.dir, rig.NginxConfig{HTTP: fmt.Sprintf(`%s
%s server_tokens off;
server { listen %s; keepalive_requests 1000000000; location / { default_type "%s"; %s return %d "%s"; } }`, dollar, &pieces, p.listen, kind, fields, a.Status, &names)}))
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
