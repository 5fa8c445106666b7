package limiters

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/ropeline/ropeline/bench/rig"
)

// Where the server under test and the site are.
const (
	address = "127.0.0.1:24980"
	site    = "127.0.0.1:24981"
)

// server is one kind of server under test.
type server struct {
	name  string
	start func(ctx context.Context, dir, binary, c string) (*rig.Process, error)
}

var servers = []server{{"ropeline", startRopeline}, {"nginx", startNginx}, {"HAProxy", startHAProxy}}

func startRopeline(ctx context.Context, dir, binary, c string) (*rig.Process, error) {
	limits := map[string]string{
		within: "rate-limits: [{name: all, expression: 'true', characteristics: [ip.src], period: 1m, requests-per-period: 1000000000}]\n",
		beyond: "rate-limits: [{name: all, expression: 'true', characteristics: [ip.src], period: 1h, requests-per-period: 1, mitigation-timeout: 1h}]\n",
	}
	return rig.StartNode(ctx, rig.NodeConfig{Binary: binary, Listen: address, Admin: "127.0.0.1:24982", Site: site, Dir: dir, Config: "suspended: true\n" + limits[c]})
}

func startNginx(ctx context.Context, dir, _, c string) (*rig.Process, error) {
	zones := map[string]string{
		within: "limit_req_zone $binary_remote_addr zone=all:10m rate=1000000r/s;",
		beyond: "limit_req_zone $binary_remote_addr zone=all:10m rate=1r/m;",
	}
	limit := map[string]string{within: "limit_req zone=all burst=1000000 nodelay;", beyond: "limit_req zone=all; limit_req_status 429; limit_req_log_level info;"}
	return rig.StartNginx(ctx, rig.OfServer, filepath.Join(dir, "nginx"), rig.NginxProxy(address, site, zones[c], limit[c]))
}

func startHAProxy(ctx context.Context, dir, _, c string) (*rig.Process, error) {
	most := map[string]int{within: 2_000_000_000, beyond: 1}
	var limit []string
	if most[c] > 0 {
		limit = []string{"stick-table type ipv6 size 1m expire 1h store http_req_rate(1h)", "http-request track-sc0 src",
			fmt.Sprintf("http-request deny deny_status 429 if { sc_http_req_rate(0) gt %d }", most[c])}
	}
	return rig.StartHAProxy(ctx, rig.OfServer, dir, address, site, limit...)
}
