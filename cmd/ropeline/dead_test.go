package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node"
)

// TestTwoOfFourNodesAreGoneForGood: all of the others name what nobody can use any more, and once both
// are declared dead all of it is used again.
func TestTwoOfFourNodesAreGoneForGood(t *testing.T) {
	inTestAll(t)
	t.Parallel()
	const limit, session = 240, 5 * time.Second
	nodes := meshOf(t, startOrigin(t), []string{"a", "a", "b", "b"}, but(1, 3), "--total-active-users", fmt.Sprint(limit),
		"--session-duration", session.String())
	owns := func(p *running) int64 {
		s, err := p.status()
		if err != nil {
			t.Fatal(err)
		}
		return s.Rooms[0].Rights.Held.Places
	}
	before, since := "", time.Now()
	await(t, "the capacity has been spread, and stays where it is", func() bool {
		sum, least, is := int64(0), int64(limit), ""
		for _, p := range nodes {
			n := owns(p)
			sum, least, is = sum+n, min(least, n), fmt.Sprint(is, n, " ")
		}
		if is != before {
			before, since = is, time.Now()
		}
		return sum == limit && least > 0 && time.Since(since) > 2*time.Second
	})
	dead, left := []*running{nodes[1], nodes[3]}, []*running{nodes[0], nodes[2]}
	held := map[string]int64{}
	for _, p := range dead {
		held[p.name] = owns(p)
		p.kill()
	}
	for _, p := range left {
		p.await("names what both had", 15*time.Second, func(s node.Status) bool {
			for _, d := range s.Down {
				want := fmt.Sprintf("%s is down: %d of %d capacity unusable; start it again, or declare it dead: ropeline node declare-dead %[1]s --gone-for-good", d.Name, held[d.Name], limit)
				if d.Message != want {
					return false
				}
			}
			return len(s.Down) == 2
		})
		_, series := p.metrics()
		for _, d := range dead {
			name := fmt.Sprintf(`ropeline_room_capacity_unusable{down_node=%q,down_site=%q,kind="places",room="default",state="down",zone="default"}`, d.name, d.site)
			if series[name] != float64(held[d.name]) {
				t.Errorf("%s says %s %v, want %d", p.name, name, series[name], held[d.name])
			}
		}
	}
	shown, _ := says(t, t.Context(), "http://"+left[0].admin, "status", "--json=false")
	for _, d := range dead {
		if want := fmt.Sprintf("%s is down: %d of %d capacity", d.name, held[d.name], limit); !strings.Contains(shown, want) {
			t.Errorf("the status has no %q:\n%s", want, shown)
		}
	}

	if out, code := says(t, t.Context(), "http://"+left[0].admin, "node", "declare-dead", dead[0].name); code != 2 || !strings.Contains(out, "--gone-for-good") {
		t.Errorf("without a confirmation: %d %s", code, out)
	}
	declared := time.Now()
	answers := make(chan string, 2)
	for _, d := range dead {
		go func() {
			out, code := says(t, t.Context(), "http://"+left[0].admin, "node", "declare-dead", d.name, "--gone-for-good", "--wait", "--json=false")
			answers <- fmt.Sprintf("%d %s %s", code, d.name, out)
		}()
	}
	for range dead {
		out := <-answers
		if !strings.HasPrefix(out, "0 ") || !strings.Contains(out, "usable in") || !strings.Contains(out, "can be used by the other nodes") {
			t.Errorf("while it waits the command says %s", out)
		}
	}
	if took := time.Since(declared); took > session+30*time.Second {
		t.Errorf("it took %v until the capacity could be used, want %v at most", took, session+30*time.Second)
	}
	if _, got := left[0].api("GET", "/api/v1/nodes/"+left[1].name+"/recovery", ""); got["usable_in_seconds"] != nil {
		t.Errorf("the recovery of a node that runs is %v", got)
	}
	await(t, "all capacity is with the others, and none locked", func() bool {
		sum, used := int64(0), int64(0)
		for _, p := range left {
			s, err := p.status()
			if err != nil || len(s.Down) > 0 {
				return false
			}
			sum += s.Rooms[0].Rights.Held.Places
			used += s.Rooms[0].Rights.InUse - s.Rooms[0].Rights.Lent
		}
		return sum == limit && used <= 0
	})

	// One of them comes back all the same, as a new node.
	was, err := left[0].status()
	if err != nil {
		t.Fatal(err)
	}
	back := dead[0]
	back.start()
	back.await("starts again as a new node, and serves", 30*time.Second, func(s node.Status) bool {
		return s.Boot == 1 && s.Ready && !slices.ContainsFunc(was.Peers, func(p node.PeerStatus) bool { return p.Node == s.Node }) && len(s.Peers) == 2
	})
}
