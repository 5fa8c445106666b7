package page

import "github.com/ropeline/ropeline/httpfront/page/lang"

// Notice is a page with a few words, all of them HTML.
type Notice struct {
	Lang              *lang.Language
	Title, Text, Code string
	Frames            string // who may show it in a frame, as in a Content-Security-Policy
	Reloads           bool   // it says that it loads itself again, as a field Refresh beside it has it
}

// rope is the picture on all pages.
const rope = `<svg viewBox="0 0 100 30" aria-hidden="true"><path d="M10 4v23M50 4v23M90 4v23M5 28h10M45 28h10M85 28h10"/><path d="M10 7q20 22 40 0q20 22 40 0"/></svg>`

// noticeStyle has notices look as the waiting page does.
const noticeStyle = `:root{color-scheme:light dark;--bg:#eef1f8;--card:#fff;--ink:#141c2b;--soft:#55617a;--line:#dfe5f0;--a:#3152d8}
@media(prefers-color-scheme:dark){:root{--bg:#0a0e17;--card:#141b28;--ink:#eaeff8;--soft:#9ba8c0;--line:#283449;--a:#8ab0ff}}
body{min-height:100vh;margin:0;padding:1rem;box-sizing:border-box;display:grid;place-items:center;background:radial-gradient(50rem 28rem at 50% -8rem,color-mix(in srgb,var(--a) 20%,transparent),transparent),var(--bg);color:var(--ink);font:1rem/1.5 system-ui,sans-serif;text-align:center}
main{max-width:29rem;padding:1.75rem;background:var(--card);border:1px solid var(--line);border-radius:1.5rem;box-shadow:0 2rem 4rem -2.5rem rgb(10 25 70/.5)}
svg{width:6rem;fill:none;stroke:var(--soft);stroke-width:2.5;stroke-linecap:round}
path+path{stroke:var(--a)}
h1{margin:.5rem 0 .375rem;font-size:1.5rem;line-height:1.25;text-wrap:balance}
p{margin:0;color:var(--soft);text-wrap:balance}
p+p,div+p{margin-top:1rem}`

// noticePolicy is the policy of all notices, but for who may show them in a frame.
var noticePolicy = "default-src 'none'; style-src " + HashSource(noticeStyle) + "; base-uri 'none'; form-action 'none'; frame-ancestors "

// Policy is its Content-Security-Policy.
func (n *Notice) Policy() string { return noticePolicy + n.Frames }

// HTML is the page.
func (n *Notice) HTML() string {
	l, stay := n.Lang, ""
	if n.Reloads {
		stay = "<p>" + l.Text(lang.StayOpenNoScript) + "</p>"
	}
	return `<!doctype html>
<html lang="` + l.Tag() + `" dir="` + l.Dir() + `"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>` + n.Title + `</title><style>` + noticeStyle + `</style></head>
<body><main>` + rope + `<div role="alert"><h1>` + n.Title + `</h1><p>` + n.Text + `</p>` + stay + `</div>
<p><small><bdi>` + n.Code + `</bdi></small></p></main></body></html>
`
}
