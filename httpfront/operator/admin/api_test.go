package admin_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/must"
	"github.com/ropeline/ropeline/bench/tiers/single"
	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/gate/expr"
	"github.com/ropeline/ropeline/httpfront/operator/admin"
	"github.com/ropeline/ropeline/httpfront/operator/admin/admintest"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/room"
)

// begin is what the clock of the API says.
var begin = time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)

// bench is an API with a mesh behind it.
type bench struct {
	*testing.T
	api  *admin.API
	mesh *admintest.Mesh
	now  time.Time
}

func newBench(t *testing.T) *bench {
	single.Goroutine(t)
	return newSharedBench(t)
}

// newSharedBench is newBench for tests that ask at once.
func newSharedBench(t *testing.T) *bench {
	mesh := &admintest.Mesh{Checks: frontCheck, States: func(crdt.RoomID) (admin.RoomState, bool) {
		return admin.RoomState{Status: "queueing", Waiting: 90, Active: 200, Wait: 61 * time.Second}, true
	}}
	b := &bench{T: t, mesh: mesh, now: begin}
	b.api = must.Do(admin.New(admin.Config{Mesh: mesh, Now: func() time.Time { return b.now }}))
	return b
}

// is fails where two values differ.
func is(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// same fails where a field of want is not so in got.
func same(t *testing.T, what string, got, want tree) {
	t.Helper()
	for name := range want {
		is(t, what+": "+name, got[name], want[name])
	}
}

// frontCheck is what the front of a node finds wrong with texts.
func frontCheck(s *room.Settings) error { return httpfront.CheckRoom(s, expr.Lists{}) }

// tree is a JSON object.
type tree = map[string]any

// ask sends a request and returns what is answered.
func (b *bench) ask(method, target string, body any) (int, tree) {
	b.Helper()
	resp := b.send(method, target, body)
	if resp.ContentType != "application/json" {
		b.Fatalf("%s %s: it is of the type %q", method, target, resp.ContentType)
	}
	var got tree
	if err := json.Unmarshal(resp.Body, &got); err != nil {
		b.Fatalf("%s %s: %v: %s", method, target, err, resp.Body)
	}
	return resp.Status, got
}

func (b *bench) send(method, target string, body any) admin.Response {
	b.Helper()
	path, query, _ := strings.Cut(target, "?")
	req := admin.Request{Method: method, Path: path, Query: must.Do(url.ParseQuery(query)), Origin: "https://node.example"}
	switch v := body.(type) {
	case nil:
	case string:
		req.Body, req.ContentType = []byte(v), "application/json"
	default:
		req.ContentType = "application/json; charset=utf-8"
		req.Body = must.Do(json.Marshal(v))
	}
	return b.api.Do(b.Context(), req)
}

// want asks for something that has to be done, and returns the object.
func (b *bench) want(method, target string, body any) tree {
	b.Helper()
	status, got := b.ask(method, target, body)
	if status != 200 {
		b.Fatalf("%s %s %v: status %d: %v", method, target, body, status, got)
	}
	if result, ok := got["result"].(tree); ok && strings.HasPrefix(target, "/client/v4/") {
		return result
	}
	return got
}

// list is want for lists.
func (b *bench) list(method, target string, body any) (items []tree) {
	b.Helper()
	status, got := b.ask(method, target, body)
	name := "items"
	if strings.HasPrefix(target, "/client/v4/") {
		name = "result"
	}
	all, ok := got[name].([]any)
	if status != 200 || !ok {
		b.Fatalf("%s %s %v: status %d: %v", method, target, body, status, got)
	}
	for _, one := range all {
		items = append(items, one.(tree))
	}
	return items
}

// mistake is one of a refusal.
type mistake struct {
	Code                           int
	Field, Value, Allowed, Message string
}

// refuses asks for something that must not be done, and returns why.
func (b *bench) refuses(status int, method, target string, body any) []mistake {
	b.Helper()
	edits := b.mesh.Edits()
	resp := b.send(method, target, body)
	var got struct{ Errors []mistake }
	if err := json.Unmarshal(resp.Body, &got); err != nil {
		b.Fatalf("%s %s: %v: %s", method, target, err, resp.Body)
	}
	if resp.Status != status || len(got.Errors) == 0 {
		b.Errorf("%s %s %.300v: status %d, want %d: %s", method, target, body, resp.Status, status, resp.Body)
		return []mistake{{}}
	}
	if b.mesh.Edits() != edits {
		b.Errorf("%s %s was refused, and changed something", method, target)
	}
	return got.Errors
}

// wantRefused is refuses for a mistake of which some is known: its code and field, and some of what is allowed and of its message.
func (b *bench) wantRefused(status int, method, target string, body any, want mistake) {
	b.Helper()
	m := b.refuses(status, method, target, body)[0]
	if want.Code != 0 && m.Code != want.Code || want.Field != "" && m.Field != want.Field ||
		!strings.Contains(m.Allowed, want.Allowed) || !strings.Contains(m.Message, want.Message) {
		b.Errorf("%s %s %.100v: it says %v, want %v", method, target, body, m, want)
	}
}

// wantGone fails where something is found that was deleted.
func (b *bench) wantGone(path string, body any, code int, methods ...string) {
	b.Helper()
	for _, method := range methods {
		b.wantRefused(404, method, path, body, mistake{Code: code})
	}
}

// rooms is where the rooms of a zone are in the dialect.
const rooms = "/client/v4/zones/shop/waiting_rooms"

func newRoom(name string) tree {
	return tree{"name": name, "host": name + ".example", "total_active_users": 200, "new_users_per_minute": 100}
}

func newEvent(name string, days int) tree {
	start := begin.AddDate(0, 0, days)
	return tree{"name": name, "event_start_time": start, "event_end_time": start.Add(time.Hour)}
}

// made makes a room and returns its path.
func (b *bench) made(name string) string {
	b.Helper()
	return b.add(rooms, newRoom(name))
}

// add makes something below a path and returns where it is.
func (b *bench) add(path string, body tree) string {
	b.Helper()
	return path + "/" + b.want("POST", path, body)["id"].(string)
}

func plus(t tree, more ...any) tree {
	all := tree{}
	maps.Copy(all, t)
	for i := 0; i < len(more); i += 2 {
		all[more[i].(string)] = more[i+1]
	}
	return all
}

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
		{`{"` + strings.Repeat("a", 257) + `":[0,0]}`, 400, admin.CodeNotJSON, "a name in it has more than 256 bytes"},
		{`{"name":"a","cookie_attributes":{"` + strings.Repeat("a", 257) + `":0}}`, 400, admin.CodeNotJSON, "a name in it"},
		{`{"` + strings.Repeat("a", 256) + `":0}`, 400, admin.CodeUnknown, "aaa"},
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
		is(t, body+": mistakes", len(b.refuses(400, "POST", rooms, body)), 1)
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
			is(t, "a new rule", b.send("POST", path+"/rules", newRule(fmt.Sprint("h", i))).Status, 200)
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
				f.Add(method, below, "zone=default", must.Do(json.Marshal(body)))
			}
		}
	}
	f.Fuzz(func(t *testing.T, method, below, query string, body []byte) {
		mesh := &admintest.Mesh{Checks: frontCheck}
		api := must.Do(admin.New(admin.Config{Mesh: mesh}))
		ask := func(method, path string, body []byte) {
			values, _ := url.ParseQuery(query)
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
	b.api = must.Do(admin.New(admin.Config{Mesh: lagging{b.mesh}, Now: func() time.Time { return b.now }}))
	same(t, "changed", b.want("PATCH", path, tree{"queue_all": true}), tree{"queue_all": true, "modified_on": "2026-11-01T09:00:00Z"})
	same(t, "an event", b.want("POST", path+"/events", newEvent("e", 1)), tree{"name": "e"})
	is(t, "rules", len(b.list("POST", path+"/rules", newRule("x"))), 1)
	same(t, "a room", b.want("POST", rooms, newRoom("b")), tree{"name": "b"})
}
