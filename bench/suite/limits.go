package suite

import (
	"fmt"
	"net/http"
	"path/filepath"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
)

const (
	limitPage = "rate-limits-measured.md"

	// What each server is measured in.
	without = "no limit"
	within  = "within a limit"
	beyond  = "beyond it"
)

// limits is what a rate limit costs.
func limits() benchmark {
	b := benchmark{
		name: "limit-bench", page: limitPage, site: true,
		question: "What does a rate limit cost, beside those of nginx and HAProxy?",
		method: "One server at a time on one core, a load that asks again as soon as it has an answer, on 64 connections, and the site on the other: requests without a limit, " +
			"within one that is not reached, and beyond one that refuses nearly all.",
		ratios: []ratio{
			{
				measurement.Unit{Name: "of-no-limit", Meaning: "processor time by what the same server takes without a limit, within a round", Better: "lower"},
				func(e *entry) string { return e.server + ", " + without }, byCPU,
			},
			{
				measurement.Unit{Name: "ropeline-by-it", Meaning: "processor time of ropeline by that of this server, within a round", Better: "lower"},
				func(e *entry) string { return "ropeline, " + e.what }, func(s, ropeline sample) float64 { return ropeline[cpu] / s[cpu] },
			},
		},
	}
	for _, s := range []struct {
		name  string
		needs []string
		start func(p *place, what string) (*rig.Process, error)
	}{{"ropeline", nil, limitedRopeline}, {"nginx", []string{"nginx"}, limitedNginx}, {"HAProxy", []string{"haproxy"}, limitedHAProxy}} {
		for _, what := range []string{without, within, beyond} {
			b.entries = append(b.entries, entry{server: s.name, what: what, needs: s.needs, start: func(p *place) *subject {
				sub := p.proxied(s.start(p, what)) // which takes the one request that a limit lets pass
				if what == beyond {
					sub.code, sub.probe = http.StatusTooManyRequests, nil
				}
				return sub
			}})
		}
	}
	return b
}

func limitedRopeline(p *place, what string) (*rig.Process, error) {
	return startNode(p, "suspended: true\n"+map[string]string{
		within: "rate-limits: [{name: all, expression: 'true', characteristics: [ip.src], period: 1m, requests-per-period: 1000000000}]\n",
		beyond: "rate-limits: [{name: all, expression: 'true', characteristics: [ip.src], period: 1h, requests-per-period: 1, mitigation-timeout: 1h}]\n",
	}[what])
}

func limitedNginx(p *place, what string) (*rig.Process, error) {
	zones := map[string]string{
		within: "limit_req_zone $binary_remote_addr zone=all:10m rate=1000000r/s;",
		beyond: "limit_req_zone $binary_remote_addr zone=all:10m rate=1r/m;",
	}
	limit := map[string]string{within: "limit_req zone=all burst=1000000 nodelay;", beyond: "limit_req zone=all; limit_req_status 429; limit_req_log_level info;"}
	return rig.StartNginx(p.ctx, rig.OfServer, filepath.Join(p.dir, "nginx"), rig.NginxProxy(p.listen, p.site, zones[what], limit[what]))
}

func limitedHAProxy(p *place, what string) (*rig.Process, error) {
	most := map[string]int{within: 2_000_000_000, beyond: 1}
	var limit []string
	if most[what] > 0 {
		limit = []string{
			"stick-table type ipv6 size 1m expire 1h store http_req_rate(1h)", "http-request track-sc0 src",
			fmt.Sprintf("http-request deny deny_status 429 if { sc_http_req_rate(0) gt %d }", most[what]),
		}
	}
	return rig.StartHAProxy(p.ctx, rig.OfServer, p.dir, p.listen, p.site, limit...)
}
