package upstream

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"time"
)

// checkAgain checks p's origin at once and then again and again, until ctx ends.
func (g *Group) checkAgain(ctx context.Context, p *pool) {
	transport := g.checking(p)
	defer transport.CloseIdleConnections()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		err := g.checkOnce(ctx, transport, p.origin)
		if ctx.Err() != nil {
			return
		}
		g.observe(p.index, err, func(h *health, now time.Time) change { return h.check(g.cfg.Check, err == nil, now) })
		timer.Reset(jittered(g.cfg.Check.Interval, rand.Float64()))
	}
}

// checking returns what checks go by: the same way as requests.
func (g *Group) checking(p *pool) *http.Transport {
	return &http.Transport{
		// The look at the address included; no proxy of the environment, which would look at nothing.
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := g.connect(ctx, p.origin.addr)
			if err != nil {
				return nil, dialError{err}
			}
			return c, nil
		},
		TLSClientConfig:        p.tls,
		DisableKeepAlives:      true, // that a connection can be opened is part of the check
		MaxResponseHeaderBytes: readerSize,
	}
}

// dialError says that there is no connection.
type dialError struct{ error }

// Unwrap returns why.
func (e dialError) Unwrap() error { return e.error }

// jittered returns d, up to a tenth longer or shorter. chance is from 0 to 1.
func jittered(d time.Duration, chance float64) time.Duration {
	return d + time.Duration(float64(d)*(chance-0.5)/5)
}

// userAgent is what checks and probes call themselves.
const userAgent = "ropeline-health-check"

// checkBodyMax is how much of a check's answer is read. An answer that has begun
// well is good; the rest is read so that the origin sees no broken connection.
const checkBodyMax = 64 << 10

// checkOnce returns nil if the origin is well.
func (g *Group) checkOnce(ctx context.Context, rt http.RoundTripper, o Origin) error {
	c := g.cfg.Check
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	target, err := url.Parse(o.url + c.Path)
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	req.Header.Set("User-Agent", userAgent)
	if c.Host != "" {
		req.Host = c.Host
	}
	resp, err := rt.RoundTrip(req) // which follows no redirects
	if err != nil {
		return fmt.Errorf("check: GET %s: %w", c.Path, err)
	}
	defer resp.Body.Close()
	if !c.accepts(resp.StatusCode) {
		return fmt.Errorf("check: GET %s: status %d", c.Path, resp.StatusCode)
	}
	if _, err := io.CopyN(io.Discard, resp.Body, checkBodyMax); err != nil && err != io.EOF {
		return fmt.Errorf("check: GET %s: body: %w", c.Path, err)
	}
	return nil
}

// probeTimeout is for the whole answer to a probe.
const probeTimeout = 5 * time.Second

// probeOnce returns nil if p's origin answers with a status below 500, or with 501: it may know no HEAD. It asks for a host
// for which visitors had answers, as a site may have none for others.
func (g *Group) probeOnce(ctx context.Context, rt http.RoundTripper, p *pool) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, p.origin.url+"/", nil)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	if h := p.host.Load(); h != nil {
		req.Host = *h
	}
	req.Header.Set("User-Agent", userAgent)
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("probe: HEAD /: %w", err)
	}
	resp.Body.Close()
	if resp.StatusCode >= http.StatusInternalServerError && resp.StatusCode != http.StatusNotImplemented {
		return fmt.Errorf("probe: HEAD /: %w", statusError(resp.StatusCode))
	}
	return nil
}
