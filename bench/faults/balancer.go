//go:build linux

package faults

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ropeline/ropeline/bench/rig"
)

// balancer is what operators have in front of their nodes: a HAProxy that asks /readyz ten times a second, deals
// requests out in turn, and gives to the next node what it could not deliver or what was answered 503. Unlike visitors
// who know all nodes it sees when a node comes and goes.
type balancer struct {
	*rig.Process
	addr  string
	stats string // the socket at which it tells its statistics
}

// balancerConfig is as docs/operating.md has it.
const balancerConfig = `
global
 nbthread 1
 maxconn 4096
 stats socket %s
defaults
 mode http
 timeout connect 1s
 timeout client 1m
 timeout server 1m
 timeout check 3s
 option redispatch 1
 retries 5
 retry-on conn-failure 503
frontend visitors
 bind %s
 default_backend nodes
backend nodes
 balance roundrobin
 option httpchk GET /readyz
 default-server inter 100ms fall 1 rise 1
`

// startBalancer starts one in front of nodes, of which some may come later. Its files are in dir.
func startBalancer(ctx context.Context, dir string, nodes []*rig.Node) (*balancer, error) {
	if missing := rig.Missing("haproxy"); missing != nil {
		return nil, fmt.Errorf("%w: %s is not there", rig.ErrCannot, missing[0])
	}
	addr, err := rig.Free()
	if err != nil {
		return nil, err
	}
	b := &balancer{addr: addr, stats: filepath.Join(dir, "haproxy.sock")}
	config := fmt.Appendf(nil, balancerConfig, b.stats, addr)
	for _, n := range nodes {
		_, port, _ := strings.Cut(n.Place.Admin, ":")
		config = fmt.Appendf(config, " server %s %s check port %s\n", n.Name, n.Place.HTTP, port)
	}
	file := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return nil, err
	}
	if b.Process, err = rig.Start(ctx, rig.Command{Name: "haproxy", Args: []string{"-db", "-f", file}}); err != nil {
		return nil, err
	}
	if err := b.AwaitListener(ctx, addr); err != nil {
		return nil, errors.Join(err, b.Stop())
	}
	return b, nil
}

// count returns what the balancer has counted of each node so far, by the name of a column of its statistics.
func (b *balancer) count(column string) map[string]int {
	c := rig.Got(net.Dial("unix", b.stats))
	defer c.Close()
	rig.Got(io.WriteString(c, "show stat\n"))
	rows := rig.Got(csv.NewReader(c).ReadAll())
	at, counts := slices.Index(rows[0], column), map[string]int{}
	for _, row := range rows {
		if row[0] == "nodes" && row[1] != "BACKEND" {
			counts[row[1]] = rig.Got(strconv.Atoi(row[at]))
		}
	}
	return counts
}

// Columns of its statistics.
const (
	statRequests = "stot"
	statFailed   = "eresp" // a node was asked, and its answer did not come or broke off
)
