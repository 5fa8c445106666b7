package conformance

import (
	"crypto/sha1"
	"encoding/base64"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/ropeline/ropeline/bench/rig"
)

// site is what stands behind the proxies. It keeps what it was asked.
type site struct {
	addr  string
	close func()

	mu    sync.Mutex // guards the following
	asked map[string][]asked
	begun int // requests of which something came, those that net/http refuses among them
	taken int // requests that came to ServeHTTP
}

// asked is one request as it came to the site.
type asked struct {
	from   string // the proxy's end of the connection
	method string
	header http.Header
	body   string
}

// siteBody begins all that the site says.
const siteBody = "This is the site."

func startSite() (s *site, err error) {
	s = &site{asked: map[string][]asked{}}
	s.addr, s.close, err = rig.Serve(&http.Server{Handler: s, ErrorLog: log.New(io.Discard, "", 0), ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateActive {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.begun++
		}
	}}, "")
	return s, err
}

// Paths at which the site does something else than to answer.
const (
	pathEcho = "/echo" // takes an upgrade, and sends back what it gets
	pathGone = "/gone" // takes the request in, and closes without an answer
	pathEnd  = "/end"  // ends the session by a field of the answer
)

// loginBegun is what somebody sends who logs in for a connection.
const loginBegun = "NTLM hello"

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.taken++
	s.mu.Unlock()
	if r.URL.Path == pathEcho {
		echo(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.asked[r.Host] = append(s.asked[r.Host], asked{r.RemoteAddr, r.Method, r.Header.Clone(), string(body)})
	s.mu.Unlock()
	if r.URL.Path == pathGone {
		panic(http.ErrAbortHandler)
	}
	if r.URL.Path == pathEnd {
		w.Header().Set("Ropeline-Command", "revoke")
	}
	w.Header().Set("Content-Type", "text/plain")
	if r.Header.Get("Authorization") == loginBegun { // the next request on this connection has the answer
		w.Header().Set("WWW-Authenticate", "NTLM challenge")
		w.WriteHeader(http.StatusUnauthorized)
	}
	w.Header().Set("Cache-Control", "public, max-age=60")
	w.Header().Set("Set-Cookie", siteCookie)
	io.WriteString(w, siteBody)
}

// echo is a server of WebSockets without their framing.
func echo(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "websocket" || !strings.EqualFold(r.Header.Get("Connection"), "upgrade") {
		http.Error(w, "a WebSocket is wanted", http.StatusUpgradeRequired)
		return
	}
	c, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	// RFC 6455, section 4.2.2. HAProxy looks.
	accept := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Accept: "+base64.StdEncoding.EncodeToString(accept[:])+"\r\n\r\n")
	io.Copy(c, rw) // until the proxy closes
}

// siteCookie is what the site itself tells every visitor's browser to keep.
const siteCookie = "basket=3; Path=/"

// take returns what the site was asked for a host since it was called last.
func (s *site) take(host string) []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.asked[host]
	delete(s.asked, host)
	return a
}
