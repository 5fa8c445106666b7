package middleware

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/ropeline/ropeline/httpfront/caching"
	"github.com/ropeline/ropeline/httpfront/integrations/middleware/internal/site"
)

// passing takes commands out of an answer, and adds a pass to it, as late as can be: what
// serves the request may replace the fields of its answer until then.
type passing struct {
	http.ResponseWriter
	cookie string
	revoke func() string // ends the session, and returns what cookie is to be

	revoked bool // a command has said so
	begun   bool // the head of the answer has been written
}

// begin makes the head ready.
func (p *passing) begin() {
	if p.begun {
		return
	}
	p.begun = true
	p.takeCommands()
	if p.revoked {
		p.cookie = p.revoke()
	}
	if p.cookie != "" {
		h := p.Header()
		h.Add("Set-Cookie", p.cookie)
		h.Set("Cache-Control", string(caching.AppendKept([]byte(caching.Private), strings.Join(h["Cache-Control"], ","))))
		for _, name := range caching.SharedFields {
			h.Del(name)
		}
	}
}

// takeCommands takes commands out of the fields, and their names out of the trailers that
// are announced: in a trailer they come too late.
func (p *passing) takeCommands() {
	h := p.Header()
	for name, values := range h {
		if site.IsCommand(strings.TrimPrefix(name, http.TrailerPrefix)) {
			delete(h, name)
			p.revoked = p.revoked || slices.ContainsFunc(values, site.Revokes)
		}
	}
	announced := h["Trailer"]
	if !slices.ContainsFunc(announced, func(line string) bool { return strings.Contains(strings.ToLower(line), "-command") }) {
		return
	}
	h.Del("Trailer")
	for name := range strings.SplitSeq(strings.Join(announced, ","), ",") {
		if name = strings.Trim(name, " \t"); name != "" && !site.IsCommand(name) {
			h.Add("Trailer", name)
		}
	}
}

// finish is for when the request has been served: nothing at all may have been written, and
// what is in the fields now is a trailer.
func (p *passing) finish() {
	p.begin()
	p.takeCommands()
}

func (p *passing) WriteHeader(code int) {
	if code >= 200 || code == http.StatusSwitchingProtocols {
		p.begin()
	} else {
		p.takeCommands() // until there is an answer
	}
	p.ResponseWriter.WriteHeader(code)
}

func (p *passing) Write(b []byte) (int, error) {
	p.begin()
	return p.ResponseWriter.Write(b)
}

// ReadFrom is io.ReaderFrom's, by which the system copies files to connections.
func (p *passing) ReadFrom(r io.Reader) (int64, error) {
	p.begin()
	return io.Copy(p.ResponseWriter, r)
}

// FlushError is for http.ResponseController.
func (p *passing) FlushError() error {
	p.begin()
	return http.NewResponseController(p.ResponseWriter).Flush()
}

// Flush is http.Flusher's.
func (p *passing) Flush() { _ = p.FlushError() }

// Hijack is http.Hijacker's. Who takes the connection over writes the answer, too: the pass
// is not in it, but in the visitor's next answer, and commands are not seen.
func (p *passing) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(p.ResponseWriter).Hijack()
}

// Push is http.Pusher's.
func (p *passing) Push(target string, opts *http.PushOptions) error {
	if w, ok := p.ResponseWriter.(http.Pusher); ok {
		return w.Push(target, opts)
	}
	return http.ErrNotSupported
}

// Unwrap is for http.ResponseController.
func (p *passing) Unwrap() http.ResponseWriter { return p.ResponseWriter }

var (
	_ http.Flusher  = (*passing)(nil)
	_ http.Hijacker = (*passing)(nil)
	_ http.Pusher   = (*passing)(nil)
	_ io.ReaderFrom = (*passing)(nil)
)
