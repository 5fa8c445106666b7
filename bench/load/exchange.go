package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/valyala/fasthttp"
)

// maxJSON bounds how much of a JSON answer is looked at. A room's is far
// smaller; the rest of a longer one is read and thrown away.
const maxJSON = 64 << 10

// request is what a visitor asks.
type request struct {
	method string
	path   string
	agent  string // empty: none
	jar    *jar
}

// client sends requests for all visitors of a run. It writes heads itself and
// leaves the reading of answers to fasthttp, whose parser makes no garbage; so
// a generator can sit on the same machine as what it measures and leave it most
// of the processor.
type client struct {
	host    string
	accept  string
	timeout time.Duration
	start   time.Time
	pools   []*pool
	close   func() // ends all connections
}

func newClient(cfg Config, targets []endpoint, start time.Time) *client {
	open, end := context.WithCancel(context.Background())
	c := &client{host: cfg.Host, accept: cfg.Accept, timeout: cfg.RequestTimeout, start: start, close: end}
	for _, t := range targets {
		c.pools = append(c.pools, newPool(open, t, cfg))
	}
	return c
}

// do sends a request to one target and stores the cookies of the answer. An
// error means that no answer came.
//
// A request has the whole time for its answer, however long it waited for a
// connection: with what was left of one time for both, a crowd that is larger
// than can be served at the moment would have requests broken off that are being
// served, and the longer the line, the more.
func (c *client) do(ctx context.Context, target int, r request) (answer, error) {
	p := c.pools[target]
	cn, err := p.get(ctx, time.Now().Add(c.timeout), false)
	if err != nil {
		return answer{}, err
	}
	deadline := time.Now().Add(c.timeout)
	a, err := c.roundTrip(p, cn, deadline, r)
	if errors.Is(err, errStale) {
		// The server closed an idle connection just when we took it, which is
		// nobody's failure.
		p.dropIdle()
		if cn, err = p.get(ctx, deadline, true); err != nil {
			return answer{}, err
		}
		a, err = c.roundTrip(p, cn, deadline, r)
	}
	return a, err
}

// errStale is a connection that was used before and broke before the first byte
// of an answer.
var errStale = errors.New("the connection was closed while it was idle")

// roundTrip sends a request over cn, and gives cn back.
func (c *client) roundTrip(p *pool, cn *conn, deadline time.Time, r request) (answer, error) {
	// An error here shows up again at once when the connection is used.
	_ = cn.SetDeadline(deadline)
	sent := time.Now()
	cn.wbuf = c.appendHead(cn.wbuf[:0], r, sent)
	_, err := cn.Write(cn.wbuf)
	if err == nil {
		_, err = cn.br.Peek(1)
	}
	if err != nil {
		p.drop(cn)
		if cn.reused && !isTimeout(err) {
			return answer{}, errStale
		}
		return answer{}, fmt.Errorf("%s: %w", p.endpoint.address, err)
	}
	a, reusable, err := c.receive(cn, r)
	if err != nil {
		p.drop(cn)
		return answer{}, fmt.Errorf("%s: answer: %w", p.endpoint.address, err)
	}
	if reusable && cn.br.Buffered() == 0 {
		p.put(cn)
	} else {
		p.drop(cn)
	}
	a.sent = sent.Sub(c.start)
	return a, nil
}

func isTimeout(err error) bool {
	ne, ok := errors.AsType[net.Error](err)
	return ok && ne.Timeout()
}

// appendHead appends the head of a request. None has a body: those that a log
// remembers are not in the log.
func (c *client) appendHead(dst []byte, r request, now time.Time) []byte {
	dst = append(append(dst, r.method...), ' ')
	dst = append(append(dst, r.path...), " HTTP/1.1\r\nHost: "...)
	dst = append(append(dst, c.host...), "\r\nAccept: "...)
	dst = append(append(dst, c.accept...), "\r\n"...)
	if r.agent != "" {
		dst = append(append(append(dst, "User-Agent: "...), r.agent...), "\r\n"...)
	}
	switch r.method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		dst = append(dst, "Content-Length: 0\r\n"...)
	}
	dst = r.jar.appendHeader(dst, now)
	return append(dst, "\r\n"...)
}

// receive reads an answer to its last byte and reports whether the connection
// can be used again.
func (c *client) receive(cn *conn, r request) (a answer, reusable bool, err error) {
	resp := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(resp)
	resp.StreamBody = true
	resp.SkipBody = r.method == http.MethodHead
	if err := resp.ReadLimitBody(cn.br, 0); err != nil {
		return a, false, err
	}
	h := head{
		status:     resp.StatusCode(),
		state:      string(resp.Header.Peek("Ropeline-State")),
		refresh:    string(resp.Header.Peek("Refresh")),
		retryAfter: string(resp.Header.Peek("Retry-After")),
	}
	if stream := resp.BodyStream(); stream != nil {
		if bytes.Contains(resp.Header.ContentType(), []byte("json")) {
			if h.body, err = io.ReadAll(io.LimitReader(stream, maxJSON)); err != nil {
				return a, false, err
			}
		}
		if _, err := io.Copy(io.Discard, stream); err != nil {
			return a, false, err
		}
	}
	now := time.Now()
	for _, header := range resp.Header.Cookies() {
		r.jar.set(string(header), now)
	}
	a = h.read(now)
	a.done = now.Sub(c.start)
	return a, !resp.ConnectionClose(), nil
}

// reachTimeout bounds how long one silent target can hold up the start.
const reachTimeout = 3 * time.Second

// reach connects to one target after the other until one can be reached. A wrong address is thus told at once, and not only
// after every visitor has given up.
func (c *client) reach(ctx context.Context) error {
	var all []error
	for _, p := range c.pools {
		cn, err := p.get(ctx, time.Now().Add(min(c.timeout, reachTimeout)), true)
		if err == nil {
			p.put(cn)
			return nil
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}
