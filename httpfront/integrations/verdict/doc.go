// Package verdict answers proxies that ask whether a request may go on: one
// listener, and a path for each way of asking.
//
//	/nginx, /nginx/page   nginx auth_request, and the page for whom it holds back
//	/forward              Traefik ForwardAuth, Caddy forward_auth, HAProxy with our
//	                      script, and everything else that sends X-Forwarded-Method
//	                      and X-Forwarded-Uri
//	/envoy/...            Envoy ext_authz over HTTP; the rest is the visitor's path
//	gRPC                  Envoy ext_authz, envoy.service.auth.v3.Authorization
//	/revoke               the site ends the session of a visitor
//	/readyz               anybody: whether this node can decide
//	/jwks.json            anybody: the public keys of proofs of admission
//
// Proxies read our status code as the verdict, and not all alike: 200 or 202, which
// are good codes for a waiting page, would let everybody in, and 5xx is taken for an
// outage, upon which some let everybody in as well. So who has to wait gets 4xx, 401
// where nginx asks and 429 elsewhere, whatever code the room has for its pages.
//
// What a visitor is told comes from Judge, which decides as the node's own proxy does.
// Who asks is believed about the visitor, so only trusted peers may.
package verdict
