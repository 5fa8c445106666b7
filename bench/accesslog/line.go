package accesslog

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Bounds on what one line may hold. A request line or a browser's name beyond
// them would be refused by any careful server anyway.
const (
	maxAddress = 255
	maxPath    = 8 << 10
	maxAgent   = 512
)

// Preflight is the method by which a browser asks on behalf of a script, without
// cookies. Rooms let it pass, so it says nothing about anybody's place.
const Preflight = "OPTIONS"

// Entry is one request of a log.
type Entry struct {
	Address string // of the client, never empty
	At      time.Time
	Method  string
	Path    string // path and query, starts with "/", no blanks and no controls
	Agent   string // empty in the common format
}

// Malformed says what is wrong with a line that is no request.
type Malformed struct {
	Line   int // from 1; 0 if the line stands alone
	Column int // in bytes, from 1: where the part begins that is wrong
	Reason error
}

// Error names the line; whoever also knows the file puts it and the column in
// front.
func (m *Malformed) Error() string {
	if m.Line == 0 {
		return m.Reason.Error()
	}
	return fmt.Sprintf("line %d: %v", m.Line, m.Reason)
}

// Unwrap returns the reason alone.
func (m *Malformed) Unwrap() error { return m.Reason }

// Parse reads a line in common or combined log format:
//
//	address ident user [02/Jan/2006:15:04:05 -0700] "METHOD path HTTP/1.1" status bytes "referer" "agent"
//
// The last two are of the combined format. The result owns its memory. An error
// is a [*Malformed] without a line number.
func Parse(line string) (Entry, error) {
	at := format.FindStringSubmatchIndex(line)
	if at == nil || at[3] > maxAddress {
		return Entry{}, &Malformed{Column: 1, Reason: errors.New("not a line of an access log")}
	}
	part := func(n int) string { return line[at[2*n]:at[2*n+1]] }
	wrong := func(n int, err error) (Entry, error) { return Entry{}, &Malformed{Column: at[2*n] + 1, Reason: err} }
	e := Entry{Address: strings.Clone(part(1))}
	var err error
	if e.At, err = time.Parse("02/Jan/2006:15:04:05 -0700", part(2)); err != nil {
		return wrong(2, fmt.Errorf("time %.40q is not like 17/May/2015:10:05:03 +0000", part(2)))
	}
	if e.Method, e.Path, err = parseRequest(unescape(part(3))); err != nil {
		return wrong(3, err)
	}
	if at[8] >= 0 {
		if agent := unescape(part(4)); agent != "-" && len(agent) <= maxAgent && !strings.ContainsFunc(agent, isControl) {
			e.Agent = agent
		}
	}
	return e, nil
}

// format is that of a line. The user's name may hold blanks and even brackets; a time never does, so the bracket that a
// quoted request follows is the right one. What status and size say is not needed; that they are there tells a log from
// other text. Anything behind them that is not the two quoted texts of the combined format is the operator's own.
var format = regexp.MustCompile(`^([^ ]+) .*?\[([^\[]*)\] "((?:[^"\\]|\\.)*)" [1-9]\d\d (?:\d+|-)(?: |$)(?:"(?:[^"\\]|\\.)*" "((?:[^"\\]|\\.)*)")?`)

// unescape undoes what servers do to bytes that could break a log, such as \" and \xhh. An escape that
// it does not know stays as it is.
func unescape(s string) string {
	b := make([]byte, 0, len(s))
	for len(s) > 0 {
		c, _, rest, err := strconv.UnquoteChar(s, '"')
		if s[0] != '\\' || err != nil || c > 0xff {
			c, rest = rune(s[0]), s[1:]
		}
		b, s = append(b, byte(c)), rest
	}
	return string(b)
}

// parseRequest reads a request line. Its target may be a path or a whole URL,
// of which only the path is kept: where to go is the replay's business.
func parseRequest(line string) (method, path string, err error) {
	method, target, ok := strings.Cut(line, " ")
	if !ok {
		return "", "", fmt.Errorf("request %.40q is not like GET / HTTP/1.1", line)
	}
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", Preflight:
	default:
		return "", "", fmt.Errorf("method %.20q is not replayed", method)
	}
	// HTTP/0.9 had no version; a path may hold blanks, so cut at the last one.
	if i := strings.LastIndexByte(target, ' '); i >= 0 && strings.HasPrefix(target[i+1:], "HTTP/") {
		target = target[:i]
	}
	for _, scheme := range []string{"http://", "https://"} {
		if after, ok := strings.CutPrefix(target, scheme); ok {
			target = "/"
			if i := strings.IndexByte(after, '/'); i >= 0 {
				target = after[i:]
			}
		}
	}
	if !strings.HasPrefix(target, "/") {
		return "", "", fmt.Errorf("request for %.40q, which is not a path", target)
	}
	path = CleanPath(target)
	if len(path) > maxPath {
		return "", "", fmt.Errorf("path of %d bytes is too long", len(path))
	}
	return strings.Clone(method), path, nil
}

// CleanPath returns p so that it can stand in a request line: without fragment,
// and with every byte percent-encoded that is no visible ASCII. The result
// shares no memory with p.
func CleanPath(p string) string {
	p, _, _ = strings.Cut(p, "#")
	const hex = "0123456789ABCDEF"
	b := make([]byte, 0, len(p))
	for i := range len(p) {
		if c := p[i]; c > ' ' && c < 0x7f {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(b)
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }
