package middleware

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

// Config says whom a Gate asks. Nodes is required.
type Config struct {
	// Nodes are the verdict listeners of nodes of one mesh, such as
	// http://127.0.0.1:9081. They are asked in this order: the next one where one
	// cannot be reached, does not answer in time, or is not ready.
	Nodes []string

	// Timeout is how long each node has to answer. The default is 3 s.
	Timeout time.Duration

	// Open lets everybody in when no node has a verdict. Without it they are told to
	// try again in a moment, with the code 503. Who has gone is not let in, and nobody is
	// where a node refuses the question, as it does of programs that are not among its
	// --trusted-proxies: that node is not down.
	Open bool

	// TrustForwarded says that a proxy of yours is in front of this program, and that
	// its X-Forwarded-For and X-Forwarded-Proto tell who the visitor is. Without it they
	// are not believed, as anybody can send them.
	TrustForwarded bool

	// TrustForwardedHost says that this proxy also replaces what visitors send in
	// X-Forwarded-Host, and that it names the host that the visitor asked for, where Host
	// names another. It is for programs that go by it themselves. Without it the host is
	// that of the request: many proxies pass a visitor's X-Forwarded-Host on, who could
	// choose a room by it and be served another host. It wants TrustForwarded.
	TrustForwardedHost bool

	// CountryHeader is what the nodes have as verdict-country-header, if they have one:
	// the header in which the proxy in front of this program tells the visitor's
	// country. That proxy has to replace what visitors send in it. Without
	// TrustForwarded the nodes are told nothing in it, as anybody can send it.
	CountryHeader string

	// ProofField is the field with the proof of admission, if the nodes make proofs.
	// What a visitor sends in it never gets through. The default is Ropeline-Proof.
	ProofField string

	// Logger is told when no node answers, once a minute. The default is slog.Default().
	Logger *slog.Logger
}

// Gate asks about requests. It may be used from many goroutines.
type Gate struct {
	cfg    Config
	asked  []string // where each node answers
	client *http.Client

	warning   rate.Sometimes // that no node answers
	unrevoked rate.Sometimes // that a session was not ended
}

// Question is a request that a visitor has made.
type Question struct {
	Method string
	Target string // path and query, as they came
	Host   string
	Scheme string // http or https; or a list of them with one for each of For
	For    string // the visitor's address, as in X-Forwarded-For

	// Body says that the request has a body, be it of a length that is not known. With one,
	// OPTIONS is no preflight, which passes rooms.
	Body bool

	// Header has the visitor's fields. It is not changed, and not kept.
	Header http.Header
}

// Verdict says what becomes of a request.
type Verdict struct {
	// Admitted says that the request is to be served. If it is not, Code, Header and
	// Body are what the visitor is to get.
	Admitted bool

	Cookie string // of who is admitted: a field Set-Cookie for the answer; "": none
	Proof  string // of who is admitted: what ProofField is to have; "": nothing

	Code   int
	Header http.Header // shared; it is not to be changed
	Body   []byte      // the same

	node string // who says so, as in Gate.asked; "": nobody
}

// maxAnswer is the longest page that a room can have, and what comes on top.
const maxAnswer = 2 << 20

// What nodes are asked.
const (
	askPath    = "/forward"
	revokePath = "/revoke"
)

const defaultTimeout = 3 * time.Second

// New checks cfg and returns a Gate. It asks nobody yet.
func New(cfg Config) (*Gate, error) {
	if len(cfg.Nodes) == 0 {
		return nil, errors.New("ropeline: no nodes are given that could be asked; Nodes wants the addresses of their verdict listeners")
	}
	if cfg.Timeout < 0 {
		return nil, fmt.Errorf("ropeline: a timeout of %v; it has to be more than 0, or 0 for the default of %v", cfg.Timeout, defaultTimeout)
	}
	if cfg.TrustForwardedHost && !cfg.TrustForwarded {
		return nil, errors.New("ropeline: TrustForwardedHost without TrustForwarded; set both where a proxy in front writes X-Forwarded-Host, or none")
	}
	g := &Gate{cfg: cfg}
	for _, node := range cfg.Nodes {
		u, err := url.Parse(node)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
			return nil, fmt.Errorf("ropeline: %q is no address of a node; it has to be like http://127.0.0.1:9081", node)
		}
		g.asked = append(g.asked, u.Scheme+"://"+u.Host+askPath)
	}
	g.cfg.Timeout = cmp.Or(g.cfg.Timeout, defaultTimeout)
	g.cfg.ProofField = http.CanonicalHeaderKey(cmp.Or(g.cfg.ProofField, "Ropeline-Proof"))
	g.cfg.Logger = cmp.Or(g.cfg.Logger, slog.Default())
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy, transport.MaxIdleConnsPerHost, transport.DisableCompression = nil, 256, true
	g.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	g.warning.Interval, g.unrevoked.Interval = time.Minute, time.Minute
	return g, nil
}

// ProofField returns the field in which the program finds proofs of admission.
func (g *Gate) ProofField() string { return g.cfg.ProofField }

// Ask asks the nodes about a request. There always is a verdict: where no node has one,
// that of Config.Open.
func (g *Gate) Ask(ctx context.Context, q Question) Verdict {
	if strings.HasPrefix(q.Target, "//") {
		return refusal(http.StatusBadRequest) // to some sites, a host, and what follows it the path
	}
	fields := g.fields(q)
	if code := unfit(fields); code != 0 {
		return refusal(code)
	}
	var errs []error
	for _, node := range g.asked {
		v, err := g.ask(ctx, node, fields)
		if err == nil {
			return v
		}
		if errs = append(errs, err); ctx.Err() != nil {
			break // the visitor has gone
		}
	}
	if ctx.Err() != nil {
		return noVerdict // by that, any visitor could have nobody asked
	}
	err := errors.Join(errs...)
	letIn := g.cfg.Open && !errors.Is(err, errRefused)
	g.warning.Do(func() {
		g.cfg.Logger.Warn("no ropeline node says whether visitors may come in", "let_in", letIn, "error", err)
	})
	if letIn {
		return Verdict{Admitted: true}
	}
	return noVerdict
}

// errRefused is a node's that answers without a verdict, as it is not set up for this
// program.
var errRefused = errors.New("the question is refused")

// A node says by this that it has no verdict, whatever the code is, and so does a Gate to
// visitors; see docs/pages.md.
const (
	stateField   = "Ropeline-State"
	stateFailed  = "failed"
	stateRefused = "refused" // of a request that is not in order
)

// noVerdict is for visitors of whom no node says anything.
var noVerdict = Verdict{
	Code: http.StatusServiceUnavailable,
	Header: http.Header{
		"Content-Type":  {"text/plain; charset=utf-8"},
		"Cache-Control": {"no-store"},
		"Retry-After":   {"5"},
		stateField:      {stateFailed},
	},
	Body: []byte("Please try again in a moment.\n"),
}

// ask asks one node. An error says that it has no verdict.
func (g *Gate) ask(ctx context.Context, node string, fields http.Header) (v Verdict, err error) {
	ctx, cancel := context.WithTimeout(ctx, g.cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, node, nil)
	if err != nil {
		return v, err
	}
	req.Header = fields
	resp, err := g.client.Do(req)
	if err != nil {
		return v, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return v, err
	case len(body) > maxAnswer:
		return v, fmt.Errorf("%s: an answer of more than %d bytes", node, maxAnswer)
	case resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusNotFound:
		return v, fmt.Errorf("%s: %w with code %d: %.200s", node, errRefused, resp.StatusCode, body)
	case resp.StatusCode >= 500:
		return v, fmt.Errorf("%s: code %d: %.200s", node, resp.StatusCode, body)
	case resp.Header.Get(stateField) == stateFailed:
		return v, fmt.Errorf("%s: it cannot decide, or is not ready", node) // the reason is in its log
	case resp.StatusCode >= 200 && resp.StatusCode < 300:
		return Verdict{Admitted: true, Cookie: resp.Header.Get("Set-Cookie"), Proof: resp.Header.Get(g.cfg.ProofField), node: node}, nil
	}
	removeHops(resp.Header)
	return Verdict{Code: resp.StatusCode, Header: resp.Header, Body: body}, nil
}
