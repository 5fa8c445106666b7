package verdict

import (
	"net/http"

	"github.com/ropeline/ropeline/httpfront"
)

// forward is what proxies understand that ask for the original request in
// X-Forwarded-* fields: 2xx lets the visitor in, and any other answer is handed to the
// visitor as it is.
//
//   - Traefik: pkg/middlewares/auth/forward.go
//   - Caddy: modules/caddyhttp/reverseproxy/forwardauth/caddyfile.go
//   - HAProxy with docs/examples/ropeline.lua
var forward = &dialect{name: "forward", read: readForward, write: writeAnswer, queued: http.StatusTooManyRequests}

func readForward(r *http.Request, q *httpfront.Question) (err error) {
	for _, f := range []struct {
		name string
		dst  *string
	}{
		{"X-Forwarded-Method", &q.Method},
		{"X-Forwarded-Uri", &q.Target},
		{"X-Forwarded-Host", &q.Host},
		{"X-Forwarded-Proto", &q.Scheme},
	} {
		if *f.dst, err = told(r, f.name); err != nil {
			return err
		}
	}
	return nil
}
