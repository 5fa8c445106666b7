package admin_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront/operator/admin"
	"github.com/ropeline/ropeline/node/room"
)

// TestAnEvent goes through its life, with the bodies that the dashboard sends.
func TestAnEvent(t *testing.T) {
	b := newBench(t)
	b.want("POST", "/api/v1/rooms", plus(newRoom("tickets"), "session_duration_seconds", 90, "custom_page_html", "<p>room"))
	const path = "/api/v1/rooms/tickets"
	one := b.add(path+"/events", plus(newEvent("sale", 1), "prequeue_start_time", nil, "shuffle_at_event_start", false,
		"total_active_users", 5000, "new_users_per_minute", 300, "queueing_method", nil, "suspended", false))
	want := tree{
		"name": "sale", "description": "", "event_start_time": "2026-11-02T09:00:00Z", "event_end_time": "2026-11-02T10:00:00Z", "prequeue_start_time": nil,
		"shuffle_at_event_start": false, "suspended": false, "total_active_users": 5000.0, "new_users_per_minute": 300.0, "session_duration": nil, "session_duration_seconds": nil,
		"disable_session_renewal": nil, "queueing_method": nil, "custom_page_html": nil, "turnstile_mode": nil, "turnstile_action": nil, "created_on": "2026-11-01T09:00:00Z",
	}
	got := b.want("GET", one, nil)
	same(t, "made", got, want)
	is(t, "its fields", len(got), len(want)+2) // id and modified_on
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
		"queueing_method", "random", "disable_session_renewal", true, "prequeue_start_time", "2026-11-02T09:30:00+01:00", "shuffle_at_event_start", true, "turnstile_mode", "off")
	same(t, "overrides", got, want)
	same(t, "the room", b.want("GET", path, nil),
		tree{"next_event_start_time": "2026-11-02T09:00:00Z", "next_event_prequeue_start_time": "2026-11-02T08:30:00Z"})
	want = tree{
		"name": "autumn", "session_duration": nil, "custom_page_html": nil, "prequeue_start_time": nil, "shuffle_at_event_start": false,
		"turnstile_mode": nil, "created_on": "2026-11-01T09:00:00Z",
	}
	same(t, "PUT", b.want("PUT", one, newEvent("autumn", 2)), want)
	all := b.list("GET", path+"/events", nil)
	is(t, "how many there are", len(all), 1)
	same(t, "listed", all[0], want)
	is(t, "deleted", path+"/events/"+b.want("DELETE", one, nil)["id"].(string), one)
	b.wantGone(one, newEvent("x", 1), admin.CodeNoEvent, "GET", "PUT", "PATCH", "DELETE")
}

// TestEventsThatOverlap are refused by the name of the other.
func TestEventsThatOverlap(t *testing.T) {
	b := newBench(t)
	path := b.made("a") + "/events"
	first := b.add(path, newEvent("first", 1))
	b.wantRefused(400, "POST", path, newEvent("second", 1), mistake{Field: "event_start_time", Allowed: `the event "first"`})
	second := b.want("POST", path, newEvent("second", 2))
	// The older one gets in the way of the newer one, which is then named.
	ms := b.refuses(400, "PATCH", first, tree{"event_start_time": second["event_start_time"], "event_end_time": second["event_end_time"]})
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
	b.wantRefused(400, "POST", path, newEvent("e6", 6), mistake{Field: "events", Allowed: "at most 5"})
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
		is(t, "how many there are", len(b.list("POST", path, newRule(host))), i+1)
	}
	all := b.list("GET", path, nil)
	want := tree{"action": "bypass_waiting_room", "expression": `http.host eq "a"`, "description": "", "enabled": true, "version": "1"}
	same(t, "a rule", all[0], want)
	is(t, "its fields", len(all[0]), len(want)+2) // id and last_updated
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
		is(t, fmt.Sprint(step.position), expressions(b.list("PATCH", path+"/"+id(step.of), tree{"position": step.position})), step.want)
	}
	is(t, "added as the second", expressions(b.list("POST", path, plus(newRule("d"), "position", tree{"index": 2}))), "adbc")
	got := b.list("PATCH", path+"/"+id(1), plus(newRule("B"), "enabled", false, "description", "why"))
	same(t, "changed", got[2], tree{"id": id(1), "version": "2", "enabled": false, "description": "why", "expression": `http.host eq "B"`})
	got = b.list("PATCH", path+"/"+id(1), tree{"enabled": true})
	same(t, "changed again", got[2], tree{"version": "3", "enabled": true, "description": "why", "expression": `http.host eq "B"`})
	is(t, "after the first is deleted", expressions(b.list("DELETE", path+"/"+id(0), nil)), "dBc")
	b.wantGone(path+"/"+id(0), tree{}, admin.CodeNoRule, "PATCH", "DELETE")
}

// TestListsAreReplaced as a whole, that of the rules of a room and that of the rate limits: what is known by its id keeps it.
func TestListsAreReplaced(t *testing.T) {
	for _, list := range []struct {
		name   string
		path   func(b *bench) string
		of     func(name string) tree
		called func([]tree) string
		v1, v2 any  // versions
		wrong  tree // by its expression
	}{
		{"rules", func(b *bench) string { return b.made("a") + "/rules" }, newRule, expressions, "1", "2", tree{"expression": "("}},
		{"rate_limits", func(*bench) string { return rateLimits }, newRateLimit, limitNames, 1.0, 2.0, tree{"name": "z", "period": 1, "requests_per_period": 1}},
	} {
		t.Run(list.name, func(t *testing.T) {
			b := newBench(t)
			path, of := list.path(b), list.of
			all := b.list("PUT", path, []tree{of("a"), of("b")})
			is(t, "they are", list.called(all), list.called([]tree{of("a"), of("b")}))
			edits := b.mesh.Edits()
			is(t, "sent without ids", b.list("PUT", path, []tree{of("a"), of("b")}), all)
			is(t, "sent back", b.list("PUT", path, all), all)
			is(t, "edits by what was sent back", b.mesh.Edits()-edits, 0)

			strange := plus(of("x"), "id", strings.Repeat("0", 32))
			got := b.list("PUT", path, []tree{of("c"), plus(all[1], "enabled", false), strange})
			is(t, "then they are", list.called(got), list.called([]tree{of("c"), of("b"), of("x")}))
			same(t, "what is new", got[0], tree{"version": list.v1})
			same(t, "what was there", got[1], tree{"id": all[1]["id"], "version": list.v2})
			if got[2]["id"] == strange["id"] {
				t.Error("an id of another list was taken")
			}
			partial := of("y")
			delete(partial, "expression")
			for _, wrong := range []struct {
				body  any
				field string
			}{
				{tree{}, "the body"},
				{[]any{1}, list.name + "[0]"},
				{[]tree{of("a"), list.wrong}, list.name + "[1].expression"},
				{[]tree{partial}, list.name + "[0].expression"},
				{[]tree{plus(of("a"), "position", tree{"index": 1})}, list.name + "[0].position"},
				{[]tree{all[1], all[1]}, list.name + "[1].id"},
			} {
				b.wantRefused(400, "PUT", path, wrong.body, mistake{Field: wrong.field})
			}
			is(t, "mistakes of two that are none", len(b.refuses(400, "PUT", path, []any{1, 2})), 2)
			is(t, "after what was refused they are", list.called(b.list("GET", path, nil)), list.called(got))
			is(t, "how many are left of none", len(b.list("PUT", path, []tree{})), 0)
		})
	}
}

// TestARoomThatIsWrongAlready can be changed all the same, but not made worse.
func TestARoomThatIsWrongAlready(t *testing.T) {
	b := newBench(t)
	path := b.made("a")
	rule := path + "/rules/" + b.list("POST", path+"/rules", newRule("a"))[0]["id"].(string)
	event := b.add(path+"/events", newEvent("sale", 1))
	b.mesh.Checks = func(*room.Settings) error {
		return &room.FieldError{Field: "rules[0].expression", Problem: "nobody knows this list any more"}
	}
	b.want("PATCH", path, tree{"queue_all": true})
	b.want("DELETE", event, nil)
	b.refuses(400, "PATCH", path, tree{"host": "http://x"})
	b.mesh.Checks = func(s *room.Settings) error {
		return &room.FieldError{Field: "message", Problem: "it is " + s.Front.Message}
	}
	b.wantRefused(400, "PATCH", path, tree{"message": "bad"}, mistake{Field: "message"})
	b.list("DELETE", rule, nil)
}

// isText is of keys by which long texts are kept, which arrive by themselves.
func isText(key string) bool { return strings.HasPrefix(key, "text/") }

// TestAPageThatHasNotArrived is not lost by a change of something beside it.
func TestAPageThatHasNotArrived(t *testing.T) {
	b := newBench(t)
	long := strings.Repeat("<p>{{waitTime}}", 10)
	path := b.add(rooms, plus(newRoom("a"), "custom_page_html", long))
	event := b.add(path+"/events", plus(newEvent("sale", 1), "custom_page_html", long+"x"))
	b.mesh.Forget(isText)
	b.want("PATCH", path, tree{"queue_all": true})
	b.want("PATCH", path, tree{"custom_page_html": "<p>another"}) // of an event the page is still out
	wantOut := func() {
		t.Helper()
		for r := range b.mesh.Catalog().Rooms() {
			if r.Incomplete == "" {
				t.Errorf("the page of room %q is lost", r.Settings.Name)
			}
		}
	}
	b.want("PATCH", event, tree{"suspended": true})
	wantOut()
	b.want("PATCH", event, tree{"custom_page_html": "<p>another"})
	b.want("DELETE", path, nil)

	path = b.add(rooms, plus(newRoom("b"), "custom_page_html", "<p>{{waitTime}}")) // a page of the room itself
	b.mesh.Forget(isText)
	b.want("PATCH", path, tree{"suspended": true, "message": "soon"})
	wantOut()
	b.want("DELETE", path, nil)
}

func TestTimesThatCannotBeWritten(t *testing.T) {
	b := newBench(t)
	path := b.made("a") + "/events"
	for _, at := range []string{"0000-01-01T00:00:00+23:00", "9999-12-31T23:59:59-23:00", "0001-01-01T00:00:01Z", "1969-12-31T23:59:59Z"} {
		b.wantRefused(400, "POST", path, plus(newEvent("sale", 1), "event_end_time", at), mistake{Field: "event_end_time", Message: at})
	}
	far := time.Date(9999, 12, 31, 23, 0, 0, 0, time.UTC)
	b.want("POST", path, tree{"name": "far", "event_start_time": far, "event_end_time": far.Add(30 * time.Minute)})
}

// TestTimesComeBackAsTheyWereSent, whatever else is changed: Terraform compares texts.
func TestTimesComeBackAsTheyWereSent(t *testing.T) {
	b := newBench(t)
	path := b.made("a") + "/events"
	for i, at := range []string{"T09:00:00Z", "T09:00:00+00:00", "T09:00:00.25+05:30", "T09:00:00-08:00"} {
		start, end, prequeue := fmt.Sprintf("2030-01-0%d%s", i+2, at), fmt.Sprintf("2030-01-0%d%s", i+3, at), fmt.Sprintf("2030-01-0%dT12:00:00+02:00", i+2)
		event := tree{"name": fmt.Sprint("e", i), "event_start_time": start, "event_end_time": end}
		if at == "T09:00:00-08:00" {
			event["prequeue_start_time"] = prequeue
		}
		one := path + "/" + b.want("POST", path, event)["id"].(string)
		b.want("PATCH", one, tree{"description": "changed"})
		got := b.want("GET", one, nil)
		if got["event_start_time"] != start || got["event_end_time"] != end || event["prequeue_start_time"] != got["prequeue_start_time"] {
			t.Errorf("of %v it says %v", event, got)
		}
		b.want("DELETE", one, nil)
	}
}
