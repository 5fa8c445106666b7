// Package expr is the language in which operators say which requests a rule is
// about, such as
//
//	starts_with(http.request.uri.path, "/static/") or ip.src in {192.0.2.0/24}
//
// [Compile] checks a source once, types and names included; what it refuses it
// refuses with an [Error] that names the column. An [Expression] does not change
// any more: it may be matched from many goroutines at once, allocates nothing,
// and has an answer for every request.
//
// Terms are evaluated from left to right, and no further than the answer needs.
// What a request does not have, such as a header that was not sent, makes each
// comparison with it false, `ne` included; only `not` turns that around.
//
// docs/rules.md tells operators about fields, operators and functions. The names
// are those that operators of hosted waiting rooms have in their rules already,
// which in turn come from Wireshark's display filters.
package expr
