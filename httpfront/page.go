package httpfront

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the waiting page
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

//go:embed page.html
var pageSource []byte

// page is the waiting page, cut at its placeholders once, so that an answer
// costs copying and nothing else. Everything that is filled in is a number, a
// time or one of our own texts; nothing comes from the request.
type page struct {
	pieces []piece
	csp    string // Content-Security-Policy that allows what the page holds, by hash
}

// piece is text, and what follows it.
type piece struct {
	text []byte
	fill func([]byte, *waiting) []byte // nil after the last piece
}

// newPage cuts src at its {{placeholders}}.
func newPage(src []byte) (*page, error) {
	style, err := hashOf(src, "style")
	if err != nil {
		return nil, err
	}
	script, err := hashOf(src, "script")
	if err != nil {
		return nil, err
	}
	p := &page{csp: "default-src 'none'; style-src " + style + "; script-src " + script +
		"; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"}
	rest := src
	for {
		text, after, ok := bytes.Cut(rest, []byte("{{"))
		if !ok {
			p.pieces = append(p.pieces, piece{text: rest})
			return p, nil
		}
		name, after, ok := bytes.Cut(after, []byte("}}"))
		fill := placeholder(string(name))
		if !ok || fill == nil {
			return nil, fmt.Errorf("unknown placeholder %q", name)
		}
		p.pieces = append(p.pieces, piece{text, fill})
		rest = after
	}
}

// hashOf returns the CSP source of the one inline element of that name. Its
// text must not change from answer to answer.
func hashOf(src []byte, element string) (string, error) {
	_, after, ok := bytes.Cut(src, []byte("<"+element+">"))
	if !ok {
		return "", fmt.Errorf("no element %q", element)
	}
	text, _, ok := bytes.Cut(after, []byte("</"+element+">"))
	if !ok || bytes.Contains(text, []byte("{{")) {
		return "", fmt.Errorf("element %q is not closed or has a placeholder in it", element)
	}
	sum := sha256.Sum256(text)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'", nil
}

func (p *page) append(dst []byte, w *waiting) []byte {
	for _, c := range p.pieces {
		dst = append(dst, c.text...)
		if c.fill != nil {
			dst = c.fill(dst, w)
		}
	}
	return dst
}

// placeholder returns what fills in the placeholder of that name, or nil.
func placeholder(name string) func([]byte, *waiting) []byte {
	switch name {
	case "reload":
		return func(b []byte, w *waiting) []byte {
			if w.refresh() == 0 {
				return b
			}
			b = append(b, `<noscript><meta http-equiv="refresh" content="`...)
			b = strconv.AppendInt(b, w.refresh(), 10)
			return append(b, "\"></noscript>\n"...)
		}
	case "refresh":
		return func(b []byte, w *waiting) []byte { return strconv.AppendInt(b, w.refresh(), 10) }
	case "room":
		return func(b []byte, w *waiting) []byte { return append(b, w.settings.ID.String()...) }
	case "safe":
		return func(b []byte, w *waiting) []byte {
			if w.req.isSafe() {
				return append(b, "yes"...)
			}
			return append(b, "no"...)
		}
	case "title":
		return func(b []byte, w *waiting) []byte { return append(b, w.title()...) }
	case "message":
		return func(b []byte, w *waiting) []byte { return append(b, w.message()...) }
	case "updated":
		return func(b []byte, w *waiting) []byte { return w.updated().AppendFormat(b, timeFormat) }
	case "updatedtext":
		return func(b []byte, w *waiting) []byte { return w.updated().AppendFormat(b, "15:04:05 UTC") }
	case "notice":
		return func(b []byte, w *waiting) []byte {
			if w.req.isSafe() {
				return b
			}
			return append(b, `<p class="note">What you sent has not been delivered. Please send it again once you are in.</p>`+"\n"...)
		}
	}
	return figure(name)
}

// figure is placeholder for the numbers of the page. The script of the page
// follows the same rules when it brings them up to date.
func figure(name string) func([]byte, *waiting) []byte {
	switch name {
	case "unlessmoving": // hides what only a page that goes on has
		return func(b []byte, w *waiting) []byte { return appendHidden(b, w.refresh() == 0) }
	case "unlessordered": // hides what only a visitor with a position has
		return func(b []byte, w *waiting) []byte { return appendHidden(b, w.verdict.Estimate.Position <= 0) }
	case "figuresize":
		return func(b []byte, w *waiting) []byte {
			if w.verdict.Estimate.Position > 0 {
				return append(b, "number"...)
			}
			return append(b, "words"...)
		}
	case "label":
		return func(b []byte, w *waiting) []byte {
			if w.verdict.Estimate.Position > 0 {
				return append(b, "Your position"...)
			}
			return append(b, w.timeLabel()...)
		}
	case "figure":
		return func(b []byte, w *waiting) []byte {
			if w.verdict.Estimate.Position > 0 {
				return appendGrouped(b, w.verdict.Estimate.Position)
			}
			return w.appendTimeLeft(b)
		}
	case "ahead":
		return func(b []byte, w *waiting) []byte { return appendGrouped(b, w.verdict.Estimate.Ahead) }
	case "aheadnumber":
		return func(b []byte, w *waiting) []byte {
			if w.verdict.Estimate.Position <= 0 {
				return b
			}
			return strconv.AppendInt(b, int64(w.verdict.Estimate.Ahead), 10)
		}
	case "timelabel":
		return func(b []byte, w *waiting) []byte { return append(b, w.timeLabel()...) }
	case "time":
		return func(b []byte, w *waiting) []byte { return w.appendTimeLeft(b) }
	}
	return nil
}

func appendHidden(b []byte, hidden bool) []byte {
	if hidden {
		return append(b, " hidden"...)
	}
	return b
}

// timeLabel says what appendTimeLeft is about.
func (w *waiting) timeLabel() string {
	if w.waitsForEvent() {
		return "Starts in"
	}
	return "Estimated wait"
}

// appendTimeLeft appends how long it is until an event that the visitor waits
// for, or until the visitor is let in.
func (w *waiting) appendTimeLeft(b []byte) []byte {
	switch {
	case w.waitsForEvent():
		return room.AppendMinutes(b, w.minutesUntil(w.event().Start))
	case w.full():
		return append(b, "more than a day"...)
	case w.known():
		return w.appendWait(b)
	}
	return append(b, "not known yet"...)
}

// timeFormat is RFC 3339 with milliseconds.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// appendGrouped appends n with a comma after every three digits from the right.
func appendGrouped(b []byte, n int) []byte {
	start := len(b)
	b = strconv.AppendInt(b, int64(max(n, 0)), 10)
	for i := len(b) - 3; i > start; i -= 3 {
		b = append(b, 0)
		copy(b[i+1:], b[i:])
		b[i] = ','
	}
	return b
}

// updated is when the visitor's last request counted.
func (w *waiting) updated() time.Time {
	if t := w.verdict.Pass.LastPoll; !t.IsZero() {
		return t.UTC()
	}
	return w.now.UTC()
}
