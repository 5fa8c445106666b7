// Package acme obtains certificates from a certificate authority that speaks ACME (RFC
// 8555), and renews them: a third of their life before they end, or when the authority
// says so. The work is done by certmagic; this package says what of it is used.
//
// The authority looks at a domain to see who runs it, on port 80 (HTTP-01) or 443
// (TLS-ALPN-01, RFC 8737). It meets one of the nodes to which the domain leads, and not
// always the one that asked. Nodes find each other's challenges, certificates and locks
// in Config.Storage: those to which one domain leads need a directory that they share.
// With directories of their own each would ask for a certificate of its own, and get it
// only when the authority happens to come by, as often as chance and the authority's
// limits allow.
package acme
