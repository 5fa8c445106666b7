package httpfront

import (
	"bytes"
	"net/netip"
	"strings"
)

// equalFold reports whether b is lower, which is in lower case, in any case. It
// folds ASCII only; what folds to a letter in Unicode is not that letter here.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if lowerByte(c) != lower[i] {
			return false
		}
	}
	return true
}

func lowerByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= lowerByte(c) && lowerByte(c) <= 'z'
}

// isToken reports whether c may stand in the name of a field (RFC 9110, 5.6.2).
func isToken(c byte) bool {
	return isAlnum(c) || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// elements calls yield with every element of a comma-separated list.
func elements(list []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for part := range bytes.SplitSeq(list, []byte(",")) {
			if part = bytes.Trim(part, " \t"); len(part) > 0 && !yield(part) {
				return
			}
		}
	}
}

// appendElement appends an element to a comma-separated list.
func appendElement(list, element []byte) []byte {
	if len(list) > 0 {
		list = append(list, ',')
	}
	return append(list, element...)
}

// hasToken reports whether a comma-separated list has token, in lower case, as
// an element.
func hasToken(list []byte, token string) bool {
	for e := range elements(list) {
		if equalFold(e, token) {
			return true
		}
	}
	return false
}

func isIPv6(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6() && a.Zone() == ""
}

// cleanPath returns the path of a target as most origins will understand it:
// decoded once, without dot segments and doubled slashes. It serves to find the
// room, so that /%73hop and /x/../shop are not ways around the room of /shop.
// The origin is sent the target as it came.
func cleanPath(target []byte) string {
	path, _, _ := bytes.Cut(target, []byte("?"))
	if isClean(path) {
		return string(path)
	}
	decoded := make([]byte, 0, len(path))
	for i := 0; i < len(path); i++ {
		if path[i] == '%' && i+2 < len(path) {
			if hi, lo := unhex(path[i+1]), unhex(path[i+2]); hi < 16 && lo < 16 {
				decoded = append(decoded, hi<<4|lo)
				i += 2
				continue
			}
		}
		decoded = append(decoded, path[i])
	}
	out := make([]byte, 0, len(decoded)+1)
	rest := decoded
	for len(rest) > 0 {
		var seg []byte
		slash := bytes.IndexByte(rest, '/')
		if slash < 0 {
			seg, rest = rest, nil
		} else {
			seg, rest = rest[:slash], rest[slash+1:]
		}
		switch string(seg) {
		case "", ".":
		case "..":
			out = out[:max(bytes.LastIndexByte(out, '/'), 0)]
		default:
			out = append(append(out, '/'), seg...)
			continue
		}
	}
	if n := len(decoded); n > 0 && decoded[n-1] == '/' || len(out) == 0 {
		out = append(out, '/')
	}
	return string(out)
}

// isClean reports whether cleanPath has nothing to do, as on most requests.
func isClean(path []byte) bool {
	if len(path) == 0 || path[0] != '/' {
		return false
	}
	for i, c := range path {
		if c == '%' || i > 0 && path[i-1] == '/' && (c == '/' || c == '.') {
			return false
		}
	}
	return true
}

// unhex returns the value of a hexadecimal digit, or 16 or more.
func unhex(c byte) byte {
	switch c = lowerByte(c); {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	}
	return 0xff
}
