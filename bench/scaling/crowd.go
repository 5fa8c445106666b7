//go:build linux

package scaling

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// line is what goes to one node.
type line struct {
	client  http.Client
	node    string
	in      string   // the cookie of the visitor who is in
	waiting []string // those of visitors who wait
	next    int      // who of them polls next
}

// spare is how many seconds pass between two polls of a visitor; one that is told to ask every three
// seconds is not early then, and counted as of the poll before.
const spare = 3

// newCrowd has one visitor let in at each node, and others wait.
func newCrowd(ctx context.Context, cfg config, g *group) *crowd {
	c := &crowd{rate: cfg.rate}
	for _, p := range g.nodes {
		c.lines = append(c.lines, &line{node: p.http, client: http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}, waiting: make([]string, int(cfg.rate*spare))})
	}
	c.each(func(l *line) {
		l.once(inside)
		for range l.waiting {
			l.once(waiting)
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
			if l.once(kind) {
				c.answered.Add(1)
			} else {
				c.turned.Add(1)
			}
		}
	})
}

// once has whoever is next ask, and reports whether the answer is as it should be. It may not be where the load catches up
// after a standstill: a poll that comes early is told nothing, and costs less, and somebody new may be told to wait.
func (l *line) once(kind string) bool {
	switch kind {
	case inside:
		l.ask(kind, &l.in)
		return true
	case waiting:
		l.next = (l.next + 1) % len(l.waiting)
		_, told := l.ask(kind, &l.waiting[l.next])
		return told
	}
	cookie := ""
	queued, _ := l.ask(kind, &cookie)
	return !queued
}

// ask sends one request with a cookie, if it is not empty, and takes over that of the answer, if it tells one.
func (l *line) ask(kind string, cookie *string) (queued, told bool) {
	path := "/open"
	if kind == waiting {
		path = "/closed"
	}
	req := rig.Got(http.NewRequest(http.MethodGet, "http://"+l.node+path, nil))
	req.Host = "shop.example"
	req.Header.Set("Accept", "application/json")
	if *cookie != "" {
		req.Header.Set("Cookie", *cookie)
	}
	resp := rig.Got(l.client.Do(req))
	defer resp.Body.Close()
	body := string(rig.Got(io.ReadAll(resp.Body)))
	if queued = body != hello; kind != fresh && queued != (kind == waiting) {
		rig.Must(fmt.Errorf("%s got %s: %.80s", kind, resp.Status, body))
	}
	for _, k := range resp.Cookies() {
		*cookie, told = k.Name+"="+k.Value, true
	}
	return queued, told
}

func (c *crowd) close() {
	for _, l := range c.lines {
		l.client.CloseIdleConnections()
	}
}
