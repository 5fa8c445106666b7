package httpfront

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ropeline/ropeline/httpfront/edge"
	"github.com/ropeline/ropeline/httpfront/http1"
)

// Redirect is a listener without TLS, which sends visitors to the same address with it.
type Redirect struct {
	// Listener is served on; RunRedirect closes it.
	Listener net.Listener
	// Port is where visitors find TLS. Default 443.
	Port int
	// Challenge returns what a certificate authority is to find at a path below
	// "/.well-known/acme-challenge/" of a host (RFC 8555, section 8.3), and whether
	// anything is to be found there; elsewhere it is redirected like visitors are. It
	// may be called from many goroutines at once. Nil means nothing.
	Challenge func(host, path string) (content string, ok bool)
}

// challengePath is below which certificate authorities look for proof that who asked
// for a certificate runs the host.
const challengePath = "/.well-known/acme-challenge/"

// RunRedirect serves Config.Redirect until ctx ends, and returns nil then. Its connections
// are limited as those of Run are, and counted apart from them. It returns an error if it
// could not serve. It is to be called once, and with a listener.
func (f *Front) RunRedirect(ctx context.Context) error {
	ec := f.edgeConfig(nil)
	ec.Limits.Conns = f.cfg.Limits.Redirects
	l := edge.New(f.cfg.Redirect.Listener, ec, func(e *edge.Conn) { f.serve(&client{Conn: e}, f.redirect) })
	err := l.Serve(ctx, func() {
		// Answers are a few lines, so requests under way end at once or never.
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		l.Quiesce(end) //nolint:errcheck // what is left is cut off
		l.Abort()
	})
	if err != nil {
		return fmt.Errorf("redirects: %w", err)
	}
	return nil
}

// redirect answers one request that came without TLS. The answer keeps the method, and
// goes to the host that was asked for, whatever the path looks like.
func (f *Front) redirect(r *request, no http1.Refusal) {
	w := r.answer()
	switch {
	case r.Host == "" && (no.Code == 0 || no.To != ""):
		no = http1.Bad("the Host field is missing")
	case no.To != "":
		no.To = f.cfg.Redirect.location(r, no.To)
	}
	if no.Code != 0 {
		f.refuse(w, no)
		return
	}
	var h *head
	if content, ok := f.challenge(r); ok {
		h = w.begin(http.StatusOK)
		h.Set("Content-Type", "application/octet-stream")
		w.write(content)
	} else {
		h = w.begin(http.StatusPermanentRedirect)
		h.Set("Location", f.cfg.Redirect.location(r, string(r.Target)))
	}
	h.Set("Cache-Control", "no-store")
	// Nobody wants a body: the client sends it again where it is sent.
	w.last, w.linger = r.HasBody(), r.HasBody()
}

// location returns where r is redirected to, with that target.
func (c *Redirect) location(r *request, target string) string {
	if target == "*" {
		target = "/"
	}
	host := r.Host
	if port := cmp.Or(c.Port, 443); port != 443 {
		host += ":" + strconv.Itoa(port)
	}
	return "https://" + host + target
}

// challenge returns what a certificate authority is to find where r looks.
func (f *Front) challenge(r *request) (content string, ok bool) {
	if f.cfg.Redirect.Challenge == nil || r.Method != http.MethodGet || !strings.HasPrefix(r.Path.Decoded, challengePath) {
		return "", false
	}
	return f.cfg.Redirect.Challenge(r.Host, r.Path.Decoded)
}
