package main

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node"
)

// past asks a node how the room was during the last half hour, the open minute included, and
// returns how many visitors came and were let in, and which nodes did not answer.
func (p *running) past() (came, in float64, missing string) {
	p.t.Helper()
	now := time.Now().UTC()
	q := url.Values{"from": {now.Add(-30 * time.Minute).Format(time.RFC3339)}, "to": {now.Add(time.Minute).Format(time.RFC3339)}}
	code, got := p.api("GET", "/api/v1/rooms/default/analytics?"+q.Encode(), "")
	if code != 200 {
		p.t.Fatalf("analytics: %d %v", code, got)
	}
	for _, v := range got["points"].([]any) {
		point := v.(map[string]any)
		came += point["new_users"].(float64)
		in += point["admitted_users"].(float64)
	}
	return came, in, fmt.Sprint(got["missing"])
}

// TestHistoryOfAMesh has visitors come to both nodes of a mesh, starts these anew, and asks
// each how the room was: both tell all of it. Then one is killed, and named.
func TestHistoryOfAMesh(t *testing.T) {
	inTestAll(t)
	t.Parallel()
	nodes := meshOf(t, startOrigin(t), []string{"a", "b"}, but(1), "--total-active-users", "20")
	for _, p := range nodes {
		for range 4 {
			if resp := getReady(t, p.http, nil); resp.Header.Get("Ropeline-State") != "" {
				t.Errorf("a visitor gets %q", resp.Header.Get("Ropeline-State"))
			}
		}
	}
	for _, p := range nodes {
		if code := p.stop(); code != 0 {
			t.Errorf("%s ends with %d", p.name, code)
		}
	}
	for _, p := range nodes {
		p.start()
	}
	for _, p := range nodes {
		p.await("is ready and sees the other", 30*time.Second, func(s node.Status) bool { return s.Ready && sees(1, "alive")(s) })
	}
	for _, p := range nodes {
		if came, in, missing := p.past(); came != 8 || in != 8 || missing != "[]" {
			t.Errorf("%s says that %v came and %v were let in, want 8; missing are %s", p.name, came, in, missing)
		}
	}
	nodes[1].kill()
	nodes[0].await("sees that the other one is gone", 60*time.Second, sees(1, "failed"))
	if _, in, missing := nodes[0].past(); in != 4 || missing != "[b2]" {
		t.Errorf("without the other one: %v were let in, want 4; missing are %s", in, missing)
	}
}
