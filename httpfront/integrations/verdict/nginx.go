package verdict

import (
	"io"
	"net/http"

	"github.com/ropeline/ropeline/httpfront"
)

// nginx is what auth_request understands: 2xx lets the visitor in, 401 and 403 do not,
// and anything else is an error, which visitors see as 500. It drops the body of the
// answer; the configuration picks fields out of its head. See
// ngx_http_auth_request_module.c, ngx_http_auth_request_handler.
//
// The subrequest is a GET for a path of the configuration, with the fields of the
// visitor's request, so what the visitor asks for has to be told in fields.
var nginx = &dialect{
	name: "nginx", read: readNginx, write: writeNginx,
	queued: http.StatusUnauthorized, refused: http.StatusForbidden, noPage: true,
}

// nginxPage is asked by an ordinary proxy_pass for the page of whom auth_request has
// held back, so nothing is read into its code: visitors get the room's.
var nginxPage = &dialect{name: "nginx/page", read: readNginxPage, write: writePage}

var readNginx = readTold("X-Original-Method", "X-Original-Uri")

func readNginxPage(r *http.Request, q *httpfront.Question) error {
	q.Cookie, q.Again = r.Header.Get(handedBack), true
	return readNginx(r, q)
}

func writeNginx(w http.ResponseWriter, d *dialect, a *httpfront.Answer) {
	writeHead(w, d.status(a), a)
}

// writePage answers whom auth_request has held back. A place may have come free in
// between: then the page says so, and comes again at once. The built-in page, which
// asks for JSON, loads its address upon this state. A proof is for the site, and these
// answers are for the visitor.
func writePage(w http.ResponseWriter, d *dialect, a *httpfront.Answer) {
	a.Proof = ""
	if a.Outcome == httpfront.Admitted {
		h := w.Header()
		h.Set("Refresh", "0")
		h.Set("Retry-After", "0")
		h.Set("Cache-Control", "private, no-store")
		h.Set("Vary", "*")
		h.Set(stateField, "admitted")
		kind, body := "text/html; charset=utf-8", yourTurn
		if a.JSON {
			kind, body = "application/json", httpfront.YourTurn
		}
		h.Set("Content-Type", kind)
		writeHead(w, http.StatusTooManyRequests, a)
		io.WriteString(w, body)
		return
	}
	writeAnswer(w, d, a)
}

const yourTurn = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>It is your turn</title></head>
<body><main><h1>It is your turn</h1><p>This page goes on by itself. If it does not, please load it again.</p></main></body></html>
`
