//go:build linux

package scaling

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// Kinds of requests.
const (
	inside  = "a visitor who is in"
	waiting = "a waiting visitor's poll"
	fresh   = "a new visitor, with a ticket"
)

var kinds = []string{inside, waiting, fresh}

// site is what the nodes protect.
type site struct {
	server *fasthttp.Server
	url    string
	done   chan error
}

func startSite() (*site, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &site{
		server: &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("hello\n") }},
		url:    "http://" + l.Addr().String(), done: make(chan error, 1),
	}
	go func() { s.done <- s.server.Serve(l) }()
	return s, nil
}

func (s *site) stop() {
	_ = s.server.Shutdown()
	<-s.done
}

// crowd asks all nodes of a group, each over one connection, at a steady rate whether or not
// answers are late.
type crowd struct {
	rate     float64
	lines    []*line
	answered atomic.Int64 // as they should be
	turned   atomic.Int64 // otherwise: somebody stood still for want of a processor
}

var (
	errTurned = errors.New("told to wait")                           // of a new visitor
	errEarly  = errors.New("a poll that came early, and costs less") // when the load catches up after a standstill
)

// line is what goes to one node.
type line struct {
	conn    net.Conn
	read    *bufio.Reader
	write   *bufio.Writer
	next    int // who polls next
	cookies []string
	in      string // the cookie of the visitor who is in
}

// spare is how many seconds pass between two polls of a visitor; one that is told to ask every three
// seconds is not early then, and counted as of the poll before.
const spare = 3

// newCrowd connects to all nodes, has one visitor let in at each, and others wait.
func newCrowd(ctx context.Context, cfg config, g *group) (*crowd, error) {
	c := &crowd{rate: cfg.rate}
	for _, p := range g.nodes {
		conn, err := net.Dial("tcp4", p.http)
		if err != nil {
			c.close()
			return nil, err
		}
		c.lines = append(c.lines, &line{conn: conn, read: bufio.NewReader(conn), write: bufio.NewWriter(conn)})
	}
	err := c.each(func(l *line) error {
		var err error
		if l.in, err = l.ask(inside, ""); err != nil {
			return err
		}
		for range int(cfg.rate * spare) {
			cookie, err := l.ask(waiting, "")
			if err != nil {
				return err
			}
			l.cookies = append(l.cookies, cookie)
		}
		return ctx.Err()
	})
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// each calls f for all lines at once.
func (c *crowd) each(f func(*line) error) error {
	errs := make([]error, len(c.lines))
	var wg sync.WaitGroup
	for i, l := range c.lines {
		wg.Go(func() { errs[i] = f(l) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// ask has all lines ask for a while.
func (c *crowd) ask(ctx context.Context, kind string, lasts time.Duration) error {
	every := time.Duration(float64(time.Second) / c.rate)
	start := time.Now()
	return c.each(func(l *line) error {
		for at := time.Duration(0); at < lasts; at += every {
			if wait := time.Until(start.Add(at)); wait > 0 {
				time.Sleep(wait)
			}
			if time.Since(start) > lasts || ctx.Err() != nil {
				break // it has fallen behind
			}
			switch err := l.once(kind); {
			case errors.Is(err, errTurned), errors.Is(err, errEarly):
				c.turned.Add(1)
			case err != nil:
				return err
			default:
				c.answered.Add(1)
			}
		}
		return context.Cause(ctx)
	})
}

// once asks for whoever is next.
func (l *line) once(kind string) error {
	switch kind {
	case inside:
		cookie, err := l.ask(kind, l.in)
		if cookie != "" {
			l.in = cookie // the session was extended
		}
		return err
	case waiting:
		l.next = (l.next + 1) % len(l.cookies)
		cookie, err := l.ask(kind, l.cookies[l.next])
		if err == nil && cookie == "" {
			return errEarly
		}
		if err == nil {
			l.cookies[l.next] = cookie
		}
		return err
	}
	_, err := l.ask(kind, "")
	return err
}

// ask sends one request with a cookie, if it is not empty, and returns that of the answer.
func (l *line) ask(kind, cookie string) (string, error) {
	path := "/open"
	if kind == waiting {
		path = "/closed"
	}
	fmt.Fprintf(l.write, "GET %s HTTP/1.1\r\nHost: shop.example\r\nAccept: application/json\r\n", path)
	if cookie != "" {
		fmt.Fprintf(l.write, "Cookie: %s\r\n", cookie)
	}
	if _, err := l.write.WriteString("\r\n"); err != nil {
		return "", err
	}
	if err := l.write.Flush(); err != nil {
		return "", err
	}
	var resp fasthttp.Response
	if err := resp.Read(l.read); err != nil {
		return "", err
	}
	switch queued := string(resp.Body()) != "hello\n"; {
	case queued && kind == fresh:
		return "", errTurned
	case queued != (kind == waiting):
		return "", fmt.Errorf("%s got %d: %.80s", kind, resp.StatusCode(), resp.Body())
	}
	set := ""
	for _, value := range resp.Header.Cookies() {
		var k fasthttp.Cookie
		if err := k.ParseBytes(value); err != nil {
			return "", err
		}
		set = string(k.Key()) + "=" + string(k.Value())
	}
	return set, nil
}

func (c *crowd) close() {
	for _, l := range c.lines {
		l.conn.Close()
	}
}
