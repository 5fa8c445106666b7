package httpfront

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// skeleton is what the origin was sent, without the fields that say nothing of
// where a message goes and ends.
func (o *rawOrigin) skeleton() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out strings.Builder
	for _, s := range o.sent {
		for line := range strings.SplitAfterSeq(s.text(), "\n") {
			name, _, isField := strings.Cut(strings.ReplaceAll(strings.ToLower(line), "_", "-"), ": ")
			switch {
			case !isField, name == "content-length", name == "transfer-encoding", name == "host", name == "trailer", strings.HasPrefix(name, "x-t"):
				out.WriteString(line)
			}
		}
	}
	return out.String()
}

const (
	hostLine = "Host: good\r\n"
	chunked  = "POST / HTTP/1.1\r\n" + hostLine + "Transfer-Encoding: chunked\r\n\r\n"
	// sentChunks is how the origin gets a body of "hello" that came in chunks.
	sentChunks = chunked + "5\r\nhello\r\n0\r\n\r\n"
	sentGet    = "GET / HTTP/1.1\r\n" + hostLine + "\r\n"
	sentNext   = "GET /next HTTP/1.1\r\n" + hostLine + "\r\n"
	// next is a second request, which is served where the first one is.
	next = "GET /next HTTP/1.1\r\n" + hostLine + "Connection: close\r\n\r\n"
)

// smuggling is what is sent, followed by next, and what comes of it: the codes
// of the answers, and the skeleton at the origin. A body that turns out to be
// out of order while it is passed on has reached the origin in part; "…" at the
// end of sent stands for anything but the end of a request.
type smuggling struct {
	raw   string
	codes string
	sent  string
}

// TestNothingIsSmuggled looks at the origin's bytes. Each request is refused, and
// then the connection closes, or there is one way only to read what is sent on.
func TestNothingIsSmuggled(t *testing.T) {
	for name, c := range smugglingCases() {
		t.Run(name, func(t *testing.T) {
			o, f := serveRaw(t, nil, okAnswer, func(c *Config) { c.Limits.Body = 1000 })
			o.lasts = true
			got := f.raw(c.raw + next)
			equal(t, "codes of the answers", codesOf(got), c.codes)
			if c.codes != "200 200" {
				has(t, "the answers", got, "\r\nConnection: close\r\n")
			}
			sent := o.skeleton()
			lacks(t, "the origin", sent, "/hidden")
			if want, open := strings.CutSuffix(c.sent, "…"); open {
				if !strings.HasPrefix(want, sent) && !strings.HasPrefix(sent, want) || strings.Contains(sent, "\r\n0\r\n") || strings.Contains(sent, "/next") {
					t.Errorf("the origin got %q, want the beginning of %q only", sent, want)
				}
			} else {
				equal(t, "what the origin got", sent, c.sent)
			}
		})
	}
}

// codesOf returns the status codes of the answers in s, which have no status
// lines in their bodies.
func codesOf(s string) string {
	var codes []string
	for _, line := range regexp.MustCompile(`HTTP/1\.1 (\d{3}) `).FindAllStringSubmatch(s, -1) {
		codes = append(codes, line[1])
	}
	return strings.Join(codes, " ")
}

func smugglingCases() map[string]smuggling {
	cases := map[string]smuggling{}
	refuse := func(name, raw string, code int) { cases[name] = smuggling{raw, fmt.Sprint(code), ""} }
	serve := func(name, raw, sent string) { cases[name] = smuggling{raw, "200 200", sent + sentNext} }
	cut := func(name, body string) { cases[name] = smuggling{chunked + body, "400", chunked + "…"} }

	// Which field says how long the body is.
	post := func(fields, rest string) string { return "POST / HTTP/1.1\r\n" + hostLine + fields + "\r\n" + rest }
	for name, values := range map[string][]string{
		"Content-Length": {
			":", ": 5, 5", ": 5 5", ": 5;", ": \xd9\xa5", ": 5\x00", ": 5\x0b", ": 5\r ", ":\r\n 5", " : 5", "\t: 5", ": 1e1", ": 5.0", ": \"5\"",
			": +3", ": -3", ": 0x3", ": 99999999999999999999",
		},
		"Transfer-Encoding": {
			":", ": identity", ":\tchunked\x0b", ": xchunked", ": chunked, chunked", ": chunked, identity", ": gzip, chunked", ": ,chunked",
			": chunked;q=1", ": \"chunked\"", ": 'chunked'", ": \x0bchunked", ": chunked\x00", ": chunk\xc3\xa9d", ":\r\n chunked", "\r\n : chunked",
			" : chunked",
		},
		"": {
			"Content-Length: 5\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 5",
			"Content-Length: 0\r\nTransfer-Encoding: chunked", "Content-Length: 5\r\nContent-Length: 0", "Content-Length: 5\r\ncontent-length: 5",
			" Transfer-Encoding: chunked", "X: y\r\n Transfer-Encoding: chunked", "X: y\nTransfer-Encoding: chunked", "X: y\rTransfer-Encoding: chunked",
			"Transfer-Encoding: chunked\r\nTransfer-Encoding: cow", "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
		},
	} {
		for _, value := range values {
			fields := name + value + "\r\n"
			refuse(fmt.Sprintf("%q", fields), post(fields, "0\r\n\r\n"+hidden), 400)
		}
	}
	for _, coding := range []string{"chunked", "Chunked", "cHuNkEd", "  chunked", "chunked \t", "\tchunked"} {
		serve(fmt.Sprintf("coding %q", coding), post("Transfer-Encoding:"+coding+"\r\n", "5\r\nhello\r\n0\r\n\r\n"), sentChunks)
	}
	sentLength := func(method string) string {
		return method + " / HTTP/1.1\r\n" + hostLine + "Content-Length: 5\r\n\r\nhello"
	}
	serve("length with zeros", post("Content-Length: 0005\r\n", "hello"), sentLength("POST"))
	serve("length with spaces", post("Content-Length: \t5 \t\r\n", "hello"), sentLength("POST"))
	serve("no length", post("", ""), "POST / HTTP/1.1\r\n"+hostLine+"\r\n")
	serve("length of nothing", post("Content-Length: 0\r\n", ""), "POST / HTTP/1.1\r\n"+hostLine+"Content-Length: 0\r\n\r\n")
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "DELETE", "PROPFIND"} {
		start := method + " / HTTP/1.1\r\n" + hostLine
		serve(method+" with a length", start+"Content-Length: 5\r\n\r\nhello", sentLength(method))
		serve(method+" with chunks", start+"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", start+"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
	}
	for _, option := range []string{"Content-Length", "Transfer-Encoding", "Host", "keep-alive, Content-Length"} {
		serve("Connection: "+option, post("Content-Length: 5\r\nConnection: "+option+"\r\n", "hello"), sentLength("POST"))
	}
	serve("names that look alike", post("Content-Length: 5\r\nTransfer_Encoding: chunked\r\ncontent_length: 0\r\nTransfer-encodinG_: chunked\r\n", "hello"), sentLength("POST"))
	refuse("coding in 1.0", "POST / HTTP/1.0\r\n"+hostLine+"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"+hidden, 400)

	// What chunks may look like.
	serve("chunk: extension", chunked+"5;a=b\r\nhello\r\n0;x\r\n\r\n", sentChunks)
	serve("chunk: quoted extension", chunked+"5;a=\"b;c\"\r\nhello\r\n0\r\n\r\n", sentChunks)
	serve("chunk: leading zeros", chunked+"000005\r\nhello\r\n000\r\n\r\n", sentChunks)
	for _, dropped := range []string{"", "X: y\r\n", "Content-Length: 1\r\n", "Transfer-Encoding: chunked\r\n", "Host: evil\r\n", "Authorization: x\r\n"} {
		serve(fmt.Sprintf("trailer %q", dropped), chunked+"5\r\nhello\r\n0\r\n"+dropped+"X-T: a\r\n\r\n", chunked+"5\r\nhello\r\n0\r\nX-T: a\r\n\r\n")
	}
	serve("chunks of one byte", chunked+"1\r\nh\r\n1\r\ne\r\n1\r\nl\r\n2\r\nlo\r\n0\r\n\r\n", chunked+"1\r\nh\r\n1\r\ne\r\n1\r\nl\r\n2\r\nlo\r\n0\r\n\r\n")
	for _, size := range []string{
		"5;a\nb\r\n", "5;a\rb\r\n", "5 ;a\r\n", "5\n", "5\r", "5\r\r\n", "+5\r\n", "-5\r\n", "0x5\r\n", "0_5\r\n", " 5\r\n", "5 \r\n", "5\t\r\n", "\r\n",
		"10000000000000005\r\n", "ffffffffffffffff\r\n", strings.Repeat("0", 64) + "5\r\n", "4\r\n", "6\r\n",
		"5;" + strings.Repeat("a", 512) + "\r\n", "5;a\x00\r\n",
	} {
		cut(fmt.Sprintf("chunk: size %.40q", size), size+"hello\r\n0\r\n\r\n")
	}
	cut("chunk: no digits", "xyz\r\n"+hidden)
	cut("chunk: endless extension", "5;"+strings.Repeat("a", 2*bufferSize))
	for _, after := range []string{"\n0\r\n\r\n", "\r0\r\n\r\n", "0\r\n\r\n", "\r\n0\n\r\n"} {
		cut(fmt.Sprintf("chunk: after data %q", after), "5\r\nhello"+after)
	}
	for _, trailer := range []string{
		"X-T : a\r\n\r\n", "X-T: a\nX-T: b\r\n\r\n", "X: a\rb\r\n\r\n", "X-T: a\n\n" + hidden, "\nX-T: a\r\n\r\n" + hidden, "\n" + hidden,
		"X-T: a\r\n b\r\n\r\n" + hidden, " X-T: a\r\n\r\n" + hidden, hidden,
	} {
		cut(fmt.Sprintf("chunk: trailer %q", trailer), "5\r\nhello\r\n0\r\n"+trailer)
	}

	// Where a head ends and its lines do.
	for _, raw := range []string{
		"GET / HTTP/1.1\nHost: good\n\n", "GET / HTTP/1.1\nHost: good\r\n\r\n", "GET / HTTP/1.1\r\nHost: good\nX: y\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: good\r\nX: y\n\n" + hidden, "GET / HTTP/1.1\r\nHost: good\r\nX: y\r\n\n" + hidden,
		"GET / HTTP/1.1\r\nHost: good\r\r\n\r\n", "GET / HTTP/1.1\r\nHost:\r\n good\r\n\r\n", "GET / HTTP/1.1\r\nHost : good\r\n\r\n",
		"GET / HTTP/1.1\r\n Host: good\r\n\r\n", "GET http://good/ HTTP/1.0\r\nHost:\r\n\r\n", "GET http://good/ HTTP/1.1\r\n\r\n",
		"GET http:///a HTTP/1.0\r\n\r\n", "GET http://a@good/ HTTP/1.0\r\n\r\n",
	} {
		refuse(fmt.Sprintf("head %q", raw), raw, 400)
	}
	for _, field := range []string{
		"X\x00: y", "X: \x00", "X: \x7f", "X: a\r\n\tb", "X: a\r\n b", "\xc3\xa4: y", "X[]: y", "X\r: a", ": a", "X", "X Y: a",
	} {
		refuse(fmt.Sprintf("field %q", field), "GET / HTTP/1.1\r\nHost: good\r\n"+field+"\r\n\r\n", 400)
	}
	serve("head: empty lines before", "\r\n\r\nGET / HTTP/1.1\r\nHost: good\r\n\r\n", sentGet)
	serve("head: fields of many kinds", "GET / HTTP/1.1\r\nHost: good\r\n!#$%&'*+-.^_`|~: y\r\nX:\xff\xfe\r\n\r\n", sentGet)

	// The request line.
	for code, lines := range map[int][]string{
		400: {
			"GET /", "GET / HTTP/1.10", "GET / http/1.1", "GET / HTTP/01.1", "GET / HTTP/1.1 ", "GET / HTTP/1.1\x0b", "GET  / HTTP/1.1",
			"GET / x HTTP/1.1", "GET\t/ HTTP/1.1", " GET / HTTP/1.1", "GET /\x00 HTTP/1.1", "GET /\r HTTP/1.1", "GET /\x7f HTTP/1.1",
			"GET /a#b HTTP/1.1", "GET a HTTP/1.1", "GET \\a HTTP/1.1", "GET good:80 HTTP/1.1", "GET * HTTP/1.1", "GET\x00 / HTTP/1.1",
			"G\xc3\x8bT / HTTP/1.1", "GET http://evil/ HTTP/1.1", "GET http://good:81/ HTTP/1.1", "GET http://good@evil/ HTTP/1.1",
			"GET http://user@good/ HTTP/1.1", "GET http:///x HTTP/1.1", "GET ftp://good/ HTTP/1.1", "GET http:/good/ HTTP/1.1",
			"GET http://good\\@evil/ HTTP/1.1", "GET http://goo%64/ HTTP/1.1", "GET javascript://good/%0a HTTP/1.1",
			"GET http://good/#@evil/ HTTP/1.1", "GET http://[::1]:80/ HTTP/1.1", "GET http://good:443/ HTTP/1.1",
		},
		501: {"CONNECT good:80 HTTP/1.1", "TRACE / HTTP/1.1", "get / HTTP/1.1", "Get / HTTP/1.1", "PRI / HTTP/1.1"},
		505: {"GET / HTTP/0.9", "GET / HTTP/1.2", "GET / HTTP/2.0", "PRI * HTTP/2.0"},
	} {
		for _, line := range lines {
			refuse(fmt.Sprintf("line %q", line), line+"\r\n"+hostLine+"\r\n", code)
		}
	}
	serve("line: address of the host", "GET http://GOOD/ HTTP/1.1\r\nHost: good\r\n\r\n", sentGet)
	serve("line: https", "GET https://good/ HTTP/1.1\r\nHost: good\r\n\r\n", sentGet)

	// What is too long, too many or not known.
	tooMuch := func(name string, code int, raw string) { refuse("limit: "+name, raw+hidden, code) }
	const get = "GET / HTTP/1.1\r\n" + hostLine
	tooMuch("method", 501, strings.Repeat("A", 33)+" / HTTP/1.1\r\n"+hostLine+"\r\n")
	tooMuch("address", 414, "GET /"+strings.Repeat("a", 8<<10)+" HTTP/1.1\r\n"+hostLine+"\r\n")
	tooMuch("head", 431, get+"X: "+strings.Repeat("a", bufferSize)+"\r\n\r\n")
	tooMuch("fields", 431, get+strings.Repeat("X: a\r\n", 100)+"\r\n")
	tooMuch("options", 431, get+"Connection: a"+strings.Repeat(", a", 32)+"\r\n\r\n")
	tooMuch("options, in many fields", 431, get+strings.Repeat("Connection: "+strings.Repeat(",", 15)+"\r\n", 3)+"\r\n")
	tooMuch("expectation", 417, post("Expect: tea\r\nContent-Length: 0\r\n", ""))
	tooMuch("body", 413, post("Content-Length: 1001\r\n", strings.Repeat("a", 1001)))
	cases["limit: body in chunks"] = smuggling{chunked + "3e9\r\n" + strings.Repeat("a", 1001) + "\r\n0\r\n\r\n", "413", chunked + "…"}

	// The host.
	for _, host := range []string{
		"good@evil", "good:80@evil", "good:80abc", "good::", "good:-1", "good:+80", "good:0", "good:65536", "good:80:80", "good, evil", "good evil",
		"good/evil", "good\\evil", "good?evil", "good#evil", "g\xc3\xb6od", "%67ood", "good%00", "go\tod", "[::1", "[::1]x", "[good]", "[::1%25eth0]", "::1",
		"good::80", ":80", ":", "a\"b", "good..", ".good", "go..od", "", " ", "\"good\"", "good;evil", "<good>", "http://good", strings.Repeat("a", 254),
	} {
		refuse(fmt.Sprintf("host %.40q", host), "GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n"+hidden, 400)
	}
	refuse("host: two", "GET / HTTP/1.1\r\nHost: good\r\nHost: evil\r\n\r\n", 400)
	refuse("host: the same twice", "GET / HTTP/1.1\r\nHost: good\r\nhost: good\r\n\r\n", 400)
	refuse("host: none", "GET / HTTP/1.1\r\nX: y\r\n\r\n", 400)
	for _, host := range []string{"good.", "GOOD", "good:8080", "good:080", "[::1]:80", "192.0.2.1", "a_b"} {
		serve("host "+host, "GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n", "GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
	}
	return cases
}
