//go:build linux

package faults

import (
	"bytes"
	"context"
	"encoding/json"
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
func (r *run) order(n *rig.Node, method, path string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+n.Place.Admin+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if said, _ := io.ReadAll(resp.Body); resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s at %s: %s: %s", method, path, n.Name, resp.Status, said)
	}
	return nil
}

// limit has an operator set the limit of active users at a node.
func (r *run) limit(n *rig.Node, active int) error {
	l := check.Limit{Asked: record.Now(), Active: active, PerMinute: r.Room.perMinute}
	r.mark("the limit is %d from now on, an operator says at %s", active, n.Name)
	err := r.order(n, http.MethodPatch, "/api/v1/rooms/default", map[string]int{"total_active_users": active})
	l.Told = record.Now()
	r.limits = append(r.limits, l)
	return err
}

// minter returns the node that makes the rights, by its own word.
func (r *run) minter() (*rig.Node, error) {
	for _, n := range r.mesh.Nodes {
		if s, err := n.Status(r.ctx); err == nil && len(s.Rooms) > 0 && s.Rooms[0].Rights != nil && s.Rooms[0].Rights.Minter == s.Node {
			return n, nil
		}
	}
	return nil, fmt.Errorf("no node makes the rights of the room")
}

// raiseAndLeave has the limit raised at one node, and the one that makes the rights leave
// for good as soon as it has made those. With kill it is killed when its heir has what it
// had: whoever makes the next ones has to know what there is. That is at least what the
// limit was raised by, since it has not been given to anybody.
func raiseAndLeave(kill bool) func(*run) error {
	return func(r *run) error {
		m, err := r.minter()
		if err != nil {
			return err
		}
		heirs := make(map[*rig.Node]int64)
		at := m
		for _, n := range r.mesh.Nodes {
			if n != m {
				heirs[n], at = held(r, n), n
			}
		}
		twice := 2 * r.Room.active
		if err := r.limit(at, twice); err != nil {
			return err
		}
		if err := m.Await(r.ctx, 3*time.Second, "has made the rights", func(s node.Status) bool {
			return s.Rooms[0].Rights.Minted.Places == int64(twice)
		}); err != nil {
			return err
		}
		r.mark("%s, which makes the rights, leaves for good", m.Name)
		if err := r.order(m, http.MethodPost, "/api/v1/nodes/"+m.Name+"/drain", map[string]bool{"leave": true}); err != nil {
			return err
		}
		if kill {
			for end := time.Now().Add(4 * time.Second); time.Now().Before(end) && !inherited(r, heirs, int64(r.Room.active)*9/10); {
				if err := r.sleep(4 * time.Millisecond); err != nil {
					return err
				}
			}
			r.mark("%s is killed", m.Name)
			if err := m.Kill(); err != nil {
				return err
			}
		}
		return r.sleep(turnOver)
	}
}

func held(r *run, n *rig.Node) int64 {
	s, err := n.Status(r.ctx)
	if err != nil || len(s.Rooms) == 0 || s.Rooms[0].Rights == nil {
		return 0
	}
	return s.Rooms[0].Rights.Held.Places
}

// inherited reports whether some node holds so much more than before.
func inherited(r *run, before map[*rig.Node]int64, more int64) bool {
	for n, had := range before {
		if held(r, n) >= had+more {
			return true
		}
	}
	return false
}

// lowerAndRaise has the limit changed at all nodes in turn, down and up, while the room is
// full.
func lowerAndRaise(r *run) error {
	for i, part := range []float64{0.5, 1.5, 0.25, 1} {
		if err := r.limit(r.mesh.Nodes[i%len(r.mesh.Nodes)], int(part*float64(r.Room.active))); err != nil {
			return err
		}
		if err := r.sleep(12 * time.Second); err != nil {
			return err
		}
	}
	return nil
}
