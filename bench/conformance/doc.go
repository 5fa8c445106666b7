// Package conformance has no code: its tests put real proxies in front of a site, each with the configuration
// that the documentation shows, have each ask a real node for verdicts, and visit the
// site through it.
package conformance
