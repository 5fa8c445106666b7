//go:build linux

package scaling

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
)

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
	next    int // who polls next
	cookies []string
	in      string // the cookie of the visitor who is in
}

// spare is how many seconds pass between two polls of a visitor; one that is told to ask every three
// seconds is not early then, and counted as of the poll before.
const spare = 3

// newCrowd connects to all nodes, has one visitor let in at each, and others wait.
func newCrowd(ctx context.Context, cfg config, g *group) *crowd {
	c := &crowd{rate: cfg.rate}
	for _, p := range g.nodes {
		conn, err := net.Dial("tcp4", p.http)
		if err != nil {
			c.close()
			rig.Must(err)
		}
		c.lines = append(c.lines, &line{conn: conn, read: bufio.NewReader(conn)})
	}
	c.each(func(l *line) {
		l.in = rig.Got(l.ask(inside, ""))
		for range int(cfg.rate * spare) {
			l.cookies = append(l.cookies, rig.Got(l.ask(waiting, "")))
		}
		rig.Must(ctx.Err())
	})
	return c
}

// each calls f for all lines at once.
func (c *crowd) each(f func(*line)) {
	errs := make([]error, len(c.lines))
	var wg sync.WaitGroup
	for i, l := range c.lines {
		wg.Go(func() { errs[i] = rig.Try(func() { f(l) }) })
	}
	wg.Wait()
	rig.Must(errors.Join(errs...))
}

// ask has all lines ask for a while.
func (c *crowd) ask(ctx context.Context, kind string, lasts time.Duration) {
	every := time.Duration(float64(time.Second) / c.rate)
	start := time.Now()
	c.each(func(l *line) {
		for at := time.Duration(0); at < lasts && time.Since(start) < lasts; at += every { // or it has fallen behind
			rig.Must(rig.Sleep(ctx, time.Until(start.Add(at))))
			switch err := l.once(kind); {
			case errors.Is(err, errTurned), errors.Is(err, errEarly):
				c.turned.Add(1)
			default:
				rig.Must(err)
				c.answered.Add(1)
			}
		}
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
func (l *line) ask(kind, cookie string) (set string, err error) {
	path := "/open"
	if kind == waiting {
		path = "/closed"
	}
	var resp *http.Response
	var body []byte
	err = rig.Try(func() {
		req := rig.Got(http.NewRequest(http.MethodGet, "http://shop.example"+path, nil))
		req.Header.Set("Accept", "application/json")
		if cookie != "" {
			req.Header.Set("Cookie", cookie)
		}
		rig.Must(req.Write(l.conn))
		resp = rig.Got(http.ReadResponse(l.read, req))
		body = rig.Got(io.ReadAll(resp.Body))
	})
	if err != nil {
		return "", err
	}
	switch queued := string(body) != hello; {
	case queued && kind == fresh:
		return "", errTurned
	case queued != (kind == waiting):
		return "", fmt.Errorf("%s got %s: %.80s", kind, resp.Status, body)
	}
	for _, k := range resp.Cookies() {
		set = k.Name + "=" + k.Value
	}
	return set, nil
}

func (c *crowd) close() {
	for _, l := range c.lines {
		l.conn.Close()
	}
}
