package verdict

import "net/http"

// forward is what proxies understand that ask for the original request in
// X-Forwarded-* fields: 2xx lets the visitor in, and any other answer is handed to the
// visitor as it is.
//
//   - Traefik: pkg/middlewares/auth/forward.go
//   - Caddy: modules/caddyhttp/reverseproxy/forwardauth/caddyfile.go
//   - HAProxy with docs/examples/ropeline.lua
var forward = &dialect{name: "forward", read: readTold("X-Forwarded-Method", "X-Forwarded-Uri"), write: writeAnswer, queued: http.StatusTooManyRequests}
