package manage

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/ropeline/ropeline/bench/must"
	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/operator/admin"
	"github.com/ropeline/ropeline/httpfront/operator/admin/admintest"
	"github.com/ropeline/ropeline/httpfront/operator/dashboard"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/history"
)

var (
	begin    = time.Date(2026, 7, 1, 18, 0, 0, 0, time.UTC)
	here     = crdt.NodeID{1}
	there    = crdt.NodeID{2}
	replaced = crdt.NodeID{10} // of three nodes that were called so, the one that lives
	who      = strings.Repeat("7", 32)
)

// fakeMesh notes what it is told.
type fakeMesh struct {
	down        []dashboard.Down
	unrecovered bool
	drained     []string
	dead        []crdt.NodeID
	err         error
	asked       *httpfront.Question

	from, to time.Time
}

func (f *fakeMesh) Status() node.Status {
	return node.Status{Node: here.String(), Name: "one", Rooms: []node.RoomStatus{}, Peers: []node.PeerStatus{}, RoomsRefused: []node.RefusedStatus{}, Down: []node.DownStatus{}, Limits: node.LimitsStatus{Rules: []node.LimitStatus{}}}
}

func (f *fakeMesh) Snapshot(now time.Time) dashboard.Snapshot {
	was := func(id crdt.NodeID, name, state string) dashboard.Node {
		return dashboard.Node{Node: id.String(), Name: name, Site: "a", State: state, RTTs: map[string]time.Duration{}, Leads: []string{}}
	}
	n := func(id crdt.NodeID, name string) dashboard.Node { return was(id, name, "alive") }
	nodes := []dashboard.Node{
		n(here, "one"), n(there, "two"), n(crdt.NodeID{3}, "twin"), n(crdt.NodeID{4}, "twin"),
		was(crdt.NodeID{5}, "replaced", "failed"), n(replaced, "replaced"), was(crdt.NodeID{11}, "replaced", "left"),
		was(crdt.NodeID{12}, "gone", "failed"), was(crdt.NodeID{13}, "gone", "left"),
	}
	return dashboard.Snapshot{
		Time: now, Rooms: []dashboard.Room{}, Sites: []dashboard.Site{{Site: "a"}}, Nodes: nodes,
		Limits: []dashboard.Limit{}, Refused: []dashboard.Refused{}, Down: append([]dashboard.Down{}, f.down...),
	}
}

func (f *fakeMesh) Ledgers(context.Context, crdt.RoomID) ([]node.Ledger, []string) {
	l := node.Ledger{Node: here.String(), Site: "a", Accounts: []node.AccountStatus{{Node: there.String(), Gave: node.AmountStatus{Places: 3}, Pending: true}}}
	return []node.Ledger{l}, []string{"two"}
}

func (f *fakeMesh) History(_ context.Context, _ crdt.RoomID, from, to time.Time) (history.Series, []string, error) {
	f.from, f.to = from, to
	at := from.Unix() / 60
	return history.Series{
		{At: at, Nodes: 2, Gauges: history.Gauges{Samples: 60, ActiveSum: 60 * 7, ActiveMax: 9, TotalActiveUsers: 10}, Counts: history.Counts{New: 4, Admitted: 3}, Waits: history.Of(time.Minute)},
		{At: at + 1, Nodes: 1, Counts: history.Counts{New: 1}},
	}, []string{"two", "three"}, f.err
}

func (f *fakeMesh) Explain(_ context.Context, _ crdt.RoomID, v node.VisitorID) (node.Explanation, error) {
	return node.Explanation{At: begin, Action: "wait", Pass: &node.PassTold{Visitor: fmt.Sprintf("%x", v[:]), Arrival: begin}, Steps: []node.StepTold{{Question: "?", Because: "."}}, View: node.ViewTold{Sites: []node.Share{}}}, f.err
}

func (f *fakeMesh) ExplainRequest(q *httpfront.Question) httpfront.Explained {
	f.asked = q
	return httpfront.Explained{Room: "shop", Passes: true}
}

func (f *fakeMesh) Drain(_ context.Context, id crdt.NodeID, leave bool) (string, error) {
	f.drained = append(f.drained, fmt.Sprint(id, leave))
	if leave {
		return "it was the last", f.err
	}
	return "", f.err
}

func (f *fakeMesh) DeclareDead(_ context.Context, id crdt.NodeID) error {
	f.dead = append(f.dead, id)
	return f.err
}

func (f *fakeMesh) Recovered(context.Context, crdt.NodeID) (bool, error) {
	return !f.unrecovered, f.err
}

func (f *fakeMesh) Keys() []Key { return []Key{{ID: "k", State: "used", Listed: true}} }

func (f *fakeMesh) RotateKeys(context.Context) (Rotation, error) {
	return Rotation{ID: "k2", Given: []string{"one"}, Refused: map[string]string{"two": "no"}}, f.err
}

// bench is an API with these routes.
type bench struct {
	*testing.T
	mesh *fakeMesh
	api  *admin.API
	room string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, mesh: &fakeMesh{}}
	routes, schemas := Routes(b.mesh, func() time.Time { return begin })
	others, more := Streams()
	maps.Copy(schemas, more)
	b.api = must.Do(admin.New(admin.Config{Mesh: &admintest.Mesh{}, Routes: routes, Others: others, Schemas: schemas}))
	b.room = b.wants("POST", "/api/v1/rooms", `{"name":"shop","host":"shop.example","total_active_users":5,"new_users_per_minute":5}`, 200)["id"].(string)
	return b
}

// wants returns what is answered, and fails where that has another code, or, with its fields by name, does not say all this.
func (b *bench) wants(method, path, body string, code int, says ...string) (answer map[string]any) {
	b.Helper()
	u := must.Do(url.Parse(path))
	resp := b.api.Do(b.Context(), admin.Request{Method: method, Path: u.EscapedPath(), Query: u.Query(), ContentType: "application/json", Body: []byte(body)})
	if err := json.Unmarshal(resp.Body, &answer); err != nil {
		b.Fatalf("%s %s: %s: %v", method, path, resp.Body, err)
	}
	text := string(must.Do(json.Marshal(answer)))
	for _, part := range append(says, "") {
		if resp.Status != code || !strings.Contains(text, part) {
			b.Errorf("%s %s %s: %d %s, want %d with %s", method, path, body, resp.Status, text, code, part)
		}
	}
	return answer
}

// document returns the OpenAPI document that is served.
func (b *bench) document() *openapi3.T {
	b.Helper()
	doc := must.Do(openapi3.NewLoader().LoadFromData(b.api.Do(b.Context(), admin.Request{Method: "GET", Path: "/api/v1/openapi.json"}).Body))
	must.OK(doc.Validate(b.Context()))
	return doc
}

// wantValid fails where a value is not as documented once it is JSON.
func (b *bench) wantValid(what string, schema *openapi3.SchemaRef, v any) {
	b.Helper()
	text := must.Do(json.Marshal(v))
	var is any
	err := json.Unmarshal(text, &is)
	if err == nil {
		err = schema.Value.VisitJSON(is, openapi3.EnableJSONSchema2020(), openapi3.EnableFormatValidation())
	}
	if err != nil {
		b.Errorf("%s: %s: %v", what, text, err)
	}
}

// TestRoutesAreAsDocumented holds each answer against the document, and each request.
func TestRoutesAreAsDocumented(t *testing.T) {
	b := newBench(t)
	doc := b.document()
	bodies := map[string]string{
		"rotateKeys": "{}", "drainNode": `{"leave":true}`, "declareDead": `{"gone_for_good":true}`,
		"explain": `{"visitor":"` + who + `","room":"` + b.room + `"}`,
	}
	routes, _ := Routes(b.mesh, time.Now)
	for _, route := range routes {
		path := strings.NewReplacer("{room}", b.room, "{node}", "two").Replace(route.Path)
		op := doc.Paths.Value(route.Path).GetOperation(route.Method)
		body, known := bodies[route.ID]
		if known != (route.Body != nil) {
			t.Fatalf("%s: there is no body to test it with", route.ID)
		}
		if known {
			b.wantValid(route.ID+": the request", op.RequestBody.Value.Content["application/json"].Schema, json.RawMessage(body))
		}
		answer := b.wants(route.Method, path, body, 200)
		b.wantValid(route.ID+": the answer", op.Responses.Status(200).Value.Content["application/json"].Schema, answer)
	}
}

func TestOrders(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		path, body string
		err        error
		code       int
		says       string
	}{
		{"nodes/two/drain", `{}`, nil, 200, there.String()},
		{"nodes/" + there.String() + "/drain", `{"leave":true}`, nil, 200, `"node":"` + there.String() + `","warning":"it was the last"`},
		{"nodes/three/drain", `{}`, nil, 404, "no node \\\"three\\\""},
		{"nodes/twin/drain", `{}`, nil, 409, "2 nodes are called \\\"twin\\\"; give the id of one: " + crdt.NodeID{3}.String() + " (alive), " + crdt.NodeID{4}.String() + " (alive)"},
		{"nodes/replaced/drain", `{}`, nil, 200, replaced.String()},
		{"nodes/gone/drain", `{}`, nil, 409, "(failed), " + crdt.NodeID{13}.String() + " (left)"},
		{"nodes/replaced/declare_dead", `{"gone_for_good":true}`, nil, 200, crdt.NodeID{5}.String()},
		{"nodes/gone/declare_dead", `{"gone_for_good":true}`, nil, 200, crdt.NodeID{12}.String()},
		{"nodes/two/drain", `{"leaf":true}`, nil, 400, "leaf: there is no such field"},
		{"nodes/two/drain", `{"leave":1}`, nil, 400, `"allowed":"true or false","code":1003,"field":"leave","message":"leave: 1 is not allowed: want true or false","value":"1"`},
		{"nodes/two/drain", `{"leave":null}`, nil, 200, there.String()},
		{"nodes/two/drain", `{"Leave":true}`, nil, 400, "Leave: there is no such field; did you mean leave?"},
		{"nodes/two/drain", `[]`, nil, 400, "the body: a list of 0 is not allowed: want an object"},
		{"nodes/two/drain", `null`, nil, 400, "the body: null is not allowed: want an object"},
		{"nodes/two/drain", `{`, nil, 400, "want one JSON value"},
		{"nodes/two/drain", `{}`, errors.New("no answer"), 503, "no answer"},
		{"nodes/two/drain", `{}`, fmt.Errorf("x: %w", ErrUnknownNode), 404, `"code":1401`},
		{"nodes/two/drain", `{"leave":true}`, fmt.Errorf("nobody is there: %w", ErrNotNow), 409, `"code":1405,"message":"nobody is there: it cannot`},
		{"nodes/two/declare_dead", `{}`, nil, 400, "gone_for_good: it has to be true"},
		{"nodes/two/declare_dead", `{"gone_for_good":true}`, nil, 200, there.String()},
		{"nodes/" + crdt.NodeID{9}.String() + "/declare_dead", `{"gone_for_good":true}`, nil, 200, crdt.NodeID{9}.String()},
		{"nodes/two/declare_dead", `{"gone_for_good":true}`, fmt.Errorf("x: %w", node.ErrAlive), 409, "alive"},
		{"nodes/two/declare_dead", `{"gone_for_good":true}`, fmt.Errorf("x: %w", node.ErrUnknownNode), 404, "no such node"},
		{"keys/rotation", `{}`, nil, 200, "k2"},
		{"keys/rotation", `{}`, fmt.Errorf("k2 is on its way: %w", ErrNotNow), 409, `"code":1405`},
		{"keys/rotation", `{"x":1}`, nil, 400, "x: there is no such field"},
		{"explain", `{"visitor":"x","room":"` + b.room + `"}`, nil, 400, "visitor: \\\"x\\\" is not allowed: want 32"},
		{"explain", `{"visitor":"` + who + `","room":"shop"}`, nil, 400, "room:"},
		{"explain", `{"visitor":5,"room":[]}`, nil, 400, "room: a list of 0 is not allowed: want a text"},
		{"explain", `{"request":[]}`, nil, 400, "request: a list of 0 is not allowed: want an object"},
		{"explain", `{"request":{"host":"x","hots":1}}`, nil, 400, "request.hots: there is no such field; did you mean host?"},
		{"explain", `{"request":{"host":"x","header":{"Cookie":1}}}`, nil, 400, "request.header.Cookie: 1 is not allowed: want a text"},
		{"explain", `{}`, nil, 400, "either a request, or a visitor"},
		{"explain", `{"visitor":"` + who + `","room":"` + b.room + `"}`, fmt.Errorf("x: %w", node.ErrUnknownVisitor), 404, "cookie instead"},
		{"explain", `{"request":{"host":"shop.example","header":{"Cookie":"` + strings.Repeat("x", headMax) + `"}}}`, nil, 400, "at most 16384 bytes"},
		{"explain", `{"request":{"host":"shop.example","target":"x"}}`, nil, 400, "request.target"},
		{"explain", `{"request":{"host":"shop.example","address":"x"}}`, nil, 400, "request.address"},
		{"explain", `{"request":{"host":"shop.example"}}`, nil, 200, `"passes":true`},
	} {
		b.mesh.err = c.err
		b.wants("POST", "/api/v1/"+c.path, c.body, c.code, c.says)
	}
	stays, leaves := there.String()+" false", there.String()+" true"
	if want := []string{stays, leaves, replaced.String() + " false", stays, stays, stays, leaves}; !slices.Equal(b.mesh.drained, want) {
		t.Errorf("drained %q, want %q", b.mesh.drained, want)
	}
	if len(b.mesh.dead) != 6 || b.mesh.dead[2] != there || b.mesh.dead[3] != (crdt.NodeID{9}) {
		t.Errorf("declared dead: %v", b.mesh.dead)
	}
}

// TestRequestsAreHandedOn as a visitor sends them.
func TestRequestsAreHandedOn(t *testing.T) {
	b := newBench(t)
	b.wants("POST", "/api/v1/explain",
		`{"request":{"method":"POST","host":"shop.example","target":"/a?b","secure":true,"address":"2001:db8::1","header":{"Cookie":"a=b"}}}`, 200)
	q := b.mesh.asked
	fields := maps.Collect(q.Fields)
	if q.Method != "POST" || q.Host != "shop.example" || q.Target != "/a?b" || q.Scheme != "https" || q.Peer != netip.MustParseAddr("2001:db8::1") ||
		len(fields) != 1 || fields["Cookie"] != "a=b" {
		t.Errorf("asked %+v with the fields %v", q, fields)
	}
}

// TestARecoveryIsTold from the declaration on, and of several nodes of one name it is the one that is down.
func TestARecoveryIsTold(t *testing.T) {
	b := newBench(t)
	old := crdt.NodeID{7}
	b.mesh.down = []dashboard.Down{
		{Node: old.String(), Name: "two", State: "down", Rooms: []dashboard.DownRoom{}, Message: "two is down"},
		{Node: crdt.NodeID{8}.String(), Name: "twins", State: "down", Rooms: []dashboard.DownRoom{}},
		{Node: crdt.NodeID{9}.String(), Name: "twins", State: "down", Rooms: []dashboard.DownRoom{}},
	}
	b.wants("POST", "/api/v1/nodes/twins/declare_dead", `{"gone_for_good":true}`, 409, crdt.NodeID{9}.String())
	at := begin.Add(33500 * time.Millisecond)
	d := &b.mesh.down[0]
	d.State, d.UsableAt, d.Message = "recovering", &at, "recovering two's 102 of 240 capacity: usable in 34 s"
	d.Rooms = []dashboard.DownRoom{{Room: b.room, Name: "shop", Capacity: dashboard.Amount{Places: 102}, Minted: dashboard.Amount{Places: 240}}}
	told := []string{
		`"node":"` + old.String() + `"`, `"rooms":[{"approximate":false,"capacity":{"per_minute":0,"places":102},`,
		`"sessions":0}],"state":"recovering"`, `"usable_in_seconds":34}`,
	}
	b.wants("POST", "/api/v1/nodes/two/declare_dead", `{"gone_for_good":true}`, 200, told...)
	b.wants("GET", "/api/v1/nodes/two/recovery", "", 200, told...)
	if !slices.Equal(b.mesh.dead, []crdt.NodeID{old}) {
		t.Errorf("declared dead: %v, want the one that is down", b.mesh.dead)
	}
	b.mesh.down = nil
	b.wants("GET", "/api/v1/nodes/"+old.String()+"/recovery", "", 200, `"state":"`+Usable+`"`, `"usable_in_seconds":0}`)
	b.mesh.unrecovered = true // nobody has recovered it yet
	b.wants("GET", "/api/v1/nodes/"+old.String()+"/recovery", "", 200, `"state":"waiting"`)
}

// TestStreamsAreInTheDocument, and what they tell is as it says.
func TestStreamsAreInTheDocument(t *testing.T) {
	b := newBench(t)
	doc := b.document()
	for path, media := range map[string]string{"/api/v1/watch": "text/event-stream", "/api/v1/rooms/{room}/watch": "text/event-stream"} {
		item := doc.Paths.Value(path)
		if item == nil || item.Get == nil || item.Get.Responses.Status(200).Value.Content[media] == nil {
			t.Errorf("%s: %+v, want a GET that answers %s", path, item, media)
		}
		if _, ok := b.api.Route("GET", path); ok {
			t.Errorf("%s is answered here as well", path)
		}
	}
	for name, v := range map[string]any{
		"Detail":       dashboard.Detail{Buckets: []dashboard.Bucket{}, Sites: []dashboard.SiteShare{}, Events: []dashboard.Event{}},
		"OtherRefusal": map[string]any{"errors": []any{map[string]any{"message": "x"}}},
	} {
		b.wantValid(name, doc.Components.Schemas[name], v)
	}
}

// TestAnalytics asks for the last hour, and for a part of it in steps.
func TestAnalytics(t *testing.T) {
	b := newBench(t)
	const path = "/api/v1/rooms/shop/analytics"
	got := b.wants("GET", path, "", 200, `"room":"`+b.room+`"`, `"step_seconds":60,`, `"missing":["three","two"]`)
	if !b.mesh.to.Equal(begin) || !b.mesh.from.Equal(begin.Add(-time.Hour)) {
		t.Errorf("asked for %v to %v", b.mesh.from, b.mesh.to)
	}
	points := got["points"].([]any)
	first := points[0].(map[string]any)
	if len(points) != 2 || first["time"] != "2026-07-01T17:00:00Z" || first["active_users_avg"] != 7.0 || first["new_users"] != 4.0 ||
		first["nodes"] != 2.0 || first["time_on_site_p50_seconds"] != nil {
		t.Errorf("points are %v", points)
	}
	if wait, _ := first["wait_p50_seconds"].(float64); wait < 58 || wait > 62 {
		t.Errorf("the median wait is %v, want a minute", wait)
	}
	got = b.wants("GET", path+"?from=2026-07-01t16:00:00z&to=2026-07-01T17:30:00Z&step=5m", "", 200, `"minutes":2,`, `"new_users":5,`)
	if len(got["points"].([]any)) != 1 || b.mesh.to.Sub(b.mesh.from) != 90*time.Minute {
		t.Errorf("in steps of 5 minutes: %v", got)
	}
}

// TestAnalyticsAsATable: the same figures in the same order.
func TestAnalyticsAsATable(t *testing.T) {
	b := newBench(t)
	resp := b.api.Do(t.Context(), admin.Request{Method: "GET", Path: "/api/v1/rooms/shop/analytics", Query: url.Values{"format": {"csv"}}})
	rows, err := csv.NewReader(strings.NewReader(string(resp.Body))).ReadAll()
	if err != nil || resp.Status != 200 || !strings.HasPrefix(resp.ContentType, "text/csv") || resp.Header[MissingField] != "three, two" {
		t.Fatalf("%d %s %v: %s, %v", resp.Status, resp.ContentType, resp.Header, resp.Body, err)
	}
	if len(rows) != 3 || len(rows[0]) != len(history.Columns())+1 || rows[0][3] != "active_users_avg" || rows[1][3] != "7" || rows[2][3] != "" {
		t.Errorf("rows are %q", rows)
	}
}

// TestAnalyticsThatAreRefused name the parameter, its value and what is allowed.
func TestAnalyticsThatAreRefused(t *testing.T) {
	b := newBench(t)
	const path = "/api/v1/rooms/shop/analytics"
	for _, c := range []struct{ query, says string }{
		{"from=yesterday", `from: \"yesterday\" is not allowed: want a time in RFC 3339`},
		{"to=1", `to: \"1\" is not allowed: want a time in RFC 3339`},
		{"from=2026-06-30T17:59:00Z", `from: \"2026-06-30T17:59:00Z\" is not allowed: want a time from 1m to 24h before to, which is 2026-07-01T18:00:00Z`},
		{"from=2026-07-01T18:00:00Z", "want a time from 1m to 24h before to"},
		{"from=2026-07-01T18:01:00Z", "want a time from 1m to 24h before to"},
		{"step=90s", `step: \"90s\" is not allowed: want whole minutes from 1m to 24h`},
		{"step=0", "want whole minutes"},
		{"step=-1m", "want whole minutes"},
		{"step=25h", "want whole minutes"},
		{"step=x", "want whole minutes"},
		{"format=xml", `format: \"xml\" is not allowed: want json or csv`},
		{"since=1", "since: the query has no such parameter here"},
		{"step=1m&step=2m", "it stands 2 times"},
	} {
		b.wants("GET", path+"?"+c.query, "", 400, c.says)
	}
	b.wants("GET", "/api/v1/rooms/none/analytics", "", 404)
	for _, ok := range []string{"from=2026-06-30T18:00:00Z", "from=2026-07-01T17:59:00Z", "step=24h", "step=1440m", "format=json"} {
		b.wants("GET", path+"?"+ok, "", 200)
	}
	b.mesh.err = errors.New("the node is not running")
	b.wants("GET", path, "", 503)
}
