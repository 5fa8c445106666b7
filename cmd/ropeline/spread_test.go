package main

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// asked returns what a node answers a visitor of a host; status 0: it does not listen.
func (p *running) asked(host string) (status int, body string) {
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, "http://"+p.http+"/", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	req.Host = host
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, ""
	}
	return resp.StatusCode, string(b)
}

var newSiteRooms = flag.Int("rooms", 100, "how many rooms TestVisitorsOfANewSite makes, each fifth with a page")

// TestVisitorsOfANewSite makes 100 rooms that hold everybody, 20 of them with a page of 60 KB, and
// starts a node in a new site: from its first answer on it lets nobody through to the site.
func TestVisitorsOfANewSite(t *testing.T) {
	inTestAll(t)
	t.Parallel()
	rooms, pages := *newSiteRooms, *newSiteRooms/5
	nodes := meshOf(t, startOrigin(t), []string{"a", "a"}, nobody, "--host", "elsewhere.example")
	for i := range rooms {
		page := ""
		if i < pages {
			page = strings.Repeat("<p>{{waitTime}}", 60_000/15)
		}
		status, made := nodes[i%2].api("POST", "/api/v1/rooms", fmt.Sprintf(
			`{"name":"r%d","host":"shop%d.example","total_active_users":9,"new_users_per_minute":9,"queue_all":true,"custom_page_html":%q}`, i, i, page))
		if status != 200 {
			t.Fatalf("room %d: %d %v", i, status, made)
		}
	}
	x := &running{t: t, name: "c3", site: "c", http: freeAddress(t), admin: freeAddress(t), mesh: freeAddress(t), args: slices.Clone(nodes[1].args)}
	for i, a := range x.args {
		switch a {
		case "--mesh":
			x.args[i+1] = x.mesh
		case "--data-dir":
			x.args[i+1] = t.TempDir()
		}
	}
	x.start()
	x.endWithTest()
	answers := map[int]int{}
	ask := func(i int) int {
		status, body := x.asked(fmt.Sprintf("shop%d.example", i))
		if answers[status]++; strings.Contains(body, "Welcome to the shop") {
			t.Fatalf("a visitor of a room that holds everybody was let through to the site; answers by status: %v", answers)
		}
		return status
	}
	for i, begun := 0, time.Now(); ask(i%rooms) != 200; i++ {
		if time.Since(begun) > 3*time.Minute { // of which a machine that runs all tests at once may take one
			t.Fatalf("it answers nobody after three minutes: %v", answers)
		}
		time.Sleep(time.Millisecond) // the node shares the machine with whoever asks
	}
	for i := range rooms {
		if status := ask(i); status != 200 {
			t.Errorf("shop%d.example: %d, want the room's page", i, status)
		}
	}
	t.Logf("answers by status: %v", answers)
}

// TestPairsOfChangesAtTwoNodes has a client change two fields of a room, each at another node and
// the second when the first is answered: each answer shows what both have changed until then.
func TestPairsOfChangesAtTwoNodes(t *testing.T) {
	inTestAll(t)
	t.Parallel()
	nodes := meshOf(t, startOrigin(t), []string{"a", "b"}, nobody, "--host", "elsewhere.example")
	_, made := nodes[0].api("POST", "/api/v1/rooms", `{"name":"r","host":"shop.example","total_active_users":9,"new_users_per_minute":9}`)
	path, lost := fmt.Sprint("/api/v1/rooms/", made["id"]), 0
	for i := range 200 {
		total, rate := float64(100+i), float64(1000+i)
		nodes[i%2].api("PATCH", path, fmt.Sprintf(`{"total_active_users":%v}`, total))
		nodes[(i+1)%2].api("PATCH", path, fmt.Sprintf(`{"new_users_per_minute":%v}`, rate))
		for _, p := range nodes {
			if _, is := p.api("GET", path, ""); is["total_active_users"] != total || is["new_users_per_minute"] != rate {
				lost++
			}
		}
	}
	if lost > 0 {
		t.Errorf("%d of 400 reads after 200 pairs of changes do not show both", lost)
	}
}
