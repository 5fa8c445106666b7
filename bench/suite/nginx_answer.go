package suite

import (
	"fmt"
	"strings"

	"github.com/ropeline/ropeline/bench/rig"
)

// startFile starts an nginx that has the answer's body in a file.
func startFile(p *place, a recording) *subject {
	p.readable("page", a.Body)
	fields, kind := nginxFields(a)
	sub := p.ready(rig.StartNginx(p.ctx, rig.OfServer, p.dir, rig.NginxConfig{HTTP: fmt.Sprintf(`%s
sendfile on; tcp_nopush on; etag off; add_header Last-Modified ""; server_tokens off;
server { listen %s; keepalive_requests 1000000000; root %s; location / { types {} default_type "%s"; %s } }`, dollar, p.listen, p.dir, kind, fields)}))
	sub.path = "/page"
	return sub
}

// dollar is the only way to have that sign in a value.
const dollar = `geo $dollar { default "$"; }`

// nginxText writes a text as a word of nginx's configuration.
func nginxText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", "${dollar}").Replace(s) + `"`
}

// nginxFields writes the fields of an answer as directives, but the kind of content, which has one of its own.
func nginxFields(a recording) (directives, kind string) {
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
