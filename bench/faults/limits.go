//go:build linux

package faults

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/faults/check"
	"github.com/ropeline/ropeline/bench/faults/record"
	"github.com/ropeline/ropeline/bench/rig"
)

// Limits that operators change.

// limit has an operator set the limit of active users at a node.
func (r *run) limit(n *rig.Node, active int) {
	l := check.Limit{Asked: record.Now(), Active: active, PerMinute: r.Room.perMinute}
	r.mark("the limit is %d from now on, an operator says at %s", active, n.Name)
	defer func() { // whether it was answered or not
		l.Told = record.Now()
		r.limits = append(r.limits, l)
	}()
	ctx, cancel := context.WithTimeout(r.ctx, 10*time.Second)
	defer cancel()
	body := fmt.Sprintf(`{"total_active_users": %d}`, active)
	req := rig.Got(http.NewRequestWithContext(ctx, http.MethodPatch, "http://"+n.Place.Admin+"/api/v1/rooms/default", strings.NewReader(body)))
	req.Header.Set("Content-Type", "application/json")
	resp := rig.Got(http.DefaultClient.Do(req))
	defer resp.Body.Close()
	if said, _ := io.ReadAll(resp.Body); resp.StatusCode >= 300 {
		rig.Must(fmt.Errorf("%s does not change the limit: %s: %s", n.Name, resp.Status, said))
	}
}

// lowerAndRaise has the limit changed at all nodes in turn, down and up, while the room is
// full.
func lowerAndRaise(r *run) {
	for i, part := range []float64{0.5, 1.5, 0.25, 1} {
		r.limit(r.mesh.Nodes[i%len(r.mesh.Nodes)], int(part*float64(r.Room.active)))
		r.sleep(12 * time.Second)
	}
}
