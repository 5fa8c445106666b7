//go:build linux

package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/ropeline/ropeline/bench/faults/check"
	"github.com/ropeline/ropeline/bench/faults/record"
	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/node"
)

// Limits that operators change while somebody leaves, and is killed.

// order has an operator ask something of a node.
func (r *run) order(n *rig.Node, method, path string, body any) {
	ctx, cancel := context.WithTimeout(r.ctx, 10*time.Second)
	defer cancel()
	req := rig.Got(http.NewRequestWithContext(ctx, method, "http://"+n.Place.Admin+path, bytes.NewReader(rig.Got(json.Marshal(body)))))
	req.Header.Set("Content-Type", "application/json")
	resp := rig.Got(http.DefaultClient.Do(req))
	defer resp.Body.Close()
	if said, _ := io.ReadAll(resp.Body); resp.StatusCode >= 300 {
		rig.Must(fmt.Errorf("%s %s at %s: %s: %s", method, path, n.Name, resp.Status, said))
	}
}

// limit has an operator set the limit of active users at a node.
func (r *run) limit(n *rig.Node, active int) {
	l := check.Limit{Asked: record.Now(), Active: active, PerMinute: r.Room.perMinute}
	r.mark("the limit is %d from now on, an operator says at %s", active, n.Name)
	defer func() { // whether it was answered or not
		l.Told = record.Now()
		r.limits = append(r.limits, l)
	}()
	r.order(n, http.MethodPatch, "/api/v1/rooms/default", map[string]int{"total_active_users": active})
}

// minter returns the node that makes the rights, by its own word.
func (r *run) minter() *rig.Node {
	for _, n := range r.mesh.Nodes {
		if is := r.rights(n); is != nil && is.Minter == r.status(n).Node {
			return n
		}
	}
	rig.Must(errors.New("no node makes the rights of the room"))
	return nil
}

// raiseAndLeave has the limit raised at one node, and the one that makes the rights leave
// for good as soon as it has made those. With kill it is killed when its heir has what it
// had: whoever makes the next ones has to know what there is. That is at least what the
// limit was raised by, since it has not been given to anybody.
func raiseAndLeave(kill bool) func(*run) {
	return func(r *run) {
		m := r.minter()
		heirs := make(map[*rig.Node]int64)
		at := m
		for _, n := range r.mesh.Nodes {
			if n != m {
				heirs[n], at = r.held(n), n
			}
		}
		twice := 2 * r.Room.active
		r.limit(at, twice)
		r.await(m, 3*time.Second, "has made the rights", func(s node.Status) bool {
			return s.Rooms[0].Rights.Minted.Places == int64(twice)
		})
		r.mark("%s, which makes the rights, leaves for good", m.Name)
		r.order(m, http.MethodPost, "/api/v1/nodes/"+m.Name+"/drain", map[string]bool{"leave": true})
		if kill {
			r.until(4*time.Second, 4*time.Millisecond, func() bool {
				for n, had := range heirs {
					if r.held(n) >= had+int64(r.Room.active)*9/10 {
						return true
					}
				}
				return false
			})
			r.mark("%s is killed", m.Name)
			r.kill(m)
		}
		r.sleep(turnOver)
	}
}

func (r *run) held(n *rig.Node) int64 {
	if is := r.rights(n); is != nil {
		return is.Held.Places
	}
	return 0
}

// lowerAndRaise has the limit changed at all nodes in turn, down and up, while the room is
// full.
func lowerAndRaise(r *run) {
	for i, part := range []float64{0.5, 1.5, 0.25, 1} {
		r.limit(r.mesh.Nodes[i%len(r.mesh.Nodes)], int(part*float64(r.Room.active)))
		r.sleep(12 * time.Second)
	}
}
