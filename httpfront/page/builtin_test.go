package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdewolff/minify/v2"
	"github.com/tdewolff/minify/v2/css"
	"github.com/tdewolff/minify/v2/js"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/ropeline/ropeline/bench/golden"
	"github.com/ropeline/ropeline/bench/must"
	"github.com/ropeline/ropeline/httpfront/page/lang"
)

// TestMinified: what is embedded was made out of what people read. After a change
// of the style or the script, -update makes it again.
func TestMinified(t *testing.T) {
	m := minify.New()
	m.AddFunc("css", css.Minify)
	m.AddFunc("js", js.Minify)
	for _, kind := range []string{"css", "js"} {
		golden.File(t, "builtin.min."+kind, string(must.Do(m.Bytes(kind, must.Do(os.ReadFile("builtin."+kind))))))
	}
	equal(t, "asks as nodes understand it", strings.Contains(builtinJS, `"`+Question+`"`), true)
}

// TestPageOfEverySituation compares what a browser shows that has scripts, before they run, with files under testdata/page.
func TestPageOfEverySituation(t *testing.T) {
	p := newPage(Config{})
	for name, in := range situations() {
		s := fill(p, in)
		page := p.AppendHTML(nil, s)
		compare(t, "page/"+name+".txt", []byte(shownText(t, page)))
		reloads := bytes.Contains(page, []byte(`<noscript><meta http-equiv="refresh" content="20"></noscript>`))
		equal(t, name+": reloads without a script", reloads, !in.Verdict.Pass.Arrival.IsZero())
		title := fmt.Appendf(nil, "<title>%s</title>", s.appendTab(nil))
		if bytes.Contains(page, []byte("{{")) || !bytes.Contains(page, title) {
			t.Errorf("%s: the page has a placeholder left, or lacks %s", name, title)
		}
	}
}

// TestPageIsSmall counts the body as it is sent, with everything in it, in every language
// and situation: alone, and with the longest message that is ordinary text. So it fits
// into the first packets of a connection and costs a crowd little.
func TestPageIsSmall(t *testing.T) {
	for _, tt := range []struct {
		name    string
		message func(*lang.Language) string
		most    int
	}{
		{"without a message", func(*lang.Language) string { return "" }, 8 << 10},
		{"with a message in the same language", func(l *lang.Language) string { return longestMessage(l.Text(lang.MessageFull) + "\n") }, 9 << 10},
		{"with a message of long characters", func(*lang.Language) string { return longestMessage("कतार") }, 9 << 10},
		{"with a message of quotes", func(*lang.Language) string { return longestMessage(`"Today's" `) }, 9 << 10},
	} {
		largest, where := 0, ""
		for _, l := range lang.All() {
			p := newPage(Config{Message: tt.message(l)})
			for name, in := range situations() {
				for _, in.Unsafe = range []bool{false, true} {
					in.AcceptLanguage = []byte(l.Tag())
					s := fill(p, in)
					page := p.AppendHTML(nil, s)
					if len(page) > largest {
						largest, where = len(page), l.Tag()+", "+name
					}
					if s.Language() != l.Tag() || !bytes.Contains(page, fmt.Appendf(nil, `<html lang="%s" dir="%s">`, l.Tag(), l.Dir())) {
						t.Errorf("%s, %s: the page is in %s", l.Tag(), name, s.Language())
					}
				}
			}
		}
		t.Logf("%s: the largest page has %d bytes: %s", tt.name, largest, where)
		if largest >= tt.most {
			t.Errorf("%s: %s: the page has %d bytes, want fewer than %d", tt.name, where, largest, tt.most)
		}
	}
}

// longestMessage repeats text for as many characters as a message may have.
func longestMessage(text string) string {
	return string([]rune(strings.Repeat(text, messageMax))[:messageMax])
}

// TestMessageIsEscaped where it stands, and no more than has to be.
func TestMessageIsEscaped(t *testing.T) {
	page := htmlOf(newPage(Config{Message: `<b>"Today's"</b> & {{title}}`}), inputOf("fifo"))
	if want := `data-v="operatorMessage">&lt;b&gt;"Today's"&lt;/b&gt; &amp; {{title}}</p>`; strings.Count(page, want) != 1 {
		t.Errorf("the page lacks %s:\n%s", want, page)
	}
	equal(t, "the context of an attribute", contextOf(`<p>a > b</p><p title="`), htmlEscapes)
}

// TestPageNeedsNobodyElse: nothing is fetched from anywhere.
func TestPageNeedsNobodyElse(t *testing.T) {
	page := htmlOf(newPage(Config{}), inputOf("fifo"))
	for _, part := range []string{"http:", "https:", "//", "url(", "@import", "src=", "href="} {
		if strings.Contains(page, part) {
			t.Errorf("the page holds %q", part)
		}
	}
}

// TestPolicyNamesWhatThePageHolds: style and script are allowed by what they are.
func TestPolicyNamesWhatThePageHolds(t *testing.T) {
	p := newPage(Config{FrameAncestors: []string{"'none'"}})
	page := htmlOf(p, inputOf("reject"))
	want := "default-src 'none'; style-src " + hashOf(t, page, "style") + "; script-src " + hashOf(t, page, "script") +
		"; worker-src blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	equal(t, "policy", p.ContentSecurityPolicy(), want)
}

func hashOf(t *testing.T, page, element string) string {
	t.Helper()
	_, after, ok := strings.Cut(page, "<"+element+">")
	text, _, closed := strings.Cut(after, "</"+element+">")
	if !ok || !closed {
		t.Fatalf("the page has no %s", element)
	}
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func TestNewRefuses(t *testing.T) {
	for _, tt := range []struct {
		cfg  Config
		want string
	}{
		{Config{Language: "tlh"}, `language "tlh": want one of ar-EG, bg-BG`},
		{Config{Message: strings.Repeat("é", messageMax+1)}, "message: it has 301 characters; want at most 300"},
		{Config{Message: "a\x00"}, "message: it has a control character in it"},
		{Config{Message: "a\xff"}, "message: it is not in UTF-8"},
		{Config{FrameAncestors: []string{"https://a.example; script-src *"}}, `frame ancestors: "https://a.example; script-src *": want 'self'`},
		{Config{FrameAncestors: []string{"'unsafe-inline'"}}, "frame ancestors: \"'unsafe-inline'\""},
		{Config{FrameAncestors: []string{"'none'", "https://a.example"}}, "frame ancestors: 'none' stands alone"},
		{Config{FrameAncestors: []string{""}}, `frame ancestors: "": want`},
	} {
		if _, err := New(tt.cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want an error with %q", tt.cfg, err, tt.want)
		}
	}
}

func TestBuiltinRefuses(t *testing.T) {
	for html, want := range map[string]string{
		"{{title": "is not closed", "{{nothing}}": `unknown placeholder "nothing"`, "{{.nothing}}": "unknown placeholder", "{{nothing?}}": "unknown placeholder",
	} {
		if _, err := newBuiltin(html, "", ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", html, err, want)
		}
	}
}

// TestWithoutAPlace: whom too many new visitors keep out of the line is told just that,
// in every language, and nothing of a place that is kept.
func TestWithoutAPlace(t *testing.T) {
	p := newPage(Config{})
	for _, l := range lang.All() {
		in := inputOf("reject")
		in.Crowded, in.AcceptLanguage = true, []byte(l.Tag())
		in.Verdict.Refresh = 20 * time.Second
		s := fill(p, in)
		told := s.progress >= 0 || len(s.appendWait(nil)) > 0 || len(s.appendPosition(nil)) > 0
		if got := s.message(); got != l.Text(lang.MessageCrowded) || got == l.Text(lang.MessageUnreachable) || told {
			t.Errorf("%s: the message is %q; the page tells of a place: %v", l.Tag(), got, told)
		}
	}
}

// TestPageSaysByWhatItFollows: only where the script can ask for JSON it is kept up to
// date, else it is loaded again.
func TestPageSaysByWhatItFollows(t *testing.T) {
	for _, l := range lang.All() {
		by, reloads := l.Text(lang.StayOpen), l.Text(lang.StayOpenNoScript)
		for noJSON, want := range map[bool]string{
			false: "<p>" + by + "</p><noscript><p>" + reloads + "</p></noscript>\n",
			true:  "<p>" + reloads + "</p>\n",
		} {
			in := inputOf("fifo")
			in.AcceptLanguage = []byte(l.Tag())
			page := htmlOf(newPage(Config{NoJSON: noJSON}), in)
			if !strings.Contains(page, "</progress>\n"+want+"</div>") || noJSON && strings.Contains(page, by) {
				t.Errorf("%s, no JSON %v: the page lacks %s", l.Tag(), noJSON, want)
			}
		}
	}
}

// shownText returns the text of the body that is not hidden, each piece on a line, and
// checks that what is opened is closed.
func shownText(t *testing.T, page []byte) string {
	t.Helper()
	type element struct {
		name   atom.Atom
		hidden bool // or in one that is
	}
	var pieces []string
	open := []element{{}}
	z := html.NewTokenizer(bytes.NewReader(page))
	for {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			if len(open) > 1 {
				t.Errorf("the page leaves %v open", open)
			}
			return strings.NewReplacer("\u00a0", " ", "\u202f", " ").Replace(strings.Join(pieces, "\n")) + "\n"
		case html.StartTagToken:
			tag := z.Token()
			if tag.DataAtom == atom.Meta {
				continue
			}
			hidden := slices.Contains([]atom.Atom{atom.Head, atom.Script, atom.Noscript}, tag.DataAtom) ||
				slices.ContainsFunc(tag.Attr, func(a html.Attribute) bool { return a.Key == "hidden" })
			open = append(open, element{tag.DataAtom, hidden || open[len(open)-1].hidden})
		case html.EndTagToken:
			tag := z.Token()
			if open[len(open)-1].name != tag.DataAtom || len(open) == 1 {
				t.Fatalf("</%s> while %v is open", tag.Data, open)
			}
			open = open[:len(open)-1]
		case html.TextToken:
			if text := strings.TrimSpace(string(z.Text())); text != "" && !open[len(open)-1].hidden {
				pieces = append(pieces, text)
			}
		}
	}
}
