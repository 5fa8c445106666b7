//go:build linux

package faults

import (
	"cmp"
	"fmt"
	"time"
)

// settleTime is how long rights may be on the move after a run that says nothing else.
const settleTime = 10 * time.Second

// settle waits until the rights that all nodes hold are those that were made,
// neither more nor fewer, and returns what is wrong if they never are. Rights on
// the move are with nobody for a moment, and never with two.
func (r *run) settle() (wrong []string) {
	if !r.strict() {
		return nil
	}
	for deadline := time.Now().Add(cmp.Or(r.Settle, settleTime)); ; time.Sleep(50 * time.Millisecond) {
		var held, made [2]int64
		for _, n := range r.mesh.Nodes {
			if !n.Running() {
				continue
			}
			s, err := n.Status(r.ctx)
			if err != nil || len(s.Rooms) == 0 || s.Rooms[0].Rights == nil {
				continue
			}
			is := s.Rooms[0].Rights
			held[0], held[1] = held[0]+is.Held.Places, held[1]+is.Held.Rate
			made = [2]int64{max(made[0], is.Minted.Places), max(made[1], is.Minted.Rate)}
		}
		last := r.limits[len(r.limits)-1]
		limits := [2]int64{int64(last.Active), int64(last.PerMinute)}
		if held == limits && made == limits {
			return nil
		}
		if time.Now().Before(deadline) {
			continue
		}
		what := fmt.Sprintf("%d places and %d rate rights are held by the nodes, %d and %d were made, the limits are %d and %d",
			held[0], held[1], made[0], made[1], limits[0], limits[1])
		r.note("%s", what)
		if r.Loses && held[0] < limits[0] && made == limits {
			return nil
		}
		return []string{what}
	}
}
