package page

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/ropeline/ropeline/httpfront/page/lang"
)

// messageMax is how many characters an operator's message may have. It stands on a
// page that has to stay small.
const messageMax = 300

// Config says how the visitors of a room are answered. The zero value is the
// built-in page, and JSON for programs.
type Config struct {
	// Template is the page of Compile instead of the built-in one. Nil: the
	// built-in page, which is also sent should the template fail.
	Template *Template
	// Language is the tag of the language for visitors who ask for none that we
	// have. Default "en-US".
	Language string
	// NoJSON makes programs get the page, as browsers do. The built-in page then
	// loads itself again instead of bringing itself up to date.
	NoJSON bool
	// Message is what the operator has to say to all who wait: plain text in one
	// language, up to 300 characters, lines kept. Empty: nothing.
	Message string
	// FrameAncestors are the sites that may show the page in a frame, as in a
	// Content-Security-Policy: 'self', 'none', or sources such as
	// https://shop.example. Default 'self'.
	FrameAncestors []string
	// Logger is told, once, that a template could not be rendered. The default is
	// slog.Default().
	Logger *slog.Logger
}

// Page answers the visitors of a room, or of several.
type Page struct {
	builtin  *builtin
	template *Template // nil: builtin
	failed   sync.Once // for the first failure of template
	log      *slog.Logger
	fallback lang.Tag
	noJSON   bool
	message  string
	frames   string
	csp      string
}

// New checks cfg and makes a Page.
func New(cfg Config) (*Page, error) {
	b, err := theBuiltin()
	if err != nil {
		return nil, err
	}
	frames, framesErr := frameAncestors(cfg.FrameAncestors)
	if framesErr != nil {
		framesErr = fmt.Errorf("frame ancestors: %w", framesErr)
	}
	messageErr := CheckMessage(cfg.Message)
	if messageErr != nil {
		messageErr = fmt.Errorf("message: %w", messageErr)
	}
	var languageErr error
	if err := checkLanguage(cmp.Or(cfg.Language, lang.English)); err != nil {
		languageErr = fmt.Errorf("language %q: %w", cfg.Language, err)
	}
	if err := errors.Join(framesErr, messageErr, languageErr); err != nil {
		return nil, err
	}
	p := &Page{
		builtin: b, template: cfg.Template, log: cmp.Or(cfg.Logger, slog.Default()),
		fallback: cmp.Or(cfg.Language, lang.English), noJSON: cfg.NoJSON, message: cfg.Message, frames: frames, csp: b.csp(frames),
	}
	if p.template != nil {
		// What a template brings along is its author's affair.
		p.csp = "frame-ancestors " + frames
	}
	return p, nil
}

// CheckMessage returns an error unless text may be a Config's Message.
func CheckMessage(text string) error {
	if n := utf8.RuneCountInString(text); n > messageMax {
		return fmt.Errorf("it has %d characters; want at most %d", n, messageMax)
	}
	return checkText(text)
}

// CheckFrameAncestors returns an error unless sources may be a Config's
// FrameAncestors.
func CheckFrameAncestors(sources []string) error {
	_, err := frameAncestors(sources)
	return err
}

// frameAncestors checks and joins the sources of that directive.
func frameAncestors(sources []string) (string, error) {
	if len(sources) == 0 {
		return ownFrames, nil
	}
	for _, s := range sources {
		switch {
		case s == "'none'" && len(sources) > 1:
			return "", errors.New("'none' stands alone")
		case s == "'self'" || s == "'none'":
		case s == "" || strings.ContainsFunc(s, notInSource):
			return "", fmt.Errorf("%q: want 'self', 'none', or a source such as https://shop.example", s)
		}
	}
	return strings.Join(slices.Compact(slices.Clone(sources)), " "), nil
}

// notInSource keeps a source from being more than one, or from ending the
// directive.
func notInSource(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune(`;,'"<>\`, r)
}

// checkLanguage returns an error unless we have the language of that tag.
func checkLanguage(tag lang.Tag) error {
	if lang.Of(tag) == nil {
		return fmt.Errorf("want one of %s", strings.Join(lang.Tags(), ", "))
	}
	return nil
}

// JSON reports whether programs are answered with JSON.
func (p *Page) JSON() bool { return !p.noJSON }

// HasTemplate reports whether the page is made from a template: then nobody knows which
// language it is in.
func (p *Page) HasTemplate() bool { return p.template != nil }

// ContentSecurityPolicy is for answers of AppendHTML.
func (p *Page) ContentSecurityPolicy() string { return p.csp }

// FrameAncestors are the sites that may show the page in a frame, as in a
// Content-Security-Policy.
func (p *Page) FrameAncestors() string { return p.frames }

// AppendHTML appends the page.
func (p *Page) AppendHTML(dst []byte, s *State) []byte {
	if p.template != nil {
		out, err := p.template.append(dst, s)
		if err == nil {
			return out
		}
		p.failed.Do(func() {
			p.log.Error("cannot render the template of a waiting page; sending the built-in page whenever that happens",
				slog.String("room", s.roomName), slog.Any("error", err))
		})
	}
	return p.builtin.append(dst, s)
}
