//go:build unix

package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/ropeline/ropeline/bench/rig"
)

// ropeline is a node that only gives verdicts.
type ropeline struct {
	*rig.Process
	verdicts string // where it is asked
}

// startNode starts a node with a room for each case, all by themselves: each has its own
// host.
func startNode(ctx context.Context, binary, dir string, cases []testCase) (*ropeline, error) {
	ports, err := rig.FreePorts(2)
	if err != nil {
		return nil, err
	}
	verdicts, admin := ports[0], ports[1]
	var b strings.Builder
	fmt.Fprintf(&b, "verdict-listen: %s\nadmin: %s\ntrusted-proxies: [127.0.0.1]\ndata-dir: %q\n", verdicts, admin, filepath.Join(dir, "node"))
	fmt.Fprintf(&b, "proof: true\nenabled-origin-commands: [revoke]\nqueueing-status-code: %d\nnew-users-per-minute: 1000\nrefresh-interval: 1s\ncountry-header: %s\n", roomCode, countryField)
	fmt.Fprintf(&b, "rate-limits:\n  - {name: limited, expression: 'http.host eq \"limited.example\"', characteristics: [ip.src], period: 1h, requests-per-period: %d, status-code: %d, content: '%s', content-type: application/json}\n", limitRequests, limitCode, limitContent)
	b.WriteString("rooms:\n")
	for _, c := range cases {
		fmt.Fprintf(&b, "  - room: %s\n    host: %s\n    total-active-users: %d\n    session-duration: %s\n", c.id, c.host(), c.places, c.session())
		if c.rule != "" {
			fmt.Fprintf(&b, "    rules: [{expression: %q}]\n", c.rule)
		}
	}
	config := filepath.Join(dir, "ropeline.yaml")
	if err := os.WriteFile(config, []byte(b.String()), 0o600); err != nil {
		return nil, err
	}
	p, err := rig.Start(ctx, rig.Command{Name: binary, Args: []string{"run", "--config", config}})
	if err != nil {
		return nil, err
	}
	if err := p.Await(ctx, "http://"+verdicts+"/readyz"); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return &ropeline{p, verdicts}, nil
}

// roomCode is the status code that all rooms have for their pages: one that most
// proxies would take for a yes.
const roomCode = http.StatusAccepted

// countryField is where the node reads the country of visitors whom it proxies.
const countryField = "CF-IPCountry"
