// Package caching has what becomes of the header fields by which a site says who may keep its answer, and for how long, where the
// answer carries a visitor's pass: a cache that many use would hand it to others, and a browser may keep it as the site wants.
package caching

import "strings"

// SharedFields are those that only caches which many use go by: RFC 9213, and what nginx and Varnish take.
var SharedFields = [...]string{"Surrogate-Control", "Cdn-Cache-Control", "X-Accel-Expires"}

// ofBrowsers are the directives that say what a browser may keep (RFC 9111, section 5.2.2; RFC 5861; RFC 8246).
var ofBrowsers = [...]string{"max-age", "no-cache", "no-store", "must-revalidate", "no-transform", "immutable", "stale-while-revalidate", "stale-if-error"}

// Private is the value of Cache-Control for an answer to one visitor of which its site says no more.
const Private = "private"

// AppendKept appends to it what a site says to browsers in a value of Cache-Control. What it says of some fields only, as by
// no-cache="Set-Cookie", is said of all.
func AppendKept[T string | []byte](dst []byte, list T) []byte {
	for e := range strings.SplitSeq(string(list), ",") {
		e = strings.Trim(e, " \t")
		name, value, _ := strings.Cut(e, "=")
		for _, d := range ofBrowsers {
			if !strings.EqualFold(name, d) {
				continue
			}
			if dst = append(append(dst, ", "...), d...); value != "" && !strings.Contains(value, `"`) {
				dst = append(append(dst, '='), value...)
			}
		}
	}
	return dst
}
