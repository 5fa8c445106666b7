package page

import (
	"bytes"

	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/httpfront/page/lang"
)

// PrefersJSON reports whether a client that sent this Accept list is a program
// that reads JSON, and not a browser that shows pages.
//
// JSON must be named; a wildcard is not enough, because every browser sends
// one. If pages are named too, JSON must have the greater weight, and if they
// are only covered by a wildcard, one that is not smaller: scripts commonly
// send "application/json, */*".
func PrefersJSON(accept []byte) bool {
	if string(accept) == "application/json" || IsQuestion(accept) {
		return true
	}
	json, html, wild := -1, -1, -1
	for e := range http1.Elements(accept) {
		kind, params, _ := bytes.Cut(e, []byte(";"))
		kind = bytes.TrimRight(kind, " \t")
		switch {
		case http1.EqualFold(kind, "application/json"):
			json = max(json, weight(params))
		case http1.EqualFold(kind, "text/html"), http1.EqualFold(kind, "application/xhtml+xml"):
			html = max(html, weight(params))
		case http1.EqualFold(kind, "*/*"), http1.EqualFold(kind, "text/*"):
			wild = max(wild, weight(params))
		}
	}
	if html >= 0 {
		return json > html
	}
	return json > 0 && json >= wild
}

// Question is the Accept field by which the script of the built-in page asks.
const Question = "application/vnd.ropeline+json,application/json"

// IsQuestion reports whether a request with this Accept field is a question of the built-in page: whether it is the
// visitor's turn, and nothing that the site should answer.
func IsQuestion(accept []byte) bool { return string(accept) == Question }

// weight returns the q parameter in thousandths, 1000 if there is none and 0 if
// it is not in order.
func weight(params []byte) int {
	for p := range bytes.SplitSeq(params, []byte(";")) {
		name, value, ok := bytes.Cut(bytes.Trim(p, " \t"), []byte("="))
		if ok && http1.EqualFold(name, "q") {
			return lang.Weight(value)
		}
	}
	return 1000
}
