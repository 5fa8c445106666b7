package room

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"unicode"
)

// Path is the path of a request in each of the readings in which servers may take it.
type Path struct {
	// Decoded is the path decoded once, with single slashes; segments keep their
	// parameters. Rules go by it.
	Decoded string

	// Route is Decoded without parameters, which begin with ";" and end with the
	// segment: "/a;x/b" is "/a/b". Rooms are found by it.
	Route string

	// Literal and LiteralRoute are the same for servers to which an encoded slash
	// ("%2F") is no end of a segment; in both it stays encoded. They are empty where
	// none is encoded.
	Literal, LiteralRoute string
}

// Why a path has no reading that all servers share.
var (
	errBackslash = errors.New(`the path has a backslash, as such or as %5C; browsers send a slash`)
	errDots      = errors.New(`the path has "." or ".." as a segment, as such, encoded or before ";"; browsers resolve them before they ask`)
	errControl   = errors.New("the path has a control character, as such or encoded, as %00 or %0A")
)

// ReadPath reads the path of a request, without its query. What some servers take for
// one path and some for another has an error that says so: dot segments in any
// spelling, since some resolve them before they look at the path and some after;
// backslashes, which are slashes to some; and control characters: some end at a NUL, and patterns of many that end in "$"
// know "/a\n" as "/a".
func ReadPath(raw []byte) (Path, error) {
	if isPlain(raw) {
		s := string(raw)
		return Path{Decoded: s, Route: s}, nil
	}
	decoded, slashes := decodePath(raw, false)
	if err := checkSegments(decoded); err != nil {
		return Path{}, err
	}
	var p Path
	p.Decoded, p.Route = cleanPath(decoded)
	if slashes {
		literal, _ := decodePath(raw, true)
		p.Literal, p.LiteralRoute = cleanPath(literal)
	}
	return p, nil
}

// isPlain reports whether a path has one reading, which is itself, as most have.
func isPlain(path []byte) bool {
	if len(path) == 0 || path[0] != '/' {
		return false
	}
	for i, c := range path {
		switch c {
		case '%', ';', '\\':
			return false
		case '/', '.':
			if i > 0 && path[i-1] == '/' {
				return false
			}
		default:
			if c < ' ' || c >= 0x7f {
				return false
			}
		}
	}
	return true
}

// decodePath decodes a path once. It reports whether a slash is encoded in it, and
// leaves it so where literal is set. What is not encoded as it should stays as it is.
func decodePath(raw []byte, literal bool) (decoded []byte, slashes bool) {
	decoded = make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c == '%' && i+2 < len(raw) {
			if hi, lo := unhex(raw[i+1]), unhex(raw[i+2]); hi < 16 && lo < 16 {
				c = hi<<4 | lo
				i += 2
				if c == '/' {
					slashes = true
					if literal {
						decoded = append(decoded, "%2F"...)
						continue
					}
				}
			}
		}
		decoded = append(decoded, c)
	}
	return decoded, slashes
}

// checkSegments returns why servers read a decoded path in several ways, if they do.
func checkSegments(decoded []byte) error {
	if bytes.IndexByte(decoded, '\\') >= 0 {
		return errBackslash
	}
	if bytes.ContainsFunc(decoded, unicode.IsControl) {
		return errControl
	}
	for seg := range bytes.SplitSeq(decoded, []byte("/")) {
		if name := withoutParameters(seg); string(name) == "." || string(name) == ".." {
			return errDots
		}
	}
	return nil
}

func withoutParameters(segment []byte) []byte {
	name, _, _ := bytes.Cut(segment, []byte(";"))
	return name
}

// cleanPath returns a decoded path with single slashes, and the same without
// parameters.
func cleanPath(decoded []byte) (full, route string) {
	full = joinSegments(decoded, func(segment []byte) []byte { return segment })
	if strings.IndexByte(full, ';') < 0 {
		return full, full
	}
	return full, joinSegments(decoded, withoutParameters)
}

func joinSegments(decoded []byte, name func(segment []byte) []byte) string {
	out := make([]byte, 0, len(decoded)+1)
	for seg := range bytes.SplitSeq(decoded, []byte("/")) {
		if seg = name(seg); len(seg) > 0 {
			out = append(append(out, '/'), seg...)
		}
	}
	if bytes.HasSuffix(decoded, []byte("/")) || len(out) == 0 {
		out = append(out, '/')
	}
	return string(out)
}

// routePaths says which paths a route may have.
const routePaths = `a path that begins with "/", of at most 2048 bytes, without query or fragment, backslashes, ";", encoded slashes, and "." or ".." as a segment`

// RoutePath returns the path of a route, in any spelling that a request for it may have,
// as the one that Path.Route is compared with. No request is found at what it refuses.
func RoutePath(path string) (string, error) {
	p, err := ReadPath([]byte(path))
	if err != nil || !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "?#") || p.Literal != "" || !isRoutePath(p.Decoded) {
		return "", errors.New(routePaths)
	}
	return p.Decoded, nil
}

// isRoutePath reports whether requests are found at a path.
func isRoutePath(path string) bool {
	b := []byte(path)
	for _, c := range b {
		if c < ' ' || c == 0x7f || c == '?' || c == '#' || c == ';' {
			return false
		}
	}
	return len(b) <= 2048 && len(b) > 0 && b[0] == '/' && checkSegments(b) == nil && !strings.Contains(path, "//")
}

// unhex returns the value of a hexadecimal digit, or 16 or more.
func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 0xff
}

// NormalHost returns a host, which has no port, as the host of a request is compared: in
// lower case, without a dot at its end, an IPv6 address in brackets and in its shortest
// form. It reports whether it can be one. Underscores are let through: they are no
// letters of host names, but of names that people give to containers.
func NormalHost(host string) (normal string, ok bool) {
	if strings.HasPrefix(host, "[") {
		a, err := netip.ParseAddr(strings.TrimSuffix(host[1:], "]"))
		if err != nil || !a.Is6() || a.Zone() != "" || host[len(host)-1] != ']' {
			return "", false
		}
		return "[" + a.String() + "]", true
	}
	host = strings.TrimSuffix(host, ".")
	if !isHostName(host) {
		return "", false
	}
	return strings.ToLower(host), true
}

func isHostName(s string) bool {
	if len(s) == 0 || len(s) > 253 {
		return false
	}
	for i := range len(s) {
		switch b := s[i]; {
		case isCookieByte(b):
		case b == '.' && i > 0 && s[i-1] != '.' && i < len(s)-1:
		default:
			return false
		}
	}
	return true
}

func isCookieByte(b byte) bool {
	return b == '-' || b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}
