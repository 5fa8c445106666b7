package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node"
)

// api sends one request of an operator to a node and returns what it answers.
func (p *running) api(method, path, body string, fields ...string) (int, map[string]any) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, "http://"+p.admin+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(b, &v); err != nil {
		p.t.Fatalf("%s %s: %d %s: %v", method, path, resp.StatusCode, b, err)
	}
	return resp.StatusCode, v
}

// roomNamed returns a condition on a room.
func roomNamed(name string, wanted func(r node.RoomStatus) bool) func(node.Status) bool {
	return func(s node.Status) bool {
		for _, r := range s.Rooms {
			if r.Name == name && !r.Resting {
				return wanted(r)
			}
		}
		return wanted(node.RoomStatus{})
	}
}

// editArrives is within what time an edit is at all nodes.
const editArrives = 2 * time.Second

// TestRoomsAreEditedWhileNodesRun makes a room at one node of a mesh, changes it at another,
// kills all, and deletes it at the third: visitors of every node meet it as it is.
func TestRoomsAreEditedWhileNodesRun(t *testing.T) {
	inTestAll(t)
	t.Parallel()
	nodes := startMesh(t, startOrigin(t), []string{"a", "a", "b"}, "--host", "elsewhere.example")
	code, made := nodes[1].api("POST", "/client/v4/zones/sales/waiting_rooms",
		`{"name":"shop","host":"shop.example","cookie_suffix":"shop","total_active_users":1,"new_users_per_minute":100}`)
	result, _ := made["result"].(map[string]any)
	if code != 200 || made["success"] != true || result["zone"] != "sales" {
		t.Fatalf("a room is made: %d %v", code, made)
	}
	id := result["id"].(string)
	for _, p := range nodes {
		p.await("has the room", editArrives, roomNamed("shop", func(r node.RoomStatus) bool { return r.ID == id && r.Zone == "sales" && r.TotalActiveUsers == 1 }))
	}
	var first []*http.Cookie
	await(t, "the first visitor is let in", func() bool {
		resp := get(t, nodes[1].http, first)
		if set := resp.Cookies(); len(set) > 0 {
			first = set
		}
		return resp.Header.Get("Ropeline-State") == ""
	})
	if got := get(t, nodes[0].http, nil).Header.Get("Ropeline-State"); got != "waiting" {
		t.Errorf("the second visitor's state is %q, want waiting", got)
	}
	if code, got := nodes[2].api("PATCH", "/api/v1/rooms/shop?zone=sales", `{"total_active_users":500,"queue_all":true}`); code != 200 || got["total_active_users"] != 500.0 {
		t.Fatalf("a room is changed: %d %v", code, got)
	}
	changed := roomNamed("shop", func(r node.RoomStatus) bool { return r.TotalActiveUsers == 500 && r.QueueAll })
	for _, p := range nodes {
		p.await("has the change", editArrives, changed)
	}
	for _, p := range nodes {
		p.kill()
	}
	for _, p := range nodes {
		p.start()
	}
	for _, p := range nodes {
		p.await("is ready, and has what was changed before all were killed", 30*time.Second, func(s node.Status) bool { return s.Ready && changed(s) })
	}
	if code, got := nodes[0].api("PATCH", "/api/v1/rooms/shop?zone=sales", `{"total_active_users":0,"hosst":"x"}`); code != 400 || len(got["errors"].([]any)) != 2 {
		t.Errorf("a bad change: %d %v", code, got)
	}
	if code, got := nodes[0].api("DELETE", "/client/v4/zones/sales/waiting_rooms/"+id, ""); code != 200 {
		t.Fatalf("a room is deleted: %d %v", code, got)
	}
	for _, p := range nodes {
		p.await("has the room no more", editArrives, roomNamed("shop", func(r node.RoomStatus) bool { return r.ID == "" }))
		if resp := get(t, p.http, nil); resp.StatusCode != 200 || resp.Header.Get("Ropeline-State") != "" || len(resp.Cookies()) != 0 {
			t.Errorf("%s: a visitor of the room that is deleted gets %d %v", p.name, resp.StatusCode, resp.Cookies())
		}
	}
}

// await waits for something.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(25 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("not so within 10 s: %s", what)
}

// TestOperatorsNeedTokens: one who may look may not change anything.
func TestOperatorsNeedTokens(t *testing.T) {
	t.Setenv(tokenVariable, "writing-0123456789")
	p := serveNode(t, "a", "one", "--origin", startOrigin(t), "--data-dir", t.TempDir())
	await(t, "the node is ready", func() bool {
		resp, err := http.Get("http://" + p.admin + "/readyz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == 200
	})
	const edit = `{"total_active_users":9}`
	if code, _ := p.api("PATCH", "/api/v1/rooms/default", edit); code != 401 {
		t.Errorf("without a token: %d", code)
	}
	if code, got := p.api("PATCH", "/api/v1/rooms/default", edit, "Authorization", "Bearer writing-0123456789"); code != 200 || got["total_active_users"] != 9.0 {
		t.Errorf("with a token: %d %v", code, got)
	}
	if code, _ := p.api("GET", "/status", ""); code != 401 {
		t.Errorf("the status without a token: %d", code)
	}
}
