package load

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Bounds on what one line of a log may make a visitor send. A request line or a
// browser's name beyond them would be refused by any careful server anyway.
const (
	maxAddress = 255
	maxPath    = 8 << 10
	maxAgent   = 512
)

// preflight is the method by which a browser asks on behalf of a script, without
// cookies. Rooms let it pass, so it says nothing about anybody's place.
const preflight = "OPTIONS"

// entry is one line of an access log, as far as a replay needs it.
type entry struct {
	address string // of the client
	at      time.Time
	method  string
	path    string // path and query, starts with "/", no blanks and no controls
	agent   string // empty in the common format
}

// parseLine reads a line in common or combined log format:
//
//	address ident user [02/Jan/2006:15:04:05 -0700] "METHOD path HTTP/1.1" status bytes "referer" "agent"
//
// The last two are of the combined format. The result owns its memory.
func parseLine(line string) (entry, error) {
	var e entry
	address, rest, ok := strings.Cut(line, " ")
	if !ok || address == "" || len(address) > maxAddress {
		return e, errors.New("no client address")
	}
	e.address = strings.Clone(address)

	// The user's name may hold blanks and even brackets; a time never does, so
	// the bracket that a quoted request follows is the right one.
	head, rest, ok := strings.Cut(rest, `] "`)
	if !ok {
		return e, errors.New("no time in brackets followed by a quoted request")
	}
	open := strings.LastIndexByte(head, '[')
	if open < 0 {
		return e, errors.New("no time in brackets")
	}
	at, err := time.Parse("02/Jan/2006:15:04:05 -0700", head[open+1:])
	if err != nil {
		return e, fmt.Errorf("time %.40q is not like 17/May/2015:10:05:03 +0000", head[open+1:])
	}
	e.at = at

	request, rest, ok := quoted(rest)
	if !ok {
		return e, errors.New("the quoted request does not end")
	}
	if e.method, e.path, err = parseRequest(request); err != nil {
		return e, err
	}
	if err := parseStatus(&rest); err != nil {
		return e, err
	}
	e.agent = parseAgent(rest)
	return e, nil
}

// parseStatus takes the status and the size off the front of rest. What they
// say is not needed; that they are there tells a log from other text.
func parseStatus(rest *string) error {
	status, after, _ := strings.Cut(strings.TrimPrefix(*rest, " "), " ")
	if n, err := strconv.Atoi(status); err != nil || n < 100 || n > 999 {
		return fmt.Errorf("status %.20q is not a number of three digits", status)
	}
	size, after, _ := strings.Cut(after, " ")
	if size != "-" {
		if _, err := strconv.ParseUint(size, 10, 64); err != nil {
			return fmt.Errorf("size %.20q is neither a number nor -", size)
		}
	}
	*rest = after
	return nil
}

// parseAgent reads the browser's name off the two quoted texts of the combined
// format. Anything else is the common format, with or without an addition of
// the operator's own, and gives "".
func parseAgent(rest string) string {
	if !strings.HasPrefix(rest, `"`) {
		return ""
	}
	_, rest, ok := quoted(rest[1:])
	if !ok || !strings.HasPrefix(rest, ` "`) {
		return ""
	}
	agent, _, ok := quoted(rest[2:])
	if !ok || agent == "-" || len(agent) > maxAgent || strings.ContainsFunc(agent, isControl) {
		return ""
	}
	return strings.Clone(agent)
}

// quoted reads up to the closing quote of a text whose opening quote was
// already read, and returns the text unescaped and what follows the quote.
func quoted(s string) (text, rest string, ok bool) {
	escaped := false
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			escaped = true
			i++ // whatever follows is not the closing quote
		case '"':
			if escaped {
				return unescape(s[:i]), s[i+1:], true
			}
			return s[:i], s[i+1:], true
		}
	}
	return "", "", false
}

// unescape undoes what servers do to bytes that could break a log: \" and \\,
// \n and \t, and \xhh. An escape that it does not know stays as it is.
func unescape(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case '"', '\\':
			b.WriteByte(s[i])
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'x':
			if i+2 < len(s) {
				if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
					b.WriteByte(byte(n))
					i += 2
					continue
				}
			}
			b.WriteString(`\x`)
		default:
			b.WriteByte('\\')
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// parseRequest reads a request line. Its target may be a path or a whole URL,
// of which only the path is kept: where to go is the replay's business.
func parseRequest(line string) (method, path string, err error) {
	method, target, ok := strings.Cut(line, " ")
	if !ok {
		return "", "", fmt.Errorf("request %.40q is not like GET / HTTP/1.1", line)
	}
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", preflight:
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
	path = cleanPath(target)
	if len(path) > maxPath {
		return "", "", fmt.Errorf("path of %d bytes is too long", len(path))
	}
	return strings.Clone(method), path, nil
}

// cleanPath returns p so that it can stand in a request line: without fragment,
// and with every byte percent-encoded that is no visible ASCII. The result
// shares no memory with p.
func cleanPath(p string) string {
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
