package main

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node"
)

// items are those of a list that was answered.
func items(v map[string]any) (all []map[string]any) {
	list, _ := v["items"].([]any)
	for _, item := range list {
		all = append(all, item.(map[string]any))
	}
	return all
}

// held returns how many places all nodes of a mesh have of a room, as one of them says.
func (p *running) held(room string) (places int, nodes int) {
	p.t.Helper()
	code, got := p.api("GET", "/api/v1/rooms/"+room+"/rights", "")
	if code != 200 {
		p.t.Fatalf("rights: %d %v", code, got)
	}
	for _, l := range got["ledgers"].([]any) {
		rights := l.(map[string]any)["rights"].(map[string]any)
		if l.(map[string]any)["name"] == "" {
			p.t.Errorf("the ledger of a node without its name: %v", l)
		}
		places += int(rights["held"].(map[string]any)["places"].(float64))
		nodes++
	}
	return places, nodes
}

// TestAMeshIsManaged has operators look at a mesh, ask why, replace its secret, and stop
// nodes: every request goes to a node that it is not about.
func TestAMeshIsManaged(t *testing.T) {
	t.Parallel()
	nodes := meshOf(t, startOrigin(t), []string{"a", "a", "b"}, but(1), "--total-active-users", "30")
	if _, got := nodes[1].api("GET", "/api/v1/nodes", ""); len(items(got)) != 3 {
		t.Fatalf("nodes: %v", got)
	}
	await(t, "all places are held by three nodes", func() bool {
		places, n := nodes[2].held("default")
		return places == 30 && n == 3
	})
	asksWhy(t, nodes)

	answers := make(chan map[string]any, 3)
	for range cap(answers) { // several at once have one made
		go func() {
			_, answer := nodes[2].api("POST", "/api/v1/keys/rotation", "{}")
			answers <- answer
		}()
	}
	got := <-answers
	for _, again := range []map[string]any{got, <-answers, <-answers} {
		if given, _ := again["given"].([]any); len(given) != 3 || again["id"] != got["id"] {
			t.Fatalf("a new secret: %v, and at once: %v", got, again)
		}
	}
	for _, p := range nodes {
		await(t, "has the new secret", func() bool {
			_, keys := p.api("GET", "/api/v1/keys", "")
			all := items(keys)
			return len(all) == 2 && all[0]["id"] == got["id"] && all[0]["state"] == "next" && all[1]["state"] == "used"
		})
	}

	if code, got := nodes[0].api("POST", "/api/v1/nodes/"+nodes[2].name+"/drain", `{"leave":true}`); code != 200 {
		t.Fatalf("a node is drained: %d %v", code, got)
	}
	select {
	case <-nodes[2].Ended():
		if code := nodes[2].Code(); code != 0 {
			t.Errorf("a node that was drained ends with %d", code)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("a node that is drained does not end")
	}
	await(t, "the two others have all places", func() bool {
		places, n := nodes[1].held("default")
		return places == 30 && n == 2
	})

	lost, err := nodes[1].status()
	if err != nil {
		t.Fatal(err)
	}
	if code, got := nodes[0].api("POST", "/api/v1/nodes/"+lost.Node+"/declare_dead", `{"gone_for_good":true}`); code != 409 {
		t.Errorf("a node that is alive is declared dead: %d %v", code, got)
	}
	nodes[1].kill()
	nodes[0].await("sees it failed", 60*time.Second, func(s node.Status) bool {
		return slices.ContainsFunc(s.Peers, func(p node.PeerStatus) bool { return p.Node == lost.Node && p.State == "failed" })
	})
	await(t, "it is declared dead", func() bool {
		code, _ := nodes[0].api("POST", "/api/v1/nodes/"+lost.Node+"/declare_dead", `{"gone_for_good":true}`)
		return code == 200
	})
}

// asksWhy asks one node about a visitor of another.
func asksWhy(t *testing.T, nodes []*running) {
	t.Helper()
	cookies := getIn(t, nodes[0].http).Cookies()
	if len(cookies) != 1 {
		t.Fatalf("a visitor who is let in gets the cookies %v", cookies)
	}
	ask := func(p *running, cookie string) map[string]any {
		t.Helper()
		code, got := p.api("POST", "/api/v1/explain", fmt.Sprintf(`{"request":{"host":"shop.example","header":{"Cookie":%q}}}`, cookie))
		if code != 200 {
			t.Fatalf("explain: %d %v", code, got)
		}
		return got["request"].(map[string]any)
	}
	x := ask(nodes[1], cookies[0].Name+"="+cookies[0].Value)
	decided, _ := x["decided"].(map[string]any)
	if x["passes"] != true || x["cookie"] != "good" || decided["reason"] != "inside" {
		t.Errorf("who was let in by one node is explained by another as %v", x)
	}
	_, set := nodes[2].api("PATCH", "/api/v1/rooms/default", `{"queue_all":true}`)
	if set["queue_all"] != true {
		t.Fatalf("queue all: %v", set)
	}
	var waiting []*http.Cookie
	await(t, "a visitor waits", func() bool {
		resp := get(t, nodes[0].http, nil)
		waiting = resp.Cookies()
		return resp.Header.Get("Ropeline-State") == "waiting" && len(waiting) == 1
	})
	x = ask(nodes[0], waiting[0].Name+"="+waiting[0].Value)
	decided = x["decided"].(map[string]any)
	visitor := decided["pass"].(map[string]any)["visitor"].(string)
	await(t, "the node of another site explains who waits", func() bool {
		code, got := nodes[2].api("POST", "/api/v1/explain", fmt.Sprintf(`{"visitor":%q,"room":%q}`, visitor, set["id"]))
		if code != 200 {
			return false
		}
		told := got["visitor"].(map[string]any)
		return told["action"] != "enter" && told["pass"].(map[string]any)["visitor"] == visitor && told["site"] == "a"
	})
	if _, set := nodes[2].api("PATCH", "/api/v1/rooms/default", `{"queue_all":false}`); set["queue_all"] != false {
		t.Errorf("not queue all: %v", set)
	}
}
