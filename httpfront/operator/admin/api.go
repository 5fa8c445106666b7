package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// Request is one request, without what it takes to be allowed.
type Request struct {
	Method      string
	Path        string // as in the URL, escaped, from the slash on
	Query       url.Values
	ContentType string
	Body        []byte

	// Origin is the scheme, host and port under which the request came, such as
	// "https://node.example:9080", for addresses in answers; empty: they begin with a slash.
	Origin string
}

// Response is what a request is answered.
type Response struct {
	Status      int
	ContentType string
	Header      map[string]string // further fields; nil: none
	Body        []byte
}

// Scope is what somebody may do. Each includes those before it.
type Scope uint8

// Values of Scope. Nothing, the zero value, is for who has no token that is good.
const (
	Nothing Scope = iota
	Read          // look at everything but secrets
	Write         // change what there is
)

// String returns "nothing", "read" or "write".
func (s Scope) String() string { return [...]string{"nothing", "read", "write"}[min(s, Write)] }

// Parameter is one of a path or a query, in the document.
type Parameter struct {
	Name    string
	Meaning string
	Schema  Schema // nil: a text
}

// Route is one thing that can be asked for.
type Route struct {
	Method  string
	Path    string // with parameters in braces, each a whole segment
	Scope   Scope
	ID      string // of the operation, unique
	Summary string
	Tag     string // groups routes in the document

	Params []Parameter // those of the path that are not known to all
	Query  []Parameter // others are refused, but in the dialect
	Body   Schema      // nil: a body is passed over
	Answer Schema      // of the object that is answered, or of each where it is a list
	List   bool
	Media  string // of what is answered; "": JSON, with what goes around it

	Handle Handler

	cataloged bool // it is about what the catalog has
}

// Handler answers a request. Its error may be a Refusal; any other says that the node
// could not do it.
type Handler func(ctx context.Context, c *Call) (Answer, error)

// Config is what an API is made of.
type Config struct {
	Mesh Mesh
	Now  func() time.Time // default time.Now

	Version string            // of the product, for the document
	Routes  []Route           // beside those of rooms
	Others  []Route           // that somebody else answers, for the document; refusals have messages only
	Schemas map[string]Schema // that these refer to, by name
}

// API answers requests.
type API struct {
	cfg      Config
	mesh     Mesh
	routes   []Route
	bySize   map[int][]*Route // by the number of slashes in their paths
	document []byte
}

// New returns an API. It fails where two routes are the same.
func New(cfg Config) (*API, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	a := &API{cfg: cfg, mesh: cfg.Mesh, bySize: map[int][]*Route{}}
	a.routes = slices.Concat(roomRoutes(), eventRoutes(), ruleRoutes(), zoneRoutes(), limitRoutes())
	for i := range a.routes {
		a.routes[i].cataloged = true
	}
	a.routes = slices.Concat(a.routes, []Route{a.documentRoute()}, cfg.Routes)
	known := map[string]bool{}
	for i := range a.routes {
		r := &a.routes[i]
		for _, name := range []string{r.ID, r.Method + " " + withoutNames(r.Path)} {
			if known[name] {
				return nil, fmt.Errorf("admin: there are two routes %s", name)
			}
			known[name] = true
		}
		n := strings.Count(r.Path, "/")
		a.bySize[n] = append(a.bySize[n], r)
	}
	var err error
	a.document, err = a.makeDocument()
	return a, err
}

// withoutNames returns a path template in which parameters have no names.
func withoutNames(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if strings.HasPrefix(s, "{") {
			segments[i] = "{}"
		}
	}
	return strings.Join(segments, "/")
}

// Routes returns all routes.
func (a *API) Routes() []Route { return slices.Clone(a.routes) }

// Route returns the route of a request, which says what scope it needs; HEAD is GET. There
// is none where nothing is at the path, or what is there does not know the method.
func (a *API) Route(method, path string) (*Route, bool) {
	r, _, _ := a.find(method, path)
	return r, r != nil
}

// find returns the route of a request and the parameters of its path; if there is none,
// the methods that there are. Of several paths that match, the one with most literals counts.
func (a *API) find(method, path string) (*Route, map[string]string, []string) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	segments := strings.Split(path, "/")
	literals := -1 // of the best path so far
	var best *Route
	var params map[string]string
	var methods []string
	for _, r := range a.bySize[len(segments)-1] {
		got, n, ok := match(r.Path, segments)
		switch {
		case !ok || n < literals:
			continue
		case n > literals:
			literals, best, methods = n, nil, nil
		}
		methods = append(methods, r.Method)
		if r.Method == method {
			best, params = r, got
		}
	}
	return best, params, methods
}

// match returns the parameters of a path, and how many of its segments are literal.
func match(template string, segments []string) (params map[string]string, literals int, ok bool) {
	params = map[string]string{}
	i := 0
	for want := range strings.SplitSeq(template, "/") {
		got := segments[i]
		i++
		name, isParam := strings.CutPrefix(want, "{")
		if !isParam {
			if got != want {
				return nil, 0, false
			}
			literals++
			continue
		}
		decoded, err := url.PathUnescape(got)
		if err != nil || decoded == "" {
			return nil, 0, false
		}
		params[strings.TrimSuffix(name, "}")] = decoded
	}
	return params, literals, true
}

// Do answers a request.
func (a *API) Do(ctx context.Context, req Request) Response {
	route, params, methods := a.find(req.Method, req.Path)
	c := &Call{Request: req, api: a, route: route, params: params, dialect: strings.HasPrefix(req.Path, dialectPath)}
	if route == nil {
		if len(methods) == 0 {
			return c.refused(Refuse(http.StatusNotFound, CodeNoRoute, "nothing is at %s; %s lists what there is", shorten(req.Path), documentPath))
		}
		allow := strings.Join(slices.Sorted(slices.Values(methods)), ", ")
		resp := c.refused(Refuse(http.StatusMethodNotAllowed, CodeNoMethod, "%s cannot be asked for %s; want %s", shorten(req.Method), shorten(req.Path), allow))
		resp.Header = map[string]string{"Allow": allow}
		return resp
	}
	answer, err := c.handle(ctx)
	if err != nil {
		return c.refused(err)
	}
	return c.answered(answer)
}

func (c *Call) handle(ctx context.Context) (Answer, error) {
	if (c.route.cataloged || c.params["room"] != "") && c.api.mesh.Catalog() == nil {
		return Answer{}, errNoCatalog
	}
	if err := c.checkQuery(); err != nil {
		return Answer{}, err
	}
	if c.route.Body != nil {
		if err := c.parse(); err != nil {
			return Answer{}, err
		}
	}
	return c.route.Handle(ctx, c)
}

// errNoCatalog keeps those who ask a node that has just started from taking all rooms for deleted.
var errNoCatalog = errors.New("it does not know what operators have set, as long as it is not ready (see /readyz) and where its rooms are more than a catalog holds")

// refused returns the answer to a request that was not carried out.
func (c *Call) refused(err error) Response {
	refusal, ok := errors.AsType[*Refusal](err)
	if errors.Is(err, crdt.ErrFull) {
		refusal = Refuse(http.StatusConflict, CodeFull, "%v", err)
	} else if !ok {
		refusal = Refuse(http.StatusServiceUnavailable, CodeFailed, "the node could not do it: %v; the same request may be sent again", err)
	}
	if c.dialect {
		return jsonResponse(refusal.Status, envelope{Errors: refusal.Mistakes, Messages: []Mistake{}})
	}
	return jsonResponse(refusal.Status, map[string]any{"errors": refusal.Mistakes})
}

// Schemas that have names in the document, beside those of the configuration.
func (a *API) schemas() map[string]Schema {
	all := maps.Clone(commonSchemas())
	maps.Copy(all, a.cfg.Schemas)
	return all
}
