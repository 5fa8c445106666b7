package page

import (
	"crypto/sha256"
	_ "embed" // for the parts of the page
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/ropeline/ropeline/httpfront/page/lang"
)

// The built-in page is put together from three files, and cut at its
// placeholders, once, so that an answer costs copying and nothing else.

//go:embed builtin.html
var builtinHTML string

// The style and the script are embedded as TestMinified makes them out of
// builtin.css and builtin.js.

//go:embed builtin.min.css
var builtinCSS string

//go:embed builtin.min.js
var builtinJS string

// builtin is the built-in page. It is the same in all rooms.
type builtin struct {
	pieces []piece
	// sources allow its style and its script, which are the same in all answers, by
	// hash (Content-Security-Policy, level 3, section 2.3.1).
	style, script string
	own           string // csp for frames of the same site, as most rooms have it
}

// ownFrames are frames of the page's own site, as a source of policies.
const ownFrames = "'self'"

// piece is text, and what follows it.
type piece struct {
	text string
	fill func(*State, []byte) []byte // nil after the last piece
}

var theBuiltin = sync.OnceValues(func() (*builtin, error) {
	b, err := newBuiltin(builtinHTML, builtinCSS, builtinJS)
	if err != nil {
		return nil, fmt.Errorf("built-in page: %w", err)
	}
	return b, nil
})

// newBuiltin cuts html at its placeholders: {{style}} and {{script}} stand for the
// two other files, {{rope}} for the picture, {{a name}} for that variable or label.
func newBuiltin(html, css, js string) (*builtin, error) {
	b := &builtin{style: HashSource(css), script: HashSource(js)}
	rest := html
	var text strings.Builder
	for {
		before, after, ok := strings.Cut(rest, "{{")
		text.WriteString(before)
		if !ok {
			b.pieces = append(b.pieces, piece{text: text.String()})
			b.own = b.csp(ownFrames)
			return b, nil
		}
		name, after, ok := strings.Cut(after, "}}")
		context := contextOf(html[:len(html)-len(rest)+len(before)])
		rest = after
		switch {
		case !ok:
			return nil, fmt.Errorf("a placeholder is not closed")
		case name == "rope":
			text.WriteString(rope)
			continue
		case name == "style":
			text.WriteString(css)
			continue
		case name == "script":
			text.WriteString(js)
			continue
		}
		fill := placeholder(name, context)
		if fill == nil {
			return nil, fmt.Errorf("unknown placeholder %q", name)
		}
		b.pieces = append(b.pieces, piece{text.String(), fill})
		text.Reset()
	}
}

// contextOf returns how variables are escaped that follow html.
func contextOf(html string) *escapes {
	if strings.LastIndexByte(html, '<') > strings.LastIndexByte(html, '>') {
		return htmlEscapes // in a tag, and so in an attribute
	}
	return textEscapes
}

// HashSource names a style or a script as policies do that allow no other.
func HashSource(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func (b *builtin) append(dst []byte, s *State) []byte {
	for i := range b.pieces {
		p := &b.pieces[i]
		dst = append(dst, p.text...)
		if p.fill != nil {
			dst = p.fill(s, dst)
		}
	}
	return dst
}

// placeholder returns what fills in the placeholder of that name, or nil. Variables are
// escaped as context says.
//
//	name       a variable, escaped
//	name?      hides the element unless the variable is there and not empty
//	.name      a label
func placeholder(name string, context *escapes) func(*State, []byte) []byte {
	if label, ok := strings.CutPrefix(name, "."); ok {
		l, ok := labels[label]
		if !ok {
			return nil
		}
		return func(s *State, b []byte) []byte { return append(b, s.lang.Text(l)...) }
	}
	if f, ok := pageOnly[name]; ok {
		return f
	}
	condition, isCondition := strings.CutSuffix(name, "?")
	i, ok := indexOf[condition]
	if !ok {
		return nil
	}
	v := &variables[i]
	if isCondition {
		return func(s *State, b []byte) []byte { return appendHidden(b, v.isEmpty(b, s)) }
	}
	if v.words == nil { // digits and the like
		return func(s *State, b []byte) []byte { return v.appendText(b, s) }
	}
	return func(s *State, b []byte) []byte { return context.escape(v.words(s, b), len(b)) }
}

// isEmpty reports whether v counts as no. It may write beyond the end of scratch.
func (v *Variable) isEmpty(scratch []byte, s *State) bool {
	switch v.Type {
	case Bool:
		return !v.boolean(s)
	case Int:
		return v.integer(s) == 0
	case Time:
		return v.moment(s).IsZero()
	}
	return len(v.words(s, scratch)) == len(scratch)
}

func appendHidden(b []byte, hidden bool) []byte {
	if hidden {
		return append(b, " hidden"...)
	}
	return b
}

// pageOnly is what the built-in page needs beside variables.
var pageOnly = map[string]func(*State, []byte) []byte{
	// reload is for browsers without a script, should Refresh get lost on the way.
	"reload": func(s *State, b []byte) []byte {
		if s.refresh == 0 || s.still {
			return b
		}
		b = append(b, `<noscript><meta http-equiv="refresh" content="`...)
		b = strconv.AppendInt(b, int64(s.refresh), 10)
		return append(b, "\"></noscript>\n"...)
	},
	// ask is in how many seconds the script asks; 0: never.
	"ask": func(s *State, b []byte) []byte {
		if s.still {
			return append(b, '0')
		}
		return strconv.AppendInt(b, int64(s.refresh), 10)
	},
	"json": func(s *State, b []byte) []byte { return strconv.AppendBool(b, s.json) },
	// value is empty for a bar that says only that something goes on.
	"value": func(s *State, b []byte) []byte {
		if s.progress < 0 {
			return b
		}
		return append(strconv.AppendInt(append(b, ` value="`...), int64(s.progress), 10), '"')
	},
	// note is not there for nearly all: it never comes up while the page is open.
	"note": func(s *State, b []byte) []byte {
		if !s.unsafe {
			return b
		}
		b = append(append(b, `<p class="note">`...), s.lang.Text(lang.NotDelivered)...)
		return append(b, "</p>\n"...)
	},
	// stay says by what the page follows: by the script, if it runs and there is JSON,
	// else by being loaded again. The style hides what the script does where none runs.
	"stay": func(s *State, b []byte) []byte {
		reloads := s.lang.Text(lang.StayOpenNoScript)
		if !s.json {
			return append(append(append(b, "<p>"...), reloads...), "</p>"...)
		}
		b = append(append(b, "<p>"...), s.lang.Text(lang.StayOpen)...)
		return append(append(append(b, "</p><noscript><p>"...), reloads...), "</p></noscript>"...)
	},
	"moves?": func(s *State, b []byte) []byte { return appendHidden(b, s.refresh == 0) },
	"clock":  func(s *State, b []byte) []byte { return s.lang.AppendClock(b, s.updated) },
}

// labels are texts that the page has in every situation. They need no escaping.
var labels = map[string]lang.Text{
	"position": lang.LabelPosition, "ahead": lang.LabelAhead, "wait": lang.LabelWait, "start": lang.LabelStart,
	"progress": lang.LabelProgress, "notice": lang.LabelNotice, "updated": lang.LabelUpdated,
	"turn": lang.TitleYourTurn, "lost": lang.ConnectionLost,
}

// csp returns the Content-Security-Policy that lets the page do what it does and
// nothing else. frames is who may show it in a frame.
func (b *builtin) csp(frames string) string {
	if frames == ownFrames && b.own != "" {
		return b.own
	}
	return "default-src 'none'; style-src " + b.style + "; script-src " + b.script +
		"; worker-src blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors " + frames
}

// checkText returns an error unless text may be written to visitors.
func checkText(text string) error {
	switch {
	case !utf8.ValidString(text):
		return errors.New("it is not in UTF-8")
	case strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }):
		return errors.New("it has a control character in it; line breaks are the only ones allowed")
	}
	return nil
}
