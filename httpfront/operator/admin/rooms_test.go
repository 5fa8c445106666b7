package admin_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/must"
	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/operator/admin"
	"github.com/ropeline/ropeline/httpfront/operator/admin/admintest"
	"github.com/ropeline/ropeline/node/catalog"
)

func TestARoomHasDefaults(t *testing.T) {
	b := newBench(t)
	got := b.want("POST", rooms, newRoom("tickets"))
	for name, want := range map[string]any{
		"zone": "shop", "name": "tickets", "description": "", "host": "tickets.example", "path": "/", "additional_routes": []any{}, "cookie_suffix": "",
		"total_active_users": 200.0, "new_users_per_minute": 100.0, "session_duration": 5.0, "session_duration_seconds": 300.0,
		"disable_session_renewal": false, "queueing_method": "fifo", "queue_all": false, "dry_run": false, "hold_while_down": true, "suspended": false, "json_response_enabled": false,
		"queueing_status_code": 200.0, "custom_page_html": "", "default_template_language": "en-US", "enabled_origin_commands": []any{},
		"turnstile_mode": "invisible", "turnstile_action": "log", "next_event_start_time": nil, "next_event_prequeue_start_time": nil,
		"cookie_attributes": tree{"samesite": "auto", "secure": "auto", "partitioned": false},
		"policy":            "escrow", "on_partition": "hold", "curve_factor": 1.0, "share_freeze": "15m", "bucket_span": "1m", "refresh_interval": "20s",
		"place_kept": "5m", "bind_pass": []any{}, "bind_ipv4_prefix": 24.0, "bind_ipv6_prefix": 48.0, "shared_passes": "log", "addresses_per_pass": 4.0,
		"max_new_visitors_per_address": 1000.0, "max_new_visitors": 600000.0, "message": "", "frame_ancestors": []any{"self"},
		"created_on": begin.Format(time.RFC3339),
	} {
		is(t, name, got[name], want)
		delete(got, name)
	}
	if len(got) != 2 || len(got["id"].(string)) != 32 || got["modified_on"] == "" {
		t.Errorf("it has %v as well", got)
	}
}

// everything is a room in which nothing has its default.
func everything(name string) tree {
	return tree{
		"name": name, "description": "all of it", "host": name + ".example", "path": "/a", "cookie_suffix": "x",
		"additional_routes":  []any{tree{"host": "x." + name + ".example", "path": "/"}, tree{"host": name + ".example", "path": "/b"}},
		"cookie_attributes":  tree{"samesite": "none", "secure": "always", "partitioned": true},
		"total_active_users": 300.0, "new_users_per_minute": 200.0, "session_duration": 2.0, "session_duration_seconds": 90.5,
		"disable_session_renewal": true, "queueing_method": "random", "queue_all": true, "dry_run": true, "hold_while_down": false, "suspended": true, "json_response_enabled": true,
		"queueing_status_code": 202.0, "custom_page_html": "<p>{{waitTime}}", "default_template_language": "de-DE", "enabled_origin_commands": []any{"revoke"},
		"turnstile_mode": "visible_managed", "turnstile_action": "infinite_queue",
		"policy": "curve", "on_partition": "open", "curve_factor": 2.5, "share_freeze": "0s", "bucket_span": "30s", "refresh_interval": "1m30s", "place_kept": "1h",
		"bind_pass": []any{"address", "user-agent"}, "bind_ipv4_prefix": 16.0, "bind_ipv6_prefix": 64.0, "shared_passes": "queue", "addresses_per_pass": 2.0,
		"max_new_visitors_per_address": 0.0, "max_new_visitors": 5.0, "message": "be\npatient", "frame_ancestors": []any{"self", "https://shop.example"},
	}
}

// TestARoomKeepsEverything: what is set is shown, and what is shown can be sent back, by
// each method.
func TestARoomKeepsEverything(t *testing.T) {
	b := newBench(t)
	given := everything("all")
	got := b.want("POST", rooms, given)
	same(t, "made", got, given)
	path := rooms + "/" + got["id"].(string)
	edits := b.mesh.Edits()
	for _, method := range []string{"PUT", "PATCH"} {
		same(t, method, b.want(method, path, got), got) // with the fields that are read only
	}
	is(t, "edits that wrote something where nothing had changed", b.mesh.Edits()-edits, 0)
	same(t, "read", b.want("GET", path, nil), got)
}

// TestEverySettingHasAField fails where operators have a setting that the API has not.
func TestEverySettingHasAField(t *testing.T) {
	b := newBench(t)
	b.want("POST", "/api/v1/rooms", newRoom("plain"))
	b.want("POST", "/api/v1/rooms", everything("all"))
	all := b.mesh.Catalog().RoomsOf("default")
	if all[0].Settings.Name != "plain" {
		slices.Reverse(all)
	}
	differ(t, "", reflect.ValueOf(all[0].Settings), reflect.ValueOf(all[1].Settings))
}

// differ fails where a field is the same in two structs.
func differ(t *testing.T, at string, a, b reflect.Value) {
	t.Helper()
	for i := range a.NumField() {
		name := strings.TrimPrefix(at+"."+a.Type().Field(i).Name, ".")
		switch {
		case name == "Events" || name == "Front.Rules": // these have fields of their own
		case name == "Front.CrawlerBypass": // is the zone's
		case a.Field(i).Kind() == reflect.Struct:
			differ(t, name, a.Field(i), b.Field(i))
		case reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()):
			t.Errorf("%s is the same in a room in which everything was set: the API has no field for it", name)
		}
	}
}

// TestReplacing: what is left out has its default, but for what the dialect does not know.
func TestReplacing(t *testing.T) {
	b := newBench(t)
	path := b.add(rooms, everything("all"))
	b.want("POST", path+"/events", newEvent("sale", 1))
	b.list("POST", path+"/rules", tree{"expression": `http.host eq "x"`})
	theirs := tree{
		"description": "", "path": "/", "cookie_suffix": "", "additional_routes": []any{}, "session_duration": 5.0, "session_duration_seconds": 300.0,
		"disable_session_renewal": false, "queueing_method": "fifo", "queue_all": false, "suspended": false, "json_response_enabled": false,
		"queueing_status_code": 200.0, "custom_page_html": "", "default_template_language": "en-US", "enabled_origin_commands": []any{},
		"turnstile_mode": "invisible", "turnstile_action": "log", "cookie_attributes": tree{"samesite": "auto", "secure": "auto", "partitioned": true},
	}
	ours := tree{}
	for name, v := range everything("all") {
		if _, known := theirs[name]; !known {
			ours[name] = v
		}
	}
	next := newRoom("all")
	delete(ours, "total_active_users")
	delete(ours, "new_users_per_minute")
	got := b.want("PUT", path, next)
	same(t, "theirs", got, theirs)
	same(t, "ours", got, ours)
	got = b.want("PUT", path, plus(next, "policy", nil, "cookie_attributes", tree{"samesite": "none"}))
	same(t, "null", got, tree{"policy": "escrow", "cookie_attributes": tree{"samesite": "none", "secure": "auto", "partitioned": true}})
	is(t, "events that are left", len(b.list("GET", path+"/events", nil)), 1)
	is(t, "rules that are left", len(b.list("GET", path+"/rules", nil)), 1)
}

func TestChanging(t *testing.T) {
	b := newBench(t)
	was := b.want("POST", rooms, everything("all"))
	path := rooms + "/" + was["id"].(string)
	for _, c := range []struct{ change, makes tree }{
		{tree{"queue_all": false}, tree{"queue_all": false}},
		{tree{"suspended": false}, tree{"suspended": false}},
		{tree{"total_active_users": 1}, tree{"total_active_users": 1.0}},
		{tree{"cookie_attributes": tree{"partitioned": false}}, tree{"cookie_attributes": plus(was["cookie_attributes"].(tree), "partitioned", false)}},
		{tree{"session_duration": 10}, tree{"session_duration": 10.0, "session_duration_seconds": 600.0}},
		{tree{"session_duration_seconds": 10}, tree{"session_duration": 1.0, "session_duration_seconds": 10.0}},
		{tree{"message": nil}, tree{"message": ""}},
		{tree{}, tree{}},
	} {
		want := plus(was)
		delete(want, "modified_on")
		maps.Copy(want, c.makes)
		same(t, fmt.Sprint(c.change), b.want("PATCH", path, c.change), want)
		b.want("PUT", path, was)
	}
	for _, number := range []raw{"5", "5.0", "50e-1"} { // JSON has several ways to write one
		same(t, string(number), b.want("PATCH", path, tree{"total_active_users": number}), tree{"total_active_users": 5.0})
	}
}

func TestSessionsInMinutesAndSeconds(t *testing.T) {
	b := newBench(t)
	path := b.made("a")
	for _, step := range []struct {
		change           tree
		minutes, seconds float64
	}{
		{tree{"session_duration_seconds": 90}, 2, 90},
		{tree{"session_duration": 2}, 2, 90}, // as it is shown
		{tree{"session_duration": 2, "session_duration_seconds": 90}, 2, 90},
		{tree{"session_duration": 3, "session_duration_seconds": 90}, 3, 180}, // the minutes are new
		{tree{"session_duration": 3, "session_duration_seconds": 45.5}, 1, 45.5},
		{tree{"session_duration": 7, "session_duration_seconds": 420}, 7, 420},
		{tree{"session_duration": nil}, 5, 300},
		{tree{"session_duration": nil, "session_duration_seconds": nil}, 5, 300},
	} {
		got := b.want("PATCH", path, step.change)
		same(t, fmt.Sprint(step.change), got, tree{"session_duration": step.minutes, "session_duration_seconds": step.seconds})
	}
	for _, change := range []tree{{"session_duration": 7, "session_duration_seconds": 60}, {"session_duration": nil, "session_duration_seconds": 60}, {"session_duration": 7, "session_duration_seconds": nil}} {
		b.refuses(400, "PATCH", path, change)
	}
}

func TestPages(t *testing.T) {
	b := newBench(t)
	for i := range 12 {
		b.now = begin.Add(time.Duration(i) * time.Second)
		b.made(fmt.Sprintf("room-%02d", i))
	}
	b.want("POST", "/client/v4/zones/other/waiting_rooms", newRoom("elsewhere"))
	for query, want := range map[string]string{
		"": "1 1000 12 12 1", "?per_page=5": "1 5 5 12 3", "?per_page=5&page=3": "3 5 2 12 3", "?page=9&per_page=10": "9 10 0 12 2",
		"?page=2147483647&per_page=1000": "2147483647 1000 0 12 1",
	} {
		_, got := b.ask("GET", rooms+query, nil)
		info := got["result_info"].(tree)
		is(t, query, fmt.Sprintf("%.0f %v %v %v %v", info["page"], info["per_page"], info["count"], info["total_count"], info["total_pages"]), want)
		is(t, query+": there are", float64(len(got["result"].([]any))), info["count"])
	}
	is(t, "the third page begins with", b.list("GET", rooms+"?per_page=5&page=3", nil)[0]["name"], "room-10")
	for query, field := range map[string]string{"per_page=7": "per_page", "per_page=0": "per_page", "per_page=1005": "per_page", "page=0": "page", "page=x": "page", "page=1&page=2": "page"} {
		b.wantRefused(400, "GET", rooms+"?"+query, nil, mistake{Field: field, Message: "want "})
	}
	is(t, "rooms of an account", len(b.list("GET", "/client/v4/accounts/any/waiting_rooms", nil)), 13)
	is(t, "rooms of a zone that nobody uses", len(b.list("GET", "/client/v4/zones/nobodys/waiting_rooms", nil)), 0)
}

// TestNames: here a room may be named, in the dialect it has its id.
func TestNames(t *testing.T) {
	b := newBench(t)
	id := b.want("POST", "/api/v1/rooms", newRoom("a"))["id"].(string)
	b.want("POST", "/api/v1/rooms?zone=shop", newRoom("b"))
	b.want("POST", "/api/v1/rooms?zone=shop", plus(newRoom("a"), "host", "a.shop.example"))
	for path, status := range map[string]int{
		"/api/v1/rooms/" + id: 200, "/api/v1/rooms/" + id + "?zone=default": 200, "/api/v1/rooms/" + id + "?zone=shop": 404,
		"/api/v1/rooms/a": 409, "/api/v1/rooms/a?zone=shop": 200, "/api/v1/rooms/b": 200, "/api/v1/rooms/b?zone=default": 404, "/api/v1/rooms/c": 404,
		rooms + "/b": 404, rooms + "/" + id: 404, "/client/v4/zones/default/waiting_rooms/" + id: 200, rooms + "/" + strings.Repeat("f", 32): 404,
		"/api/v1/rooms/%62": 200, "/api/v1/rooms/b%2Fc": 404, "/api/v1/rooms/b?zone=a%2Fb": 400, "/client/v4/zones/a%20b/waiting_rooms": 400, "/api/v1/rooms?zone=": 400,
	} {
		is(t, path, b.send("GET", path, nil).Status, status)
	}
	twin := b.mesh.Catalog().RoomsOf("default")[0].Clone() // as another node has made it at the same time
	twin.Settings.ID[0]++
	must.Do(b.mesh.Edit(t.Context(), func(cat *catalog.Catalog) ([]catalog.Write, error) { return cat.Writes(nil, twin), nil }))
	for _, one := range []string{id, twin.Settings.ID.String()} {
		b.wantRefused(409, "GET", "/api/v1/rooms/a?zone=default", nil, mistake{Message: one})
	}
	b.want("DELETE", "/api/v1/rooms/"+twin.Settings.ID.String(), nil)
	b.wantRefused(400, "GET", "/api/v1/rooms?zoen=shop", nil, mistake{Message: "did you mean zone?"})
	is(t, "rooms of the zone", len(b.list("GET", "/api/v1/rooms?zone=shop", nil)), 2)
	zones := b.list("GET", "/api/v1/zones", nil)
	is(t, "zones", len(zones), 2)
	same(t, "the second zone", zones[1], tree{"zone": "shop", "rooms": 2.0})
}

func TestDeleting(t *testing.T) {
	b := newBench(t)
	path := b.made("a")
	is(t, "it answered", b.want("DELETE", path, nil), tree{"id": strings.TrimPrefix(path, rooms+"/")})
	b.wantGone(path, tree{}, admin.CodeNoRoom, "GET", "DELETE", "PATCH")
}

func TestStatus(t *testing.T) {
	b := newBench(t)
	path := b.made("a")
	event := b.want("POST", path+"/events", newEvent("sale", 1))["id"]
	b.mesh.States = func(crdt.RoomID) (admin.RoomState, bool) {
		return admin.RoomState{Status: "event_prequeueing", Event: "sale", Waiting: 7, Active: 9, Wait: 61 * time.Second}, true
	}
	want := tree{"status": "event_prequeueing", "event_id": event, "estimated_queued_users": 7.0, "estimated_total_active_users": 9.0, "max_estimated_time_minutes": 2.0, "served": true}
	is(t, "it is", b.want("GET", path+"/status", nil), want)
	b.mesh.States = nil
	_, got := b.ask("GET", path+"/status", nil)
	same(t, "of a room that is not run", got["result"].(tree), tree{"status": "not_queueing", "max_estimated_time_minutes": nil, "served": false})
	is(t, "messages", len(got["messages"].([]any)), 1)
	b.want("PATCH", path, tree{"suspended": true})
	same(t, "suspended", b.want("GET", path+"/status", nil), tree{"status": "suspended"})
}

func TestPreview(t *testing.T) {
	b := newBench(t)
	for _, path := range []string{rooms + "/preview", "/api/v1/preview"} {
		if got := b.want("POST", path, tree{"custom_html": "<p>{{waitTime}}"}); !strings.HasPrefix(got["preview_url"].(string), "https://node.example/preview/") {
			t.Errorf("it is at %v", got)
		}
		for _, page := range []string{"{{#waitTime}}", strings.Repeat("x", 1<<20+1)} {
			b.wantRefused(400, "POST", path, tree{"custom_html": page}, mistake{Field: "custom_html", Message: "custom_html: "})
		}
		b.refuses(400, "POST", path, tree{})
	}
}

func TestZoneSettings(t *testing.T) {
	b := newBench(t)
	path := rooms + "/settings"
	on, off := tree{"search_engine_crawler_bypass": true}, tree{"search_engine_crawler_bypass": false}
	is(t, "at first", b.want("GET", path, nil), off)
	is(t, "changed", b.want("PATCH", path, on), on)
	is(t, "left as it is", b.want("PATCH", path, tree{}), on)
	is(t, "read", b.want("GET", path, nil), on)
	is(t, "replaced by the default", b.want("PUT", path, tree{}), off)
	is(t, "replaced", b.want("PUT", path, on), on)
	got := b.want("GET", "/api/v1/zones/shop", nil)
	is(t, "the zone", got, tree{"zone": "shop", "rooms": 0.0, "search_engine_crawler_bypass": true})
	b.want("PATCH", "/api/v1/zones/shop", plus(got, "search_engine_crawler_bypass", false))
	is(t, "changed here", b.want("GET", path, nil), off)
	b.refuses(400, "PATCH", path, tree{"search_engine_crawler_bypass": 1})
}

// TestTurnstileIsToldToDoNothing by a message, to whoever asks for it.
func TestTurnstileIsToldToDoNothing(t *testing.T) {
	b := newBench(t)
	for mode, told := range map[string]int{"off": 0, "invisible": 1} {
		_, got := b.ask("POST", rooms, plus(newRoom("room-"+mode), "turnstile_mode", mode))
		is(t, mode+": messages", len(got["messages"].([]any)), told)
		is(t, mode+": success", got["success"], true)
	}
}

// TestAnEditThatFails is no mistake of whoever asks.
func TestAnEditThatFails(t *testing.T) {
	b := newBench(t)
	path := b.made("a")
	b.mesh.Fail = func() error { return fmt.Errorf("the disk is full") }
	b.wantRefused(503, "PATCH", path, tree{"queue_all": true}, mistake{Code: admin.CodeFailed, Message: "disk is full"})
}

// TestNearRoomNames: whoever mistypes the name of a room is told which one it may be.
func TestNearRoomNames(t *testing.T) {
	b := newBench(t)
	b.made("tickets")
	b.wantRefused(404, "GET", "/api/v1/rooms/tickts", nil, mistake{Message: `did you mean "tickets"?`})
	b.wantRefused(404, "GET", "/api/v1/rooms/tickts?zone=shop", nil, mistake{Message: `did you mean "tickets"?`})
	is(t, "of a name that is near to none", b.refuses(404, "GET", "/api/v1/rooms/else", nil)[0].Message, `there is no room "else"`)
}

// TestZerosAreAsIfLeftOut: clients in Go send them for what is not set.
func TestZerosAreAsIfLeftOut(t *testing.T) {
	b := newBench(t)
	const zeroTime = "0001-01-01T00:00:00Z"
	zeros := []any{"path", "", "session_duration", 0, "queueing_status_code", 0, "cookie_attributes", tree{"samesite": "", "secure": ""}}
	is := b.want("POST", rooms, plus(newRoom("a"), zeros...))
	path := rooms + "/" + is["id"].(string)
	for _, c := range []struct {
		method    string
		body      tree
		path      string
		minutes   float64
		attribute string
	}{
		{"PATCH", plus(tree{}, zeros...), "/", 5, "auto"},
		{"PATCH", tree{"path": "/a", "session_duration": 7, "cookie_attributes": tree{"samesite": "lax"}}, "/a", 7, "lax"},
		{"PATCH", plus(tree{"session_duration_seconds": 420}, zeros...), "/a", 7, "lax"},
		{"PATCH", plus(tree{"session_duration_seconds": 90}, zeros...), "/a", 2, "lax"},
		{"PUT", plus(newRoom("a"), zeros...), "/", 5, "auto"},
	} {
		is = b.want(c.method, path, c.body)
		if is["path"] != c.path || is["session_duration"] != c.minutes || is["cookie_attributes"].(tree)["samesite"] != c.attribute {
			t.Errorf("%s %v: it is %v", c.method, c.body, is)
		}
	}
	events := path + "/events"
	before := b.want("POST", events, plus(newEvent("e", 1), "session_duration", 0))
	after := b.want("PATCH", events+"/"+before["id"].(string), tree{"event_start_time": zeroTime, "event_end_time": zeroTime, "suspended": true})
	if after["event_start_time"] != before["event_start_time"] || after["event_end_time"] != before["event_end_time"] || after["suspended"] != true || after["session_duration"] != nil {
		t.Errorf("the event was %v, and is %v", before, after)
	}
	b.wantRefused(400, "POST", events, plus(newEvent("f", 2), "event_end_time", zeroTime), mistake{Code: admin.CodeMissing, Field: "event_end_time"})
	b.wantRefused(400, "PATCH", path, tree{"total_active_users": 0}, mistake{Code: admin.CodeRefused, Field: "total_active_users"})
}

// TestWhoDoesNotHaveAChangeYet names the nodes that have not confirmed a change, and has a node that
// knows no catalog yet show none.
func TestWhoDoesNotHaveAChangeYet(t *testing.T) {
	mesh := &admintest.Mesh{NotYetAt: []string{"a2", "b1"}}
	a := must.Do(admin.New(admin.Config{Mesh: mesh}))
	for _, path := range []string{"/api/v1/rooms", "/client/v4/zones/shop/waiting_rooms"} {
		body := fmt.Sprintf(`{"name":"x","host":"x%d.example","total_active_users":9,"new_users_per_minute":9,"cookie_suffix":"x"}`, len(path))
		made := a.Do(t.Context(), admin.Request{Method: "POST", Path: path, ContentType: "application/json", Body: []byte(body)})
		if got := made.Header["Ropeline-Not-Yet-At"]; made.Status != 200 || got != "a2, b1" {
			t.Errorf("POST %s: %d %s, not yet at %q, want it made, and not yet at a2, b1", path, made.Status, made.Body, got)
		}
		is(t, "POST "+path+": has a message of code 1303", strings.Contains(string(made.Body), "1303"), strings.HasPrefix(path, "/client"))
		if read := a.Do(t.Context(), admin.Request{Method: "GET", Path: path}); len(read.Header) > 0 {
			t.Errorf("GET %s has the fields %v", path, read.Header)
		}
	}
	starting := must.Do(admin.New(admin.Config{Mesh: starts{mesh}}))
	for _, path := range []string{"/api/v1/rooms", "/api/v1/rooms/x/status", "/api/v1/rate_limits", "/client/v4/zones/shop/waiting_rooms/x"} {
		is(t, "GET "+path+" of a node that knows no catalog", starting.Do(t.Context(), admin.Request{Method: "GET", Path: path}).Status, 503)
	}
}

// starts is a node that knows no catalog yet.
type starts struct{ *admintest.Mesh }

func (starts) Catalog() *catalog.Catalog { return nil }
