package admin_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront/operator/admin"
)

// TestAnEvent goes through its life, with the bodies that the dashboard sends.
func TestAnEvent(t *testing.T) {
	b := newBench(t)
	b.want("POST", "/api/v1/rooms", plus(newRoom("tickets"), "session_duration_seconds", 90, "custom_page_html", "<p>room"))
	const path = "/api/v1/rooms/tickets"
	made := b.want("POST", path+"/events", plus(newEvent("sale", 1), "prequeue_start_time", nil, "shuffle_at_event_start", false,
		"total_active_users", 5000, "new_users_per_minute", 300, "queueing_method", nil, "suspended", false))
	one := path + "/events/" + made["id"].(string)
	want := tree{
		"name": "sale", "description": "", "event_start_time": "2026-11-02T09:00:00Z", "event_end_time": "2026-11-02T10:00:00Z", "prequeue_start_time": nil,
		"shuffle_at_event_start": false, "suspended": false, "total_active_users": 5000.0, "new_users_per_minute": 300.0, "session_duration": nil, "session_duration_seconds": nil,
		"disable_session_renewal": nil, "queueing_method": nil, "custom_page_html": nil, "turnstile_mode": nil, "turnstile_action": nil, "created_on": "2026-11-01T09:00:00Z",
	}
	got := b.want("GET", one, nil)
	same(t, "made", got, want)
	if len(got) != len(want)+2 { // id and modified_on
		t.Errorf("it has %d fields: %v", len(got), got)
	}
	same(t, "details", b.want("GET", one+"/details", nil), plus(want, "session_duration", 2.0, "session_duration_seconds", 90.0,
		"disable_session_renewal", false, "queueing_method", "fifo", "custom_page_html", "<p>room", "turnstile_mode", "invisible", "turnstile_action", "log"))

	b.want("PATCH", one, tree{"name": "summer"})
	want["name"] = "summer"
	same(t, "PATCH", b.want("GET", one, nil), want)
	for _, method := range []string{"PUT", "PATCH"} {
		same(t, method, b.want(method, one, b.want("GET", one, nil)), want)
	}
	got = b.want("PATCH", one, tree{
		"total_active_users": nil, "new_users_per_minute": nil, "session_duration": 7, "custom_page_html": "", "queueing_method": "random",
		"disable_session_renewal": true, "prequeue_start_time": "2026-11-02T09:30:00+01:00", "shuffle_at_event_start": true, "turnstile_mode": "off",
	})
	want = plus(want, "total_active_users", nil, "new_users_per_minute", nil, "session_duration", 7.0, "session_duration_seconds", 420.0, "custom_page_html", "",
		"queueing_method", "random", "disable_session_renewal", true, "prequeue_start_time", "2026-11-02T08:30:00Z", "shuffle_at_event_start", true, "turnstile_mode", "off")
	same(t, "overrides", got, want)
	room := b.want("GET", path, nil)
	if room["next_event_start_time"] != "2026-11-02T09:00:00Z" || room["next_event_prequeue_start_time"] != "2026-11-02T08:30:00Z" {
		t.Errorf("the next event is at %v, its pre-queue at %v", room["next_event_start_time"], room["next_event_prequeue_start_time"])
	}
	got = b.want("PUT", one, newEvent("autumn", 2))
	same(t, "PUT", got, tree{"name": "autumn", "session_duration": nil, "custom_page_html": nil, "prequeue_start_time": nil, "shuffle_at_event_start": false, "turnstile_mode": nil, "created_on": "2026-11-01T09:00:00Z"})

	if all := b.list("GET", path+"/events", nil); len(all) != 1 || all[0]["name"] != "autumn" {
		t.Errorf("there are %v", all)
	}
	if got := b.want("DELETE", one, nil); !strings.HasSuffix(one, got["id"].(string)) {
		t.Errorf("it answered %v", got)
	}
	for _, method := range []string{"GET", "PUT", "PATCH", "DELETE"} {
		if m := b.refuses(404, method, one, newEvent("x", 1))[0]; m.Code != admin.CodeNoEvent {
			t.Errorf("%s: %v", method, m)
		}
	}
}

// TestEventsThatOverlap are refused by the name of the other.
func TestEventsThatOverlap(t *testing.T) {
	b := newBench(t)
	path := b.made("a") + "/events"
	first := b.want("POST", path, newEvent("first", 1))
	m := b.refuses(400, "POST", path, newEvent("second", 1))[0]
	if m.Field != "event_start_time" || !strings.Contains(m.Allowed, `the event "first"`) {
		t.Errorf("it says %v", m)
	}
	second := b.want("POST", path, newEvent("second", 2))
	// The older one gets in the way of the newer one, which is then named.
	ms := b.refuses(400, "PATCH", path+"/"+first["id"].(string), tree{"event_start_time": second["event_start_time"], "event_end_time": second["event_end_time"]})
	if len(ms) != 1 || !strings.Contains(ms[0].Message, `"first"`) && !strings.Contains(ms[0].Message, `"second"`) {
		t.Errorf("it says %v", ms)
	}
}

func TestTooManyEvents(t *testing.T) {
	b := newBench(t)
	path := b.made("a") + "/events"
	for i := range 5 {
		b.want("POST", path, newEvent(fmt.Sprintf("e%d", i), i+1))
	}
	if m := b.refuses(400, "POST", path, newEvent("e6", 6))[0]; m.Field != "events" || !strings.Contains(m.Allowed, "at most 5") {
		t.Errorf("it says %v", m)
	}
}

func expressions(rules []tree) (all string) {
	for _, r := range rules {
		all += strings.TrimSuffix(strings.TrimPrefix(r["expression"].(string), `http.host eq "`), `"`)
	}
	return all
}

func newRule(host string) tree {
	return tree{"action": "bypass_waiting_room", "expression": fmt.Sprintf("http.host eq %q", host)}
}

func TestRules(t *testing.T) {
	b := newBench(t)
	path := b.made("a") + "/rules"
	for i, host := range []string{"a", "b", "c"} {
		if got := b.list("POST", path, newRule(host)); len(got) != i+1 {
			t.Errorf("there are %d", len(got))
		}
	}
	all := b.list("GET", path, nil)
	want := tree{"action": "bypass_waiting_room", "expression": `http.host eq "a"`, "description": "", "enabled": true, "version": "1"}
	same(t, "a rule", all[0], want)
	if len(all[0]) != len(want)+2 { // id and last_updated
		t.Errorf("it has %v", all[0])
	}
	id := func(i int) string { return all[i]["id"].(string) }
	for _, step := range []struct {
		position tree
		of       int
		want     string
	}{
		{tree{"index": 1}, 2, "cab"},
		{tree{"index": 3}, 2, "abc"},
		{tree{"before": id(1)}, 2, "acb"},
		{tree{"after": id(1)}, 2, "abc"},
		{tree{"before": ""}, 1, "bac"},
		{tree{"after": ""}, 1, "acb"},
		{tree{"after": id(0)}, 1, "abc"},
	} {
		if got := expressions(b.list("PATCH", path+"/"+id(step.of), tree{"position": step.position})); got != step.want {
			t.Errorf("%v: %s, want %s", step.position, got, step.want)
		}
	}
	if got := b.list("POST", path, plus(newRule("d"), "position", tree{"index": 2})); expressions(got) != "adbc" {
		t.Errorf("it is %s", expressions(got))
	}
	got := b.list("PATCH", path+"/"+id(1), plus(newRule("B"), "enabled", false, "description", "why"))
	same(t, "changed", got[2], tree{"id": id(1), "version": "2", "enabled": false, "description": "why", "expression": `http.host eq "B"`})
	got = b.list("PATCH", path+"/"+id(1), tree{"enabled": true})
	same(t, "changed again", got[2], tree{"version": "3", "enabled": true, "description": "why", "expression": `http.host eq "B"`})
	if got := b.list("DELETE", path+"/"+id(0), nil); expressions(got) != "dBc" {
		t.Errorf("it is %s", expressions(got))
	}
	for _, method := range []string{"PATCH", "DELETE"} {
		if m := b.refuses(404, method, path+"/"+id(0), tree{})[0]; m.Code != admin.CodeNoRule {
			t.Errorf("%s: %v", method, m)
		}
	}
}

func TestRulesAreReplaced(t *testing.T) {
	b := newBench(t)
	path := b.made("a") + "/rules"
	all := b.list("PUT", path, []tree{newRule("a"), newRule("b")})
	if expressions(all) != "ab" {
		t.Fatalf("it is %v", all)
	}
	edits := b.mesh.Edits()
	if again := b.list("PUT", path, all); !reflect.DeepEqual(again, all) || b.mesh.Edits() != edits {
		t.Errorf("sent back, they are %v", again)
	}
	got := b.list("PUT", path, []tree{newRule("c"), plus(all[1], "enabled", false), plus(newRule("x"), "id", strings.Repeat("0", 32))})
	if expressions(got) != "cbx" || got[1]["id"] != all[1]["id"] || got[1]["version"] != "2" || got[0]["version"] != "1" || got[2]["id"] == strings.Repeat("0", 32) {
		t.Errorf("they are %v", got)
	}
	for _, wrong := range []struct {
		body  any
		field string
	}{
		{tree{}, "the body"},
		{[]any{1}, "rules[0]"},
		{[]tree{newRule("a"), {"expression": "("}}, "rules[1].expression"},
		{[]tree{{}}, "rules[0].expression"},
		{[]tree{plus(newRule("a"), "position", tree{"index": 1})}, "rules[0].position"},
		{[]tree{all[1], all[1]}, "rules[1].id"},
	} {
		if m := b.refuses(400, "PUT", path, wrong.body)[0]; m.Field != wrong.field {
			t.Errorf("%v: %v", wrong.body, m)
		}
	}
	if got := b.refuses(400, "PUT", path, []any{1, tree{}}); len(got) != 2 {
		t.Errorf("of two rules that are none it says %v", got)
	}
	if none := b.list("PUT", path, []tree{}); len(none) != 0 {
		t.Errorf("there are %v", none)
	}
}

// TestARoomThatIsWrongAlready can be changed all the same, but not made worse.
func TestARoomThatIsWrongAlready(t *testing.T) {
	b := newBench(t)
	path := b.made("a")
	b.list("POST", path+"/rules", newRule("a"))
	b.want("POST", path+"/events", newEvent("sale", 1))
	b.mesh.Checks = func(s *roomSettings) error {
		return refuse("rules[0].expression", "nobody knows this list any more")
	}
	b.want("PATCH", path, tree{"queue_all": true})
	b.want("DELETE", path+"/events/"+b.list("GET", path+"/events", nil)[0]["id"].(string), nil)
	b.refuses(400, "PATCH", path, tree{"host": "http://x"})
	b.mesh.Checks = func(s *roomSettings) error { return refuse("message", "it is "+s.Front.Message) }
	if m := b.refuses(400, "PATCH", path, tree{"message": "bad"})[0]; m.Field != "message" {
		t.Errorf("it says %v", m)
	}
	b.list("DELETE", path+"/rules/"+b.list("GET", path+"/rules", nil)[0]["id"].(string), nil)
}

// TestAPageThatHasNotArrived is not lost by a change of something beside it.
func TestAPageThatHasNotArrived(t *testing.T) {
	b := newBench(t)
	long := strings.Repeat("<p>{{waitTime}}", 10)
	path := rooms + "/" + b.want("POST", rooms, plus(newRoom("a"), "custom_page_html", long))["id"].(string)
	event := path + "/events/" + b.want("POST", path+"/events", plus(newEvent("sale", 1), "custom_page_html", long+"x"))["id"].(string)
	b.mesh.Forget(func(key string) bool { return strings.HasPrefix(key, "text/") })
	b.want("PATCH", path, tree{"queue_all": true})
	b.want("PATCH", path, tree{"custom_page_html": "<p>another"}) // of an event the page is still out
	if m := b.refuses(503, "PATCH", event, tree{"suspended": true})[0]; !strings.Contains(m.Message, "has not arrived") {
		t.Errorf("it says %v", m)
	}
	b.want("PATCH", event, tree{"custom_page_html": "<p>another"})
	b.want("PATCH", event, tree{"suspended": true})
}

func TestAPageOfARoomThatHasNotArrived(t *testing.T) {
	b := newBench(t)
	path := rooms + "/" + b.want("POST", rooms, plus(newRoom("a"), "custom_page_html", "<p>{{waitTime}}"))["id"].(string)
	b.mesh.Forget(func(key string) bool { return strings.HasPrefix(key, "text/") })
	b.want("PATCH", path, tree{"suspended": true})
	b.refuses(503, "PATCH", path, tree{"message": "soon"})
	b.want("DELETE", path, nil)
}

func TestTimesThatCannotBeWritten(t *testing.T) {
	b := newBench(t)
	path := b.made("a") + "/events"
	for _, at := range []string{"0000-01-01T00:00:00+23:00", "9999-12-31T23:59:59-23:00", "0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z"} {
		ms := b.refuses(400, "POST", path, plus(newEvent("sale", 1), "event_end_time", at))
		if ms[0].Field != "event_end_time" || !strings.Contains(ms[0].Message, at) {
			t.Errorf("%s: %v", at, ms)
		}
	}
	far := time.Date(9999, 12, 31, 23, 0, 0, 0, time.UTC)
	b.want("POST", path, tree{"name": "far", "event_start_time": far, "event_end_time": far.Add(30 * time.Minute)})
}
