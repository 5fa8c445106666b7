package admin_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/tiers/single"
	"github.com/ropeline/ropeline/httpfront/operator/admin"
	"github.com/ropeline/ropeline/httpfront/operator/admin/admintest"
	"github.com/ropeline/ropeline/node/catalog"
)

// TestRoutes: to whom requests go that have no route of their own, or none. Those of all routes go to them in
// TestEveryRouteIsAsDocumented.
func TestRoutes(t *testing.T) {
	b := newBench(t)
	for request, id := range map[string]string{
		"HEAD " + rooms: "v4ListRooms", "HEAD /api/v1/openapi.json": "getDocument", "PATCH /api/v1/rooms/by-name/events/also": "changeEvent",
	} {
		method, path, _ := strings.Cut(request, " ")
		if r, ok := b.api.Route(method, path); !ok || r.ID != id {
			t.Errorf("%s: %+v, want %s", request, r, id)
		}
	}
	for _, path := range []string{"", "x", "/", "/api/v1", "/api/v1/", "/api/v1/rooms/", "/client/v4/zones//waiting_rooms", "/client/v4/zones/%zz/waiting_rooms"} {
		if _, ok := b.api.Route("GET", path); ok {
			t.Errorf("there is a route at %q", path)
		}
		b.refuses(404, "GET", path, nil)
	}
	for path, allow := range map[string]string{"/api/v1/rooms": "GET, POST", rooms + "/settings": "GET, PATCH, PUT", rooms + "/preview": "POST", "/api/v1/openapi.json": "GET"} {
		got := b.send("DELETE", path, nil)
		if got.Status != 405 || got.Header["Allow"] != allow {
			t.Errorf("DELETE %s: %d, %v, want %s", path, got.Status, got.Header, allow)
		}
	}
}

func TestBodies(t *testing.T) {
	b := newBench(t)
	deep := strings.Repeat("[", 9) + strings.Repeat("]", 9)
	for _, tt := range []struct {
		body         string
		status, code int
		says         string
	}{
		{"", 400, admin.CodeNotJSON, "it is empty"},
		{"{", 400, admin.CodeNotJSON, "want one JSON value"},
		{"{} {}", 400, admin.CodeNotJSON, "want one JSON value"},
		{"[]", 400, admin.CodeType, "want an object"},
		{"null", 400, admin.CodeType, "want an object"},
		{"\"\xff\"", 400, admin.CodeNotJSON, "UTF-8"},
		{`{"name":"a","name":"b"}`, 400, admin.CodeTwice, "name"},
		{`{"cookie_attributes":{"secure":"auto","secure":"auto"}}`, 400, admin.CodeTwice, "cookie_attributes.secure"},
		{`{"name":` + deep + `}`, 400, admin.CodeNotJSON, "deep"},
		{"[" + strings.Repeat("0,", 20_000) + "0]", 400, admin.CodeNotJSON, "more than 20000 values"},
		{"[" + strings.Repeat(`{"a":0},`, 10_000) + "0]", 400, admin.CodeNotJSON, "more than 20000 values"},
		{"[" + strings.Repeat("0,", 19_998) + "0]", 400, admin.CodeType, "want an object"},
		{strings.Repeat(" ", admin.MaxBody+1), 413, admin.CodeTooLarge, "at most"},
		{strings.Repeat(`[`, 20000), 400, admin.CodeNotJSON, ""},
		{`{"a":` + strings.Repeat(`[`, 20000) + strings.Repeat(`]`, 20000) + `}`, 400, admin.CodeNotJSON, ""},
	} {
		b.wantRefused(tt.status, "POST", rooms, tt.body, mistake{Code: tt.code, Message: tt.says})
	}
	for _, body := range []string{"[]", "null", "1", `"x"`} { // what is not there has no further mistakes
		if got := b.refuses(400, "POST", rooms, body); len(got) != 1 {
			t.Errorf("%s: it says %v", body, got)
		}
	}
	// A page that is as long as it may be fits, however JSON writes it.
	b.want("POST", rooms, plus(newRoom("long"), "custom_page_html", strings.Repeat("<", 1<<20)))
	many := map[string]int{}
	for i := range 19_000 {
		many[fmt.Sprintf("field-%d", i)] = i
	}
	if got := b.refuses(400, "POST", rooms, many); len(got) > 200 {
		t.Errorf("it tells of %d mistakes", len(got))
	}
	for _, media := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/jsonp", "application/json, text/plain"} {
		resp := b.api.Do(t.Context(), admin.Request{Method: "POST", Path: rooms, ContentType: media, Body: []byte(`{}`)})
		if resp.Status != 415 || !strings.Contains(string(resp.Body), "application/json") {
			t.Errorf("%q: %d %s", media, resp.Status, resp.Body)
		}
	}
}

// TestEditsDoNotGetInEachOthersWay: each is made of what the one before it left.
func TestEditsDoNotGetInEachOthersWay(t *testing.T) {
	b := newSharedBench(t)
	path := b.made("a")
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if got := b.send("POST", path+"/rules", newRule(fmt.Sprint("h", i))); got.Status != 200 {
				t.Errorf("%s", got.Body)
			}
			b.send("GET", path, nil)
		})
	}
	all.Wait()
	is(t, "rules", len(b.list("GET", path+"/rules", nil)), 20)
}

// FuzzDo: whatever is asked, it is answered in JSON, nothing panics, and a room that was
// taken can be read again.
func FuzzDo(f *testing.F) {
	single.Goroutine(f)
	for _, method := range []string{"POST", "PUT", "PATCH"} {
		for _, body := range []any{everything("all"), newRoom("a"), newEvent("e", 1), newRule("a"), []tree{newRule("a")}, tree{"position": tree{"index": 1}}, tree{"session_duration": 1e300}} {
			for _, below := range []string{"", "/a", "/a/events", "/a/rules"} {
				f.Add(method, below, "zone=default", must(json.Marshal(body)))
			}
		}
	}
	f.Fuzz(func(t *testing.T, method, below, query string, body []byte) {
		mesh := &admintest.Mesh{Checks: frontCheck}
		api := must(admin.New(admin.Config{Mesh: mesh}))
		ask := func(method, path string, body []byte) {
			values, err := url.ParseQuery(query)
			if err != nil {
				values = nil
			}
			resp := api.Do(t.Context(), admin.Request{Method: method, Path: path, Query: values, ContentType: "application/json", Body: body})
			if !json.Valid(resp.Body) || resp.Status >= 500 {
				t.Fatalf("%s %s %s: %d %s", method, path, body, resp.Status, resp.Body)
			}
		}
		ask("POST", "/api/v1/rooms", []byte(`{"name":"a","host":"a.example","total_active_users":5,"new_users_per_minute":5}`))
		ask(method, "/api/v1/rooms"+below, body)
		ask("GET", "/api/v1/rooms", nil)
		for r := range mesh.Catalog().Rooms() {
			s := r.Whole()
			if err := s.Validate(); err != nil {
				t.Fatalf("%s %s %s made a room that cannot be: %v", method, below, body, err)
			}
		}
	})
}

// lagging is a mesh whose catalog does not show yet what was just written.
type lagging struct{ *admintest.Mesh }

func (lagging) Catalog() *catalog.Catalog { return new(catalog.Catalog) }

// TestACatalogThatLags: a change is answered as it was made, not as the catalog shows it.
func TestACatalogThatLags(t *testing.T) {
	b := newBench(t)
	path := b.made("a")
	b.api = must(admin.New(admin.Config{Mesh: lagging{b.mesh}, Now: func() time.Time { return b.now }}))
	same(t, "changed", b.want("PATCH", path, tree{"queue_all": true}), tree{"queue_all": true, "modified_on": "2026-11-01T09:00:00Z"})
	same(t, "an event", b.want("POST", path+"/events", newEvent("e", 1)), tree{"name": "e"})
	is(t, "rules", len(b.list("POST", path+"/rules", newRule("x"))), 1)
	same(t, "a room", b.want("POST", rooms, newRoom("b")), tree{"name": "b"})
}
