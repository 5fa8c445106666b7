//go:build unix

package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/ropeline/ropeline/bench/rig"
)

// forwardAuth stands in for Traefik's ForwardAuth. Its rules are those of
//
//	[doc] doc.traefik.io, reference, "ForwardAuth", of version 3.7
//	[src] pkg/middlewares/auth/forward.go, of version 3.7
type forwardAuth struct {
	Address                  string   `yaml:"address"`
	TrustForwardHeader       bool     `yaml:"trustForwardHeader"`
	AuthResponseHeaders      []string `yaml:"authResponseHeaders"`
	AddAuthCookiesToResponse []string `yaml:"addAuthCookiesToResponse"`
	MaxResponseBodySize      int64    `yaml:"maxResponseBodySize"`

	client *http.Client
}

// traefikFile is what the example has of Traefik's dynamic configuration. Anything else
// in it is refused.
type traefikFile struct {
	HTTP struct {
		Routers map[string]struct {
			Rule        string   `yaml:"rule"`
			Middlewares []string `yaml:"middlewares"`
			Service     string   `yaml:"service"`
		} `yaml:"routers"`
		Middlewares map[string]struct {
			ForwardAuth *forwardAuth `yaml:"forwardAuth"`
			// [doc] "Headers": "Header values, if empty, remove the header".
			Headers struct {
				CustomRequestHeaders map[string]string `yaml:"customRequestHeaders"`
			} `yaml:"headers"`
		} `yaml:"middlewares"`
		Services map[string]struct {
			LoadBalancer struct {
				Servers []struct {
					URL string `yaml:"url"`
				} `yaml:"servers"`
			} `yaml:"loadBalancer"`
		} `yaml:"services"`
	} `yaml:"http"`
}

// traefikTimeout is how long ForwardAuth waits for an answer; it cannot be set. [src]
const traefikTimeout = 30 * time.Second

func startTraefik(_ context.Context, _ options, example, addr string) *proxy {
	var file traefikFile
	rig.Must(yaml.UnmarshalWithOptions(rig.Got(os.ReadFile(example)), &file, yaml.Strict()))
	t := &traefik{removed: map[bool][]string{}}
	for name, router := range file.HTTP.Routers {
		service := file.HTTP.Services[router.Service]
		sockets, known := traefikRules[router.Rule]
		if !known || len(router.Middlewares) == 0 || len(service.LoadBalancer.Servers) != 1 {
			rig.Must(fmt.Errorf("%s: the router %s is not one that this stand-in knows", example, name))
		}
		if t.forwardAuth = file.HTTP.Middlewares[router.Middlewares[0]].ForwardAuth; t.forwardAuth == nil {
			rig.Must(fmt.Errorf("%s: no ForwardAuth", example))
		}
		for _, m := range router.Middlewares[1:] {
			for field, value := range file.HTTP.Middlewares[m].Headers.CustomRequestHeaders {
				if value != "" {
					rig.Must(fmt.Errorf("%s: %s sets %s, which this stand-in does not know", example, m, field))
				}
				t.removed[sockets] = append(t.removed[sockets], field)
			}
		}
		t.site = rig.Got(url.Parse(service.LoadBalancer.Servers[0].URL)).Host
	}
	if len(file.HTTP.Routers) != len(traefikRules) {
		rig.Must(fmt.Errorf("%s: %d routers, and this stand-in knows %d", example, len(file.HTTP.Routers), len(traefikRules)))
	}
	t.client = askingClient(traefikTimeout)
	return startStandIn(addr, t.site, t)
}

// traefikRules are those of routers, and whether they are for WebSockets. The longer one comes
// first. [doc] "Rules and Priority"
var traefikRules = map[string]bool{
	"HeaderRegexp(`Upgrade`, `^(?i)websocket$`)": true,
	"PathPrefix(`/`)": false,
}

// traefik is what stands at both routers, one after the other.
type traefik struct {
	*forwardAuth
	removed map[bool][]string // fields, by whether the router is that for WebSockets
	site    string
}

func (t *traefik) check(r *http.Request) verdict {
	sockets := slices.ContainsFunc(r.Header["Upgrade"], func(v string) bool { return strings.EqualFold(v, "websocket") })
	v := t.forwardAuth.check(r)
	for _, name := range t.removed[sockets] {
		r.Header.Del(name)
	}
	return v
}

func (f *forwardAuth) Close() error {
	f.client.CloseIdleConnections()
	return nil
}

// within: Traefik limits the time until an answer begins only if it is told to.
func (f *forwardAuth) within() time.Duration { return 0 }

func (f *forwardAuth) check(r *http.Request) verdict {
	enter(r)
	resp, body, err := f.ask(r)
	switch {
	case errors.Is(err, errTooLong):
		return verdict{status: http.StatusUnauthorized} // [doc] maxResponseBodySize
	case err != nil:
		return verdict{status: http.StatusInternalServerError} // [src] "Error calling"
	case resp.StatusCode < 200 || resp.StatusCode >= 300:
		// [doc] "Otherwise, the response from the authentication server is returned."
		removeHops(resp.Header)
		if to, err := resp.Location(); err == nil {
			resp.Header.Set("Location", to.String()) // [src] made absolute by the address of the node
		}
		return verdict{status: resp.StatusCode, header: resp.Header, body: string(body)}
	}
	// [doc] authResponseHeaders: "replacing any existing conflicting headers"; one that
	// did not come is removed. [src]
	for _, name := range f.AuthResponseHeaders {
		r.Header.Del(name)
		for _, v := range resp.Header.Values(name) {
			r.Header.Add(name, v)
		}
	}
	if cookies := resp.Cookies(); len(cookies) > 0 {
		return verdict{change: func(h http.Header) { f.addCookies(h, cookies) }}
	}
	return verdict{}
}

// enter does what an entry point does before any middleware: what nobody trusted sends
// about where a request comes from is replaced. [doc] of entry points, "Forwarded
// Headers"; pkg/middlewares/forwardedheaders/forwarded_header.go. The address is added
// where the request goes on, but there is nothing between here.
func enter(r *http.Request) {
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded-") || name == "X-Real-Ip" {
			r.Header.Del(name)
		}
	}
	r.Header.Set("X-Forwarded-For", visitorAddress(r))
	r.Header.Set("X-Forwarded-Host", r.Host)
	r.Header.Set("X-Forwarded-Proto", "http")
	r.Header.Set("X-Real-Ip", visitorAddress(r))
}

// addCookies puts the listed cookies of the answer into the site's, and takes the site's
// own of these names out. [doc] addAuthCookiesToResponse
func (f *forwardAuth) addCookies(h http.Header, cookies []*http.Cookie) {
	listed := func(c *http.Cookie) bool { return slices.Contains(f.AddAuthCookiesToResponse, c.Name) }
	own := (&http.Response{Header: h}).Cookies()
	h.Del("Set-Cookie")
	for _, c := range own {
		if !listed(c) {
			h.Add("Set-Cookie", c.String())
		}
	}
	for _, c := range cookies {
		if listed(c) {
			h.Add("Set-Cookie", c.String())
		}
	}
}

var errTooLong = errors.New("the answer is too long")

// ask asks the node: with GET, without a body, with all fields of the visitor but those
// of the connection, and with the five that Traefik adds. [doc] "Forward-Request
// Headers"; a visitor's own are not trusted.
func (f *forwardAuth) ask(r *http.Request) (resp *http.Response, body []byte, err error) {
	err = rig.Try(func() {
		q := rig.Got(http.NewRequestWithContext(r.Context(), http.MethodGet, f.Address, nil))
		q.Header = r.Header.Clone()
		removeHops(q.Header)
		for name := range q.Header {
			if strings.HasPrefix(name, "X-Forwarded-") && !f.TrustForwardHeader {
				q.Header.Del(name)
			}
		}
		q.Header.Set("X-Forwarded-Method", r.Method)
		q.Header.Set("X-Forwarded-Proto", "http")
		q.Header.Set("X-Forwarded-Host", r.Host)
		q.Header.Set("X-Forwarded-Uri", r.URL.RequestURI())
		q.Header.Set("X-Forwarded-For", visitorAddress(r))
		resp = rig.Got(f.client.Do(q))
		defer resp.Body.Close()
		if body = rig.Got(io.ReadAll(io.LimitReader(resp.Body, f.MaxResponseBodySize+1))); int64(len(body)) > f.MaxResponseBodySize {
			rig.Must(errTooLong)
		}
	})
	return resp, body, err
}
