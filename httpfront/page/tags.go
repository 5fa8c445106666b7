package page

import (
	"fmt"
	"strings"
)

// The library tells of a template's tags without their lines, and takes templates
// that it then cannot render. So the tags are read once more here, by its rules,
// before it reads them.

// Rendering looks the name of every tag up in all sections that are open there, so
// these bound how long it takes: see BenchmarkWorstTemplate. Templates that people
// write have some dozens of tags, two or three inside each other.
const (
	tagsMax   = 10_000
	nestedMax = 32
)

// tag is one tag of a template that is not a comment.
type tag struct {
	line  int
	sigil byte // '#' '^' '/' '>', or 0 for a variable
	name  string
}

// tagReader reads the tags of a template.
type tagReader struct {
	src         string
	pos, line   int // line is that of pos, from 1
	open, close string
	sections    []byte // sigils of those that are open
}

// readTags returns the tags of src, or says which one of them cannot be. Sections
// that are not closed are left to the library.
func readTags(src string) ([]tag, error) {
	r := tagReader{src: src, line: 1, open: "{{", close: "}}"}
	var tags []tag
	for {
		start := strings.Index(src[r.pos:], r.open)
		if start < 0 {
			return tags, nil
		}
		r.advance(start)
		line := r.line
		r.advance(len(r.open))
		text, ok := r.text()
		if !ok {
			return nil, fmt.Errorf("line %d: a tag is not closed by %s", line, r.close)
		}
		t, ok, err := r.read(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		if ok {
			t.line = line
			tags = append(tags, t)
		}
		if len(tags) > tagsMax {
			return nil, fmt.Errorf("line %d: more than %d tags", line, tagsMax)
		}
	}
}

func (r *tagReader) advance(n int) {
	r.line += strings.Count(r.src[r.pos:r.pos+n], "\n")
	r.pos += n
}

// text returns what stands between the delimiters, and goes on behind them.
func (r *tagReader) text() (string, bool) {
	end := r.close
	if strings.HasPrefix(r.src[r.pos:], "{") {
		end = "}" + r.close
	}
	before, _, ok := strings.Cut(r.src[r.pos:], end)
	if !ok {
		return "", false
	}
	text := r.src[r.pos : r.pos+len(before)+len(end)-len(r.close)]
	r.advance(len(before) + len(end))
	return text, true
}

// read understands the text of a tag. It returns false for what shows nothing.
func (r *tagReader) read(text string) (tag, bool, error) {
	if text == "" {
		return tag{}, false, fmt.Errorf("a tag is empty")
	}
	name := strings.TrimSpace(text[1:])
	switch sigil := text[0]; sigil {
	case '!':
		return tag{}, false, nil
	case '=':
		return tag{}, false, r.setDelimiters(text)
	case '>':
		return tag{}, false, fmt.Errorf("%s%s%s: templates cannot include others; write its text here", r.open, text, r.close)
	case '#', '^':
		if r.sections = append(r.sections, sigil); len(r.sections) > nestedMax {
			return tag{}, false, fmt.Errorf("more than %d sections are open at once", nestedMax)
		}
		return tag{sigil: sigil, name: name}, true, r.checkDot(name, r.sections[:len(r.sections)-1])
	case '/':
		r.sections = r.sections[:max(0, len(r.sections)-1)]
		return tag{sigil: sigil, name: name}, true, nil
	case '{':
		inner, ok := strings.CutSuffix(text[1:], "}")
		if !ok {
			return tag{}, false, fmt.Errorf("a tag with three braces is not closed by three")
		}
		name = strings.TrimSpace(inner)
	case '&':
	default:
		name = text
	}
	return tag{name: name}, true, r.checkDot(name, r.sections)
}

// checkDot refuses "." where it stands for everything and not for the value of a
// section.
func (r *tagReader) checkDot(name string, sections []byte) error {
	if name == "." && !strings.Contains(string(sections), "#") {
		return fmt.Errorf(`%s.%s has a meaning only inside a section such as %s#waitTime%s`, r.open, r.close, r.open, r.close)
	}
	return nil
}

func (r *tagReader) setDelimiters(text string) error {
	inner, ok := strings.CutSuffix(text[1:], "=")
	open, end, two := strings.Cut(strings.TrimSpace(inner), " ")
	if !ok || !two || strings.ContainsAny(open+end, "= \t\r\n") || open == "" || end == "" {
		return fmt.Errorf("%s%s%s: want two delimiters with one space between them, as in {{=<%% %%>=}}", r.open, text, r.close)
	}
	r.open, r.close = open, end
	return nil
}
