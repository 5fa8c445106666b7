package suite

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
)

// strangerCookie is what servers get that give no passes, so that all read heads of the same length.
var strangerCookie = "visitor=" + strings.Repeat("0123456789abcdef", 9)

// The rows that bounds are about.
const (
	rowWithout  = "ropeline, no room"
	rowAdmitted = "ropeline, a room, admitted"
	rowNginx    = "nginx"
	manyConns   = 1000
)

// proxying is what a request costs that goes on to the site.
func proxying() benchmark {
	many := fmt.Sprintf("%d connections", manyConns)
	rowMany := rowAdmitted + ", " + many
	return benchmark{
		name: "proxy", site: true, ratios: append(byRow(rowNginx),
			aside("beyond-no-room", map[string]string{rowAdmitted: rowWithout}, beyondCPU),
			aside("rate-of-few", map[string]string{rowMany: rowAdmitted}, func(s, few sample) float64 { return s[perSecond] / few[perSecond] })),
		question: "What does a request cost that goes on to the site, with a room and without, and beside other proxies?",
		method: "The site is an nginx that answers 6 bytes. Every proxy keeps connections to it. Admitted visitors are 1,000 with a pass each, let in under the policy escrow; " +
			"their sessions run. Each connection is one visitor's, as those of browsers are; where it says mixed, all connections bring all of them in turn, as behind a balancer. What is sent to others has a foreign cookie of about the same length.",
		entries: []entry{
			{server: "ropeline", what: "no room", start: startSuspended},
			{server: "ropeline", what: "a room, admitted", start: startAdmitted},
			{server: "ropeline", what: "a room, admitted, mixed", start: func(p *place) *subject {
				sub := startAdmitted(p)
				sub.onePerConn = false
				return sub
			}},
			{server: "nginx", needs: []string{"nginx"}, start: startNginx},
			{server: "HAProxy", needs: []string{"haproxy"}, start: func(p *place) *subject {
				return p.proxied(rig.StartHAProxy(p.ctx, rig.OfServer, p.dir, p.listen, p.site))
			}},
			{server: "Caddy", needs: []string{"caddy"}, start: func(p *place) *subject {
				return p.proxied(rig.StartCaddy(p.ctx, rig.OfServer, p.dir, p.caddy, p.listen, p.site))
			}},
			{server: "ropeline", what: "a room, admitted, " + many, conns: manyConns, start: startAdmitted},
			{server: "nginx", what: many, conns: manyConns, needs: []string{"nginx"}, start: startNginx},
		},
		bounds: []measurement.Bound{
			{Row: rowAdmitted, Unit: "beyond-no-room", Most: 1.3, Text: "a room costs an admitted request, beyond proxying without one [µs]"},
			{Row: rowAdmitted, Unit: byBase, Most: 1, Text: "processor time of an admitted request by that of nginx"},
			{Row: rowMany, Unit: "rate-of-few", Least: 0.9, Text: "rate at 1,000 connections by that at 64"},
			{Row: rowMany, Unit: bad, Most: measurement.NoneAtAll, Text: "answers at 1,000 connections that are no 200, or did not come"},
		},
	}
}

func startNginx(p *place) *subject {
	return p.proxied(rig.StartNginx(p.ctx, rig.OfServer, p.dir, rig.NginxProxy(p.listen, p.site, "", "")))
}

// isSite reports what keeps an answer from being the site's.
func isSite(resp *http.Response) error {
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if string(body) != "hello\n" {
		return fmt.Errorf("the answer is not the site's: %.100q", body)
	}
	return nil
}

// longConnections keeps a node from ending connections after 1,000 requests, which the other proxies are told not to do either.
const longConnections = "max-requests-per-connection: 1048576\n"

func startSuspended(p *place) *subject { return asNode(p.proxied(startNode(p, "suspended: true\n"))) }

func startNode(p *place, config string) (*rig.Process, error) {
	return rig.StartNode(p.ctx, rig.NodeConfig{
		Binary: p.run.Binary, Listen: p.listen, Admin: p.admin, Site: p.site, Dir: p.dir,
		Config: longConnections + config, Env: []string{rig.Shipped + ",gctrace=1"},
	})
}

// asNode says of a subject that it is a node.
func asNode(sub *subject) *subject {
	sub.nodes = sub.parts
	return sub
}

// admittedVisitors is how many have a pass.
const admittedVisitors = 1000

func startAdmitted(p *place) *subject {
	sub := asNode(p.proxied(startNode(p, "total-active-users: 1000000\nnew-users-per-minute: 1000000\n")))
	sub.heads, sub.onePerConn = nil, true
	rig.Must(sub.parts[0].AwaitFunc(p.ctx, "lets visitors in", func(ctx context.Context) bool {
		_, err := newcomers(ctx, p.listen, "*/*", "", 1, 0)
		return err == nil
	}))
	for _, c := range rig.Got(newcomers(p.ctx, p.listen, "*/*", "", admittedVisitors, admittedVisitors)) {
		sub.heads = append(sub.heads, head(c))
	}
	return sub
}
