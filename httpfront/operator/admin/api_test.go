package admin_test

import (
	"encoding/json"
	"maps"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/tiers/single"
	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/gate/expr"
	"github.com/ropeline/ropeline/httpfront/operator/admin"
	"github.com/ropeline/ropeline/httpfront/operator/admin/admintest"
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
	t.Helper()
	single.Goroutine(t)
	return newSharedBench(t)
}

// newSharedBench is newBench for tests that ask at once.
func newSharedBench(t *testing.T) *bench {
	t.Helper()
	mesh := &admintest.Mesh{Checks: frontCheck, States: func(crdt.RoomID) (admin.RoomState, bool) {
		return admin.RoomState{Status: "queueing", Waiting: 90, Active: 200, Wait: 61 * time.Second}, true
	}}
	b := &bench{T: t, mesh: mesh, now: begin}
	b.api = must(admin.New(admin.Config{Mesh: mesh, Now: func() time.Time { return b.now }}))
	return b
}

// must is for the steps of a test that are not what it is about.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
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
	req := admin.Request{Method: method, Path: path, Query: must(url.ParseQuery(query)), Origin: "https://node.example"}
	switch v := body.(type) {
	case nil:
	case string:
		req.Body, req.ContentType = []byte(v), "application/json"
	default:
		req.ContentType = "application/json; charset=utf-8"
		req.Body = must(json.Marshal(v))
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
