package history

import (
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func somePoints(t *testing.T) []Point {
	r := newRecorder(t)
	r.See(roomNo(1), Seen{Active: 10, TotalActiveUsers: 100, NewUsersPerMinute: 20}, noon)
	r.See(roomNo(1), Seen{Active: 11}, noon)
	r.See(roomNo(1), Seen{Active: 11, TotalActiveUsers: 100, NewUsersPerMinute: 20}, noon)
	r.Count(roomNo(1), Counts{New: 5, Admitted: 3, Ended: 2, Revoked: 1}, noon)
	r.Waited(roomNo(1), 10*time.Minute, noon)
	r.Count(roomNo(1), Counts{Admitted: 4}, noon.Add(time.Minute))
	r.Advance(noon.Add(2 * time.Minute))
	points, err := r.dayBefore(t, 1, noon.Add(2*time.Minute)).Steps(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return points
}

// TestJSONAndCSVSayTheSame: both have every column, under the same name and with the same
// figure; what there is not is null in one and empty in the other.
func TestJSONAndCSVSayTheSame(t *testing.T) {
	points := somePoints(t)
	var objects []map[string]any
	if err := json.Unmarshal(AppendJSON(nil, points), &objects); err != nil {
		t.Fatal(err)
	}
	table, err := AppendCSV(nil, points)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(string(table))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(table), "\r\n"); n != 3 || len(rows) != 3 || len(objects) != 2 {
		t.Fatalf("%d lines and %d objects, want a header, two points, and two", n, len(objects))
	}
	for i, o := range objects {
		if len(o) != len(Columns())+1 || len(rows[0]) != len(o) {
			t.Errorf("%d names in JSON, %d in CSV, want %d", len(o), len(rows[0]), len(Columns())+1)
		}
		for n, name := range rows[0] {
			field := "null"
			if rows[i+1][n] != "" {
				field = rows[i+1][n]
			}
			in, _ := json.Marshal(o[name])
			if got := strings.Trim(string(in), `"`); got != field {
				t.Errorf("%s is %s in JSON and %q in CSV", name, got, rows[i+1][n])
			}
		}
	}
}

func TestFiguresOfAPoint(t *testing.T) {
	var objects []map[string]any
	if err := json.Unmarshal(AppendJSON(nil, somePoints(t)), &objects); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"time": "2026-03-01T12:00:00Z", "minutes": 1.0, "nodes": 1.0, "active_users_avg": 10.66667, "active_users_max": 11.0,
		"total_active_users": 100.0, "new_users": 5.0, "admitted_users_avg_per_minute": 3.0, "ended_sessions": 2.0, "revoked_sessions": 1.0,
		"wait_p50_seconds": 601.6, "wait_p99_seconds": 601.6, "wait_percentile_error_ratio": 0.03125, "time_on_site_p50_seconds": nil,
	} {
		if got := objects[0][name]; got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for _, name := range []string{"active_users_avg", "total_active_users", "wait_p95_seconds"} {
		if got := objects[1][name]; got != nil {
			t.Errorf("%s of a minute in which nobody looked or waited is %v", name, got)
		}
	}
	if string(AppendJSON(nil, nil)) != "[]" {
		t.Error("no points are no empty array")
	}
}

// TestNamesOfColumns: names differ, and say what the figure is of.
func TestNamesOfColumns(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Columns() {
		if seen[c.Name] || c.Help == "" || strings.ToLower(c.Name) != c.Name {
			t.Errorf("column %q (%q)", c.Name, c.Help)
		}
		seen[c.Name] = true
		if strings.Contains(c.Name, "_p9") && !strings.HasSuffix(c.Name, "_seconds") {
			t.Errorf("%s has no unit", c.Name)
		}
	}
}
