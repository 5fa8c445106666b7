package main

import (
	"io"
	"net"
	"net/http"
	"sync"
)

// site is what stands behind the proxies. It keeps what it was asked.
type site struct {
	addr string
	srv  *http.Server
	done chan struct{} // closed when it has ended

	mu    sync.Mutex // guards the following
	asked map[string][]asked
}

// asked is one request as it came to the site.
type asked struct {
	method string
	header http.Header
	body   string
}

// siteBody begins all that the site says.
const siteBody = "This is the site."

func startSite() (*site, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &site{addr: l.Addr().String(), done: make(chan struct{}), asked: map[string][]asked{}}
	s.srv = &http.Server{Handler: s}
	go func() { // ends with close
		s.srv.Serve(l)
		close(s.done)
	}()
	return s, nil
}

func (s *site) close() {
	s.srv.Close()
	<-s.done
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.asked[r.Host] = append(s.asked[r.Host], asked{r.Method, r.Header.Clone(), string(body)})
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Cache-Control", "public, max-age=60")
	w.Header().Set("Set-Cookie", siteCookie)
	io.WriteString(w, siteBody)
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
