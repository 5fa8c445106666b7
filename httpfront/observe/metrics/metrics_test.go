package metrics

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ropeline/ropeline/bench/golden"
	"github.com/ropeline/ropeline/bench/must"
	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node"
)

// figures calls do with every number, text, time and bool of a sample, and makes slices and pointers that are empty
// lead to one.
func figures(v reflect.Value, path string, do func(path string, v reflect.Value)) {
	switch {
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]():
		for f, field := range v.Fields() {
			if f.IsExported() {
				figures(field, strings.TrimPrefix(path+"."+f.Name, "."), do)
			}
		}
	case v.Kind() == reflect.Slice:
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		figures(v.Index(0), path, do)
	case v.Kind() == reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		figures(v.Elem(), path, do)
	default:
		do(path, v)
	}
}

// set sets a figure to n, or to what is made of it.
func set(v reflect.Value, n int64) {
	switch v.Kind() {
	case reflect.Struct:
		v.Set(reflect.ValueOf(time.Unix(n, 0)))
	case reflect.String:
		v.SetString(fmt.Sprint("text", n))
	case reflect.Bool:
		v.SetBool(n == 7)
	default:
		v.Set(reflect.ValueOf(n).Convert(v.Type()))
	}
}

// filled has 7 for every number, a text of its own, and true.
func filled() (s Sample) {
	figures(reflect.ValueOf(&s).Elem(), "", func(_ string, v reflect.Value) { set(v, 7) })
	s.Node.Store, s.Node.Clock, s.Node.Peers[0].State, s.Origins[0].Origins[0].State, s.Certificates[0].Error = "ok", "ok", "alive", "in", ""
	return s
}

// notShown is what statuses have that is in no metric: it is about one visitor, node or moment, or
// is said in words.
var notShown = strings.Fields(`
	Node.Mesh Node.Reason Node.Bootstrap Node.RoomsRefused. Node.Peers.Node Node.Peers.Name Node.Peers.Site Node.Peers.Boot
	Node.Rooms.Anywhere Node.Rooms.Sites.Site Node.Rooms.Sites.Active Node.Rooms.Sites.Waiting Node.Rooms.SiteCounter Node.Rooms.AnywhereCounter
	Node.Rooms.DisableSessionRenewal Node.Rooms.Rights.Minter Node.Rooms.Rights.MintedHere. Node.Rooms.Rights.Retired Node.Rooms.Rights.MintsFrom
	Node.Rooms.Event.Name Node.Rooms.Event.Prequeueing Node.Rooms.Event.Shuffle Node.Rooms.Event.PrequeueStart Node.Rooms.Event.Start Node.Rooms.Event.End
	Node.Down.Node Node.Down.Name Node.Down.Since Node.Down.Message Node.Down.WaitsFor Node.Down.UsableAt
	Node.Down.Rooms.Minted. Node.Down.Rooms.Approximate Node.Down.Rooms.Sessions Node.Limits.Rules.Scope Node.Limits.Rules.Bound.Nodes
	Node.Peers.Refused. Node.Peers.Refuses. Node.Limits.Awaits
	Origins.Origins.Weight Origins.Origins.Reason Origins.Origins.Until Origins.Origins.LastFailure.Text Certificates.Source`)

// Some outcomes.
var outcomes = []string{"admitted", "queued"}

const admitted, queued = 0, 1

func metricsOf(s *Sample) *Metrics {
	return must.Do(New(func() Sample { return *s }, outcomes))
}

func (m *Metrics) text(t *testing.T) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		t.Fatalf("answered %d, %s: %s", w.Code, w.Header().Get("Content-Type"), w.Body)
	}
	return w.Body.String()
}

// TestEveryFigureIsShown: each field of a sample changes what is shown, but for those that are
// known not to be.
func TestEveryFigureIsShown(t *testing.T) {
	base := filled()
	before := ownLines(metricsOf(&base).text(t))
	figures(reflect.ValueOf(&base).Elem(), "", func(path string, v reflect.Value) {
		old := reflect.ValueOf(v.Interface())
		set(v, 3e9)
		known := slices.ContainsFunc(notShown, func(p string) bool { return p == path || strings.HasSuffix(p, ".") && strings.HasPrefix(path, p) })
		if is := ownLines(metricsOf(&base).text(t)) != before; is == known {
			t.Errorf("%s: shown is %v", path, is)
		}
		v.Set(old)
	})
	if ownLines(metricsOf(&base).text(t)) != before {
		t.Error("the test did not put back what it changed")
	}
}

// ownLines returns the series of ropeline itself.
func ownLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "ropeline_") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// TestLimitsThatTheFrontFollows are shown, and no others.
func TestLimitsThatTheFrontFollows(t *testing.T) {
	s := Sample{Limits: []LimitTally{{ID: "7", Action: "queue", Requests: 10}}}
	s.Node.Limits.Rules = []node.LimitStatus{{ID: "7", Name: "logins"}, {ID: "8", Name: "not yet followed"}}
	text := ownLines(metricsOf(&s).text(t))
	if !strings.Contains(text, `ropeline_limit_requests_total{action="queue",limit="logins"} 10`) || strings.Contains(text, "not yet followed") {
		t.Errorf("got:\n%s", text)
	}
}

// TestTableIsWhatIsShown: every metric of the table is shown, with its type, help and
// labels, and none that is not in it but those of Go and of the process.
func TestTableIsWhatIsShown(t *testing.T) {
	s := filled()
	m := metricsOf(&s)
	m.Requests().Record(crdt.RoomID{}, admitted, time.Second)
	shown := must.Do(m.registry.Gather())
	table, process := map[string]Metric{}, slices.Clone(processNames)
	for _, metric := range Table() {
		table[metric.Name] = metric
	}
	for _, f := range shown {
		name := f.GetName()
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			process = slices.DeleteFunc(process, func(p string) bool { return p == name })
			continue
		}
		want, ok := table[name]
		delete(table, name)
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		slices.Sort(labels)
		kind := strings.ToLower(f.GetType().String())
		if !ok || kind != string(want.Type) || f.GetHelp() != want.Help || !slices.Equal(labels, slices.Sorted(slices.Values(want.Labels))) {
			t.Errorf("%s is shown as a %s: %q, with the labels %v, want %+v", name, kind, f.GetHelp(), labels, want)
		}
	}
	for name := range table {
		t.Errorf("%s is in the table and not shown", name)
	}
	if runtime.GOOS == "linux" && len(process) > 0 {
		t.Errorf("%v are not shown", process)
	}
}

// TestNamesKeepToConventions runs Prometheus' own check, and holds names to their units.
func TestNamesKeepToConventions(t *testing.T) {
	s := filled()
	problems := must.Do(testutil.GatherAndLint(metricsOf(&s).registry))
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	for _, m := range Table() {
		total := strings.HasSuffix(m.Name, "_total")
		name := strings.TrimSuffix(m.Name, "_total")
		switch {
		case m.Unit == "" || m.Help == "" || !strings.HasPrefix(m.Name, "ropeline_"):
			t.Errorf("%+v is not complete", m)
		case total != (m.Type == Counter):
			t.Errorf("%s is a %s", m.Name, m.Type)
		case (m.Unit == "seconds") != (strings.HasSuffix(name, "_seconds") && !strings.HasSuffix(name, "_timestamp_seconds")):
			t.Errorf("%s is in %s", m.Name, m.Unit)
		case (m.Unit == "bytes") != strings.HasSuffix(name, "_bytes"):
			t.Errorf("%s is in %s", m.Name, m.Unit)
		}
	}
}

// TestRequestsMakeNoSeries: ten thousand rooms that requests name make no series, nor do
// as many that the configuration has make more than are allowed.
func TestRequestsMakeNoSeries(t *testing.T) {
	s := Sample{Node: node.Status{Rooms: []node.RoomStatus{{Zone: "z", Name: "shop"}}}}
	m := metricsOf(&s)
	m.Requests().SetRooms([]NamedRoom{{crdt.RoomID{1}, RoomName{"z", "shop"}}})
	before := strings.Count(ownLines(m.text(t)), "\n")
	for i := range 10_000 {
		m.Requests().Record(crdt.RoomID{2, byte(i), byte(i >> 8)}, queued, time.Millisecond)
	}
	text := m.text(t)
	n := strings.Count(ownLines(text), "\n")
	if n != before || !strings.Contains(text, `ropeline_requests_total{outcome="queued",room="",zone=""} 10000`) {
		t.Errorf("%d series before, %d after 10,000 requests to rooms that there are not, which are to be counted together", before, n)
	}

	var names []NamedRoom
	s.Node.Rooms = nil
	for i := range 10_000 {
		names = append(names, NamedRoom{crdt.RoomID{1, byte(i), byte(i >> 8)}, RoomName{"z", fmt.Sprint("room", i)}})
		s.Node.Rooms = append(s.Node.Rooms, node.RoomStatus{Zone: "z", Name: fmt.Sprint("room", i)})
	}
	s.Node.Rooms = append(s.Node.Rooms, node.RoomStatus{Zone: "z", Name: "room0"}) // one name twice
	s.Origins = []upstream.Status{{Origins: make([]upstream.OriginStatus, 5000)}}
	m.Requests().SetRooms(names)
	text = m.text(t)
	for series, want := range map[string]int{
		"ropeline_room_active_users{":    500,
		"ropeline_requests_total{":       501 * len(outcomes), // those of 500 rooms and of none
		"ropeline_series_left_out 14500": 1,                   // 9,501 rooms and 4,999 origins
	} {
		if n := strings.Count(text, series); n != want {
			t.Errorf("%d times %s, want %d", n, series, want)
		}
	}
}

// TestRoomsThatAreGoneHaveNoSeries: and those that stay keep their counts.
func TestRoomsThatAreGoneHaveNoSeries(t *testing.T) {
	var s Sample
	m := metricsOf(&s)
	r := m.Requests()
	stays, goes := NamedRoom{crdt.RoomID{1}, RoomName{"z", "stays"}}, NamedRoom{crdt.RoomID{2}, RoomName{"z", "goes"}}
	r.SetRooms([]NamedRoom{stays, goes})
	r.Record(stays.ID, admitted, 0)
	r.Record(goes.ID, admitted, 0)
	stays.ID = crdt.RoomID{3} // it was retired, and made again
	r.SetRooms([]NamedRoom{stays})
	r.Record(stays.ID, admitted, 0)
	text := m.text(t)
	if !strings.Contains(text, `ropeline_requests_total{outcome="admitted",room="stays",zone="z"} 2`) || strings.Contains(text, "goes") {
		t.Errorf("got:\n%s", ownLines(text))
	}
}

// TestHostileNamesStayInTheirLabels: whatever a name holds, each line is one series.
func TestHostileNamesStayInTheirLabels(t *testing.T) {
	s := Sample{Node: node.Status{Rooms: []node.RoomStatus{{Zone: "a\"} 1\nfake 1", Name: "\xff\\" + strings.Repeat("x", 5000)}}}}
	text := metricsOf(&s).text(t)
	if strings.Contains(text, "\nfake") || strings.Contains(text, strings.Repeat("x", maxLabel)) {
		t.Error("a name has made a line of its own, or is longer than labels are")
	}
}

// processNames are those metrics of any process that rules and dashboards ask for.
var processNames = []string{"process_cpu_seconds_total", "process_max_fds", "process_open_fds", "process_resident_memory_bytes"}

// TestDocsHaveTheTable holds docs/metrics.md to the code; -update writes it.
func TestDocsHaveTheTable(t *testing.T) {
	table := "| name | type | unit | labels | meaning |\n|---|---|---|---|---|\n"
	for _, m := range Table() {
		labels := ""
		if len(m.Labels) > 0 {
			labels = "`" + strings.Join(m.Labels, "`, `") + "`"
		}
		table += fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n", m.Name, m.Type, m.Unit, labels, m.Help)
	}
	golden.Part(t, "../../../docs/metrics.md", "<!-- metrics: begin -->\n", "<!-- metrics: end -->\n", table)
}

// TestNamesForDeploy holds the names by which deploy/signals checks its rules to the code.
func TestNamesForDeploy(t *testing.T) {
	want, err := json.MarshalIndent(struct {
		Metrics []Metric `json:"metrics"`
		Process []string `json:"process"`
	}{Table(), processNames}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.File(t, "../../../deploy/signals/metrics.json", string(want)+"\n")
}
