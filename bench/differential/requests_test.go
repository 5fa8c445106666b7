package differential

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// usual is a kind of request that browsers and programs send.
type usual struct {
	name string
	// head is a request line and fields, each with a line end. Host, X-Id, and where a body has none of its own the length
	// are added.
	head  string
	body  string
	after string // what is said when the protocol is switched, and comes back
	more  int    // how often it is sent again on the same connection
}

// chunked returns content in chunks of so many bytes, with lines of trailers.
func chunked(content string, size int, trailers string) string {
	var b strings.Builder
	for part := range slices.Chunk([]byte(content), size) {
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(part), part)
	}
	return b.String() + "0\r\n" + trailers + "\r\n"
}

const (
	chunks    = "Transfer-Encoding: chunked\n"
	form      = "Content-Type: application/x-www-form-urlencoded\n"
	plain     = "Content-Type: text/plain\n"
	websocket = "Connection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n"
	sometime  = "Sat, 01 Jan 2050 00:00:00 GMT" // after everything
	once      = "Thu, 01 Jan 1998 00:00:00 GMT" // before it
)

// usuals are the kinds of requests.
func usuals() (all []usual) {
	add := func(name, head string, body ...string) {
		all = append(all, usual{name: name, head: head, body: strings.Join(body, "")})
	}
	add("a page", "GET / HTTP/1.1\n")
	add("a browser's", "GET /a HTTP/1.1\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\nAccept: text/html,application/xhtml+xml,*/*;q=0.8\nAccept-Language: de,en;q=0.5\nDNT: 1\nSec-Fetch-Dest: document\nSec-Fetch-Mode: navigate\nUpgrade-Insecure-Requests: 1\nReferer: https://a.example/b?c#d\nCache-Control: max-age=0\nPragma: no-cache\n")
	add("HEAD", "HEAD / HTTP/1.1\n")
	add("HEAD of parts", "HEAD /parts HTTP/1.1\n")
	add("OPTIONS", "OPTIONS /a HTTP/1.1\n")
	add("OPTIONS of the server", "OPTIONS * HTTP/1.1\n")
	add("a preflight", "OPTIONS /a HTTP/1.1\nOrigin: https://b.example\nAccess-Control-Request-Method: PUT\nAccess-Control-Request-Headers: x-a\n")
	add("from another page", "GET /a HTTP/1.1\nOrigin: https://b.example\n")
	for _, method := range []string{"DELETE", "PROPFIND", "PURGE", "TRACE"} {
		add(method, method+" /a HTTP/1.1\n")
	}

	// Addresses.
	addEach := func(head string, of map[string]string) {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			add(name, fmt.Sprintf(head, of[name]))
		}
	}
	addEach("GET %s HTTP/1.1\n", map[string]string{
		"a query": "/a?b=1&b=2&c=&d", "an empty query": "/a?", "brackets in a query": `/a?q=[a]|{b}^"<>`, "an encoded query": "/a?q=%26%3D%23+%20%C3%A9", "an encoded path": "/caf%C3%A9%20au%20lait",
		"small hex digits": "/caf%c3%a9", "what needs no encoding": "/%7Eab%41", "an encoded slash": "/a%2Fb", "an encoded percent": "/100%25", "signs in a path": "/a:b@c!$&'()*+,=~", "parameters in a path": "/a;b=1/c;d",
		"a slash at the end": "/a/", "two slashes": "/a//b", "a long path": "/" + strings.Repeat("abcdefgh/", 400), "a long query": "/a?" + strings.Repeat("abcdefg=1&", 600),
		"an absolute address": "http://a.example/a?b",
	})
	add("a port in Host", "GET /a HTTP/1.1\nHost: a.example:80\n")
	add("capitals in Host", "GET /a HTTP/1.1\nHost: A.Example\n")
	add("another host", "GET /a HTTP/1.1\nHost: open.example\n")

	// Bodies.
	add("a form", "POST /a HTTP/1.1\n"+form, "a=1&b=%C3%A9&c=+")
	add("JSON", "POST /a HTTP/1.1\nContent-Type: application/json; charset=utf-8\n", `{"a": "é\u0000"}`)
	add("files", "POST /a HTTP/1.1\nContent-Type: multipart/form-data; boundary=x\n", "--x\r\nContent-Disposition: form-data; name=\"a\"; filename=\"a.bin\"\r\n\r\n\x00\xff\r\n--x--\r\n")
	add("an empty body", "POST /a HTTP/1.1\nContent-Length: 0\n")
	add("no body", "POST /a HTTP/1.1\n")
	add("PUT", "PUT /a HTTP/1.1\n"+plain, "content")
	add("PATCH", "PATCH /a HTTP/1.1\n"+plain, "content")
	add("DELETE with a body", "DELETE /a HTTP/1.1\n"+plain, "content")
	add("GET with a body", "GET /a HTTP/1.1\n"+plain, "content")
	add("chunks", "POST /a HTTP/1.1\n"+plain+chunks, chunked("some content in chunks", 5, ""))
	add("no chunks", "POST /a HTTP/1.1\n"+plain+chunks, chunked("", 1, ""))
	add("chunks with trailers", "POST /a HTTP/1.1\n"+plain+chunks+"Trailer: X-Sum\n", chunked("some content", 5, "X-Sum: 1\r\n"))
	add("100-continue", "POST /a HTTP/1.1\n"+plain+"Expect: 100-continue\n", "content")
	add("100-continue and chunks", "PUT /a HTTP/1.1\n"+plain+chunks+"Expect: 100-continue\n", chunked("content", 3, ""))
	add("a compressed body", "POST /a HTTP/1.1\nContent-Type: application/json\nContent-Encoding: gzip\n", "\x1f\x8b not gzip")
	add("a large body", "POST /a HTTP/1.1\nContent-Type: application/octet-stream\n", strings.Repeat("0123456789abcdef", 3<<16))
	add("large chunks", "POST /a HTTP/1.1\nContent-Type: application/octet-stream\n"+chunks, chunked(strings.Repeat("0123456789abcdef", 2<<16), 60_000, ""))

	// Fields.
	add("a field twice", "GET /a HTTP/1.1\nX-A: 1\nX-B: b\nX-A: 2\nAccept: text/html\nAccept: text/plain\n")
	add("odd fields", "GET /a HTTP/1.1\nX-A:\nx-b:   b c  \nX!#$%&'*+.^`|~9: d\nX-C: \"a, b\"; c=\"\\\\\"\n")
	add("bytes beyond ASCII", "GET /a HTTP/1.1\nX-A: caf\xe9 \xc3\xa9\n")
	add("many fields", "GET /a HTTP/1.1\n"+strings.Repeat("X-Many: 1\n", 60))
	add("cookies", "GET /a HTTP/1.1\nCookie: a=1; b=\"2 3\"; c=x=y\n")
	add("cookies in lines", "GET /a HTTP/1.1\nCookie: a=1\nX-A: 1\nCookie: b=2; c=3\n")
	add("large cookies", "GET /a HTTP/1.1\nCookie: a="+strings.Repeat("x", 4000)+"\n")
	add("a password", "GET /a HTTP/1.1\nAuthorization: Basic YTpi\n")
	add("TE", "GET /trailers HTTP/1.1\nTE: trailers\nConnection: TE\n")
	add("a field of the connection", "GET /a HTTP/1.1\nConnection: X-A\nX-A: 1\n")

	// Parts, and what the visitor has.
	addEach("GET /file HTTP/1.1\n%s\n", map[string]string{
		"a range": "Range: bytes=2-11", "the end": "Range: bytes=-7", "ranges": "Range: bytes=0-1,5-9", "a range that is not there": "Range: bytes=9999999-", "a range if unchanged": "Range: bytes=0-3\nIf-Range: \"other\"",
		"any tag": "If-None-Match: *", "no tag": `If-Match: "other"`, "unchanged": "If-Modified-Since: " + sometime, "changed": "If-Unmodified-Since: " + once,
	})
	add("HEAD of a file", "HEAD /file HTTP/1.1\n")
	add("a file", "GET /file HTTP/1.1\n")
	add("compressed", "GET /gzip HTTP/1.1\nAccept-Encoding: gzip, br\n")
	add("not compressed", "GET /gzip HTTP/1.1\nAccept-Encoding: identity\n")

	// Answers.
	for _, code := range []int{204, 205, 299, 304, 400, 401, 403, 404, 405, 410, 413, 418, 429, 500, 502, 503, 504, 599} {
		add(fmt.Sprint(code), fmt.Sprintf("GET /status/%d HTTP/1.1\n", code))
	}
	add("HEAD, 404", "HEAD /status/404 HTTP/1.1\n")
	for _, code := range []int{301, 302, 303, 307, 308} {
		add(fmt.Sprint(code), fmt.Sprintf("GET /to/%d HTTP/1.1\n", code))
	}
	add("POST and elsewhere", "POST /to/303 HTTP/1.1\n"+form, "a=1")
	for _, path := range []string{"many", "large", "parts", "events", "early", "trailers", "close", "bytes", "raise", "download"} {
		add("the answer "+path, "GET /"+path+" HTTP/1.1\n")
	}

	// Connections.
	add("h2c", "GET /a HTTP/1.1\nConnection: Upgrade, HTTP2-Settings\nUpgrade: h2c\nHTTP2-Settings: AAMAAABkAAQAAP__\n")
	add("closing", "GET /a HTTP/1.1\nConnection: close\n")
	add("HTTP/1.0", "GET /a HTTP/1.0\n")
	add("HTTP/1.0, keeping", "GET /a HTTP/1.0\nConnection: keep-alive\n")
	add("HTTP/1.0, parts", "GET /parts HTTP/1.0\n")
	add("HTTP/1.0, a form", "POST /a HTTP/1.0\n"+form, "a=1")
	all = append(all,
		usual{name: "a WebSocket", head: "GET /socket HTTP/1.1\n" + websocket, after: "\x81\x85\x00\x00\x00\x00hello"},
		usual{name: "kept", head: "GET /a HTTP/1.1\n", more: 2},
		usual{name: "kept, with bodies", head: "POST /a HTTP/1.1\n" + plain, body: "content", more: 2},
		usual{name: "kept, with chunks", head: "POST /a HTTP/1.1\n" + plain + chunks, body: chunked("content", 3, ""), more: 2})
	return all
}

// bytes returns what is sent, with the name of the request and further lines.
func (u usual) bytes(id, lines string) []byte {
	line, fields, _ := strings.Cut(u.head, "\n")
	if !strings.Contains("\n"+fields, "\nHost: ") {
		line += "\nHost: " + protectedHost
	}
	if u.body != "" && !strings.Contains(fields, chunks) {
		fields += fmt.Sprintf("Content-Length: %d\n", len(u.body))
	}
	return []byte(strings.ReplaceAll(line+"\nX-Id: "+id+"\n"+fields+lines+"\n", "\n", "\r\n") + u.body)
}

// reply is one answer.
type reply struct {
	interim  []string // heads before it but those of 100
	status   string
	fields   []string
	body     []byte
	trailers []string
	wrong    string // what broke it off
}

// hearReply reads the answer to a request of that method.
func hearReply(r *bufio.Reader, method string) (a reply) {
	for a.status == "" {
		head, err := lines(r)
		if err != nil || len(head) == 0 {
			return reply{wrong: fmt.Sprintf("no head: %v", err)}
		}
		switch code := code(head[0]); {
		case code == 100:
		case code < 200 && code != 101:
			a.interim = append(a.interim, strings.Join(head, "\n"))
		default:
			a.status, a.fields = head[0], head[1:]
		}
	}
	var err error
	length := value(a.fields, "Content-Length")
	switch code := code(a.status); {
	case method == "HEAD" || code == 101 || code == 204 || code == 304:
	case strings.EqualFold(value(a.fields, "Transfer-Encoding"), "chunked"):
		a.body, a.trailers, err = unchunked(r)
	case length != "":
		n, _ := strconv.Atoi(length)
		a.body = make([]byte, n)
		_, err = io.ReadFull(r, a.body)
	default:
		a.body, err = io.ReadAll(r)
	}
	if err != nil {
		a.wrong = err.Error()
	}
	return a
}

func code(status string) int {
	_, rest, _ := strings.Cut(status, " ")
	number, _, _ := strings.Cut(rest, " ")
	n, _ := strconv.Atoi(number)
	return n
}

// lines reads lines up to an empty one.
func lines(r *bufio.Reader) (all []string, err error) {
	for {
		l, err := r.ReadString('\n')
		if err != nil {
			return all, err
		}
		if l = strings.TrimRight(l, "\r\n"); l == "" {
			return all, nil
		}
		all = append(all, l)
	}
}

func unchunked(r *bufio.Reader) (body []byte, trailers []string, err error) {
	var b bytes.Buffer
	for {
		l, err := r.ReadString('\n')
		if err != nil {
			return b.Bytes(), nil, err
		}
		size, err := strconv.ParseInt(strings.TrimSpace(l), 16, 32)
		if err != nil || size == 0 {
			trailers, rest := lines(r)
			return b.Bytes(), trailers, cmp.Or(err, rest)
		}
		if _, err := io.CopyN(&b, r, size); err != nil {
			return b.Bytes(), nil, err
		}
		if _, err := r.Discard(2); err != nil {
			return b.Bytes(), nil, err
		}
	}
}

// value returns the value of the first field of that name.
func value(fields []string, name string) string {
	for _, f := range fields {
		if n, v, _ := strings.Cut(f, ":"); strings.EqualFold(n, name) {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
