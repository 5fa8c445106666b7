package page

import "github.com/ropeline/ropeline/httpfront/page/lang"

// Notice is a page with a few words, all of them HTML.
type Notice struct {
	Lang              *lang.Language
	Title, Text, Code string
	Frames            string // who may show it in a frame, as in a Content-Security-Policy
}

// noticeStyle has notices look as the waiting page does.
const noticeStyle = `:root{color-scheme:light dark;--bg:#eef1f8;--card:#fff;--ink:#141c2b;--soft:#55617a;--line:#dfe5f0}
@media(prefers-color-scheme:dark){:root{--bg:#0a0e17;--card:#141b28;--ink:#eaeff8;--soft:#9ba8c0;--line:#283449}}
body{min-height:100vh;margin:0;padding:1rem;box-sizing:border-box;display:grid;place-items:center;background:var(--bg);color:var(--ink);font:1rem/1.5 system-ui,sans-serif;text-align:center}
main{max-width:29rem;padding:1.75rem;background:var(--card);border:1px solid var(--line);border-radius:1.5rem}
h1{margin:0 0 .375rem;font-size:1.5rem;line-height:1.25;text-wrap:balance}
p{margin:0;color:var(--soft);text-wrap:balance}
div+p{margin-top:1rem}`

// noticePolicy is the policy of all notices, but for who may show them in a frame.
var noticePolicy = "default-src 'none'; style-src " + HashSource(noticeStyle) + "; base-uri 'none'; form-action 'none'; frame-ancestors "

// Policy is its Content-Security-Policy.
func (n *Notice) Policy() string { return noticePolicy + n.Frames }

// HTML is the page.
func (n *Notice) HTML() string {
	l := n.Lang
	return `<!doctype html>
<html lang="` + l.Tag() + `" dir="` + l.Dir() + `"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>` + n.Title + `</title><style>` + noticeStyle + `</style></head>
<body><main><div role="alert"><h1>` + n.Title + `</h1><p>` + n.Text + `</p></div>
<p><small><bdi>` + n.Code + `</bdi></small></p></main></body></html>
`
}
