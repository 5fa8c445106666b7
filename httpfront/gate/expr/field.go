package expr

import (
	"net/netip"
	"strings"
)

// fields are what expressions can ask about a request. What is text is "" where
// the request does not have it, as operators expect of `http.referer eq ""`;
// elements of tables that are not there and an unknown country or address are
// missing.
var fields = map[string]*typed{
	"http.host":                       textField(func(r *Request) string { return r.Host }),
	"http.request.method":             textField(func(r *Request) string { return r.Method }),
	"http.request.version":            textField(func(r *Request) string { return r.Version }),
	"http.request.uri":                madeField(appendURI),
	"http.request.uri.path":           textField(func(r *Request) string { return r.Path }),
	"http.request.uri.path.extension": {kind: text, text: extension, buffered: true},
	"http.request.uri.query":          textField(func(r *Request) string { return r.Query }),
	"http.request.uri.args":           {kind: text, shape: table, named: arguments},
	"http.request.uri.args.names":     {kind: text, shape: array, elements: argumentNames},
	"http.request.uri.args.values":    {kind: text, shape: array, elements: argumentValues},
	"http.request.full_uri":           madeField(appendFullURI),
	"http.request.headers":            {kind: text, ofFields: true, shape: table, named: headers, fold: true},
	"http.request.headers.names":      {kind: text, ofFields: true, shape: array, elements: headersOf(request).names, lower: true},
	"http.request.headers.values":     {kind: text, ofFields: true, shape: array, elements: headersOf(request).values},
	"http.request.cookies":            {kind: text, shape: table, named: cookies},
	"http.cookie":                     joinedField("cookie", "; "),
	"http.referer":                    headerField("referer"),
	"http.user_agent":                 headerField("user-agent"),
	"http.x_forwarded_for":            joinedField("x-forwarded-for", ", "),
	"ip.src":                          {kind: address, address: source},
	"ip.src.country":                  {kind: text, ready: true, text: country},
	"ip.geoip.country":                {kind: text, ready: true, text: country},
	"ssl":                             {kind: truth, truth: func(r *Request, _ *scratch) bool { return r.Secure }},
}

// responseFields are what counting expressions can ask about the answer to a request
// besides.
var responseFields = map[string]*typed{
	"http.response.code":           {kind: number, number: func(r *Request, _ *scratch) (int64, bool) { return int64(r.Response.Code), r.Response.Code != 0 }},
	"http.response.headers":        {kind: text, ofFields: true, shape: table, named: headersOf(response).named, fold: true},
	"http.response.headers.names":  {kind: text, ofFields: true, shape: array, elements: headersOf(response).names, lower: true},
	"http.response.headers.values": {kind: text, ofFields: true, shape: array, elements: headersOf(response).values},
}

func request(r *Request) Headers { return r.Headers }

func response(r *Request) Headers { return r.Response.Headers }

func textField(get func(r *Request) string) *typed {
	return &typed{kind: text, ready: true, text: func(r *Request, _ *scratch) (string, bool) { return get(r), true }}
}

// madeField is text that has to be put together.
func madeField(appendTo func(dst []byte, r *Request) []byte) *typed {
	return &typed{kind: text, buffered: true, text: func(r *Request, s *scratch) (string, bool) {
		from := len(s.buf)
		s.buf = appendTo(s.buf, r)
		return s.since(from), true
	}}
}

func appendURI(dst []byte, r *Request) []byte {
	dst = append(dst, r.Path...)
	if r.Query == "" {
		return dst
	}
	return append(append(dst, '?'), r.Query...)
}

func appendFullURI(dst []byte, r *Request) []byte {
	scheme := "http://"
	if r.Secure {
		scheme = "https://"
	}
	return appendURI(append(append(dst, scheme...), r.Host...), r)
}

// headerField is the first field of a name.
func headerField(name string) *typed {
	all := headers(name)
	return &typed{kind: text, text: func(r *Request, _ *scratch) (string, bool) {
		v, _, _ := all(r, cursor{})
		return v, true
	}}
}

// joinedField is all fields of a name, which make one list (RFC 9110, 5.3).
func joinedField(name, separator string) *typed {
	all := headers(name)
	return &typed{kind: text, buffered: true, text: func(r *Request, s *scratch) (string, bool) {
		v, at, ok := all(r, cursor{})
		from := len(s.buf)
		for ok {
			var more string
			if more, at, ok = all(r, at); !ok {
				break
			}
			if len(s.buf) == from {
				s.buf = append(s.buf, v...)
			}
			s.buf = append(append(s.buf, separator...), more...)
		}
		if len(s.buf) == from {
			return v, true
		}
		return s.since(from), true
	}}
}

// extension is what follows the last dot of the path's last segment, in lower
// case. A dot that the segment begins with is that of a hidden file.
func extension(r *Request, s *scratch) (string, bool) {
	segment := r.Path[strings.LastIndexByte(r.Path, '/')+1:]
	dot := strings.LastIndexByte(segment, '.')
	if dot <= 0 {
		return "", true
	}
	return s.fold(segment[dot+1:], lowerByte), true
}

// source is the address of the visitor. An IPv4 address in IPv6's clothes is an
// IPv4 address: it depends on the listener which of the two arrives.
func source(r *Request, _ *scratch) (netip.Addr, bool) {
	return r.Source.Unmap().WithZone(""), r.Source.IsValid()
}

func country(r *Request, _ *scratch) (string, bool) { return r.Country, r.Country != "" }
