package conformance

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
)

// visitor is a browser at a proxy, with one cookie of ours at most.
type visitor struct {
	t    *try
	pass string // name=value; "" for none

	chunked bool // bodies come without a length
}

// answer is what a visitor was told.
type answer struct {
	code   int
	header http.Header
	body   string
	passes int // how many passes it brought
	took   time.Duration
}

// ask sends a request through the proxy, with fields given as name, value, name, value, …. A value of several lines is
// several fields.
func (v *visitor) ask(method string, fields ...string) answer { return v.send(method, "", fields...) }

func (v *visitor) send(method, body string, fields ...string) answer {
	ctx, cancel := context.WithTimeout(v.t.ctx, time.Minute)
	defer cancel()
	req := rig.Got(http.NewRequestWithContext(ctx, method, "http://"+v.t.stack.proxy.addr+"/cart?item=a%2Fb", strings.NewReader(body)))
	req.Host = v.t.host
	req.Header.Set("Accept", "text/html")
	req.Header.Set("Ropeline-Proof", forged)
	req.Header.Set("X-Forwarded-For", forgedAddress)
	req.Header.Set("X-Forwarded-Proto", "https")
	for i := 0; i < len(fields); i += 2 {
		req.Header[http.CanonicalHeaderKey(fields[i])] = strings.Split(fields[i+1], "\n")
	}
	if v.chunked {
		req.ContentLength = -1
	}
	if v.pass != "" {
		req.Header.Set("Cookie", "theme=dark; "+v.pass)
	}
	began := time.Now()
	resp := rig.Got(v.t.stack.client.Do(req))
	defer resp.Body.Close()
	a := answer{code: resp.StatusCode, header: resp.Header, body: string(rig.Got(io.ReadAll(resp.Body))), took: time.Since(began)}
	for _, c := range resp.Cookies() {
		if strings.HasPrefix(c.Name, "ropeline") {
			a.passes++
			v.pass = c.Name + "=" + c.Value
		}
	}
	return a
}

// fromSite reports whether an answer is the site's.
func (a answer) fromSite() bool { return strings.HasPrefix(a.body, siteBody) }

// isQueue reports whether an answer is our page, or our JSON.
func (a answer) isQueue() bool { return a.header.Get("Ropeline-State") == "waiting" }

// String is what a cell of the table says of an answer.
func (a answer) String() string {
	switch {
	case a.fromSite():
		return "site"
	case a.isQueue() && strings.HasPrefix(a.header.Get("Content-Type"), "application/json"):
		return fmt.Sprintf("JSON, %d", a.code)
	case a.isQueue():
		return fmt.Sprintf("page, %d", a.code)
	}
	return fmt.Sprint(a.code)
}
