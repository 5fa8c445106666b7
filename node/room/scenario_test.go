package room

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

var update = flag.Bool("update", false, "write the answers in testdata/*.txt anew")

// TestScenarios runs testdata/*.txt. A file is text, and steps of the form
//
//	command key=value …
//	----
//	answer
//
// with an empty line behind each. State is carried from step to step.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := runScenario(t, string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			wantLines, gotLines := strings.Split(string(want), "\n"), strings.Split(got, "\n")
			for i := range min(len(wantLines), len(gotLines)) {
				if wantLines[i] != gotLines[i] {
					t.Fatalf("line %d: got %q, want %q", i+1, gotLines[i], wantLines[i])
				}
			}
			if len(wantLines) != len(gotLines) {
				t.Fatalf("got %d lines, want %d", len(gotLines), len(wantLines))
			}
		})
	}
}

// runScenario returns the file with every answer replaced by the real one.
func runScenario(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	s := scenario{t: t, sites: map[string]*Site{}}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		fmt.Fprintln(&out, lines[i])
		if i+1 >= len(lines) || lines[i+1] != "----" {
			continue
		}
		fmt.Fprintln(&out, "----")
		out.WriteString(s.step(strings.Fields(lines[i])))
		for i++; i+1 < len(lines) && lines[i+1] != ""; i++ {
		}
	}
	return out.String()
}

// scenario is the state that steps work on.
type scenario struct {
	t        *testing.T
	settings Settings
	sites    map[string]*Site
	order    []string
	mine     crdt.Counts
	nodes    int
	now      time.Time
	view     *View
}

func (s *scenario) step(words []string) string {
	s.t.Helper()
	args := map[string]string{}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		args[key] = value
	}
	switch words[0] {
	case "room":
		return s.room(args)
	case "site":
		return s.site(words[1], args)
	case "mine":
		s.mine = s.counts(args)
		return ""
	case "view":
		return s.build(args)
	case "visitor":
		return s.visitor(args)
	}
	s.t.Fatalf("unknown step %q", words[0])
	return ""
}

func (s *scenario) number(v string) int {
	s.t.Helper()
	if v == "" {
		return 0
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *scenario) duration(v string) time.Duration {
	s.t.Helper()
	if v == "" {
		return 0
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *scenario) time(v string) time.Time {
	s.t.Helper()
	if v == "" {
		return time.Time{}
	}
	return clock(s.t, v)
}

func (s *scenario) room(args map[string]string) string {
	s.settings = Settings{
		Name: "shop", TotalActiveUsers: s.number(args["active"]), NewUsersPerMinute: s.number(args["new"]),
		Policy: Policy(args["policy"]), QueueingMethod: Method(args["method"]),
		SessionDuration: s.duration(args["session"]), RefreshInterval: s.duration(args["refresh"]),
	}.WithDefaults()
	if err := s.settings.Validate(); err != nil {
		return err.Error() + "\n"
	}
	return fmt.Sprintf("%s, %s, session %v, refresh %v\n", s.settings.QueueingMethod, s.settings.Policy,
		s.settings.SessionDuration, s.settings.RefreshInterval)
}

// counts reads lists such as waiting=12:00:05*3,12:01*7.
func (s *scenario) counts(args map[string]string) crdt.Counts {
	s.t.Helper()
	list := func(key string, at func(time.Time) int64) map[int64]int64 {
		cells := map[int64]int64{}
		for item := range strings.SplitSeq(args[key], ",") {
			if item == "" {
				continue
			}
			when, n, _ := strings.Cut(item, "*")
			cells[at(s.time(when))] += int64(s.number(n))
		}
		return cells
	}
	return crdt.Counts{Active: int64(s.number(args["active"])), Waiting: list("waiting", time.Time.Unix),
		Seen: list("seen", crdt.TickOf), Admitted: list("admitted", crdt.TickOf)}
}

func (s *scenario) site(name string, args map[string]string) string {
	if s.sites[name] == nil {
		s.order = append(s.order, name)
	}
	_, own := args["own"]
	s.sites[name] = &Site{Name: name, Own: own, Nodes: s.number(args["nodes"]), Counts: s.counts(args)}
	if own {
		s.nodes = s.sites[name].Nodes
	}
	return ""
}

func (s *scenario) build(args map[string]string) string {
	s.now = s.time(args["at"])
	in := Input{Nodes: nodeIDs(s.nodes), Self: nodeID(s.number(args["node"])), Mine: s.mine}
	for _, name := range s.order {
		in.Sites = append(in.Sites, *s.sites[name])
	}
	s.view = Build(s.settings, in, s.now)
	v, out := s.view, &strings.Builder{}
	fmt.Fprintf(out, "active %d, waiting %d, admitted in the last minute %d; %d slots, %d of them for new visitors\n",
		v.Active, v.Waiting, v.AdmittedLast60s, v.Slots, v.SlotsNew)
	for _, b := range v.Buckets {
		fmt.Fprintf(out, "bucket %s: %d waiting, %d reserved\n", hour(time.Unix(b.Start, 0)), b.Waiting, b.Reserved)
	}
	for _, p := range v.Sites {
		fmt.Fprintf(out, "site %s: %d for those who wait, %d for new visitors\n", p.Name, p.Reserved, p.New)
	}
	fmt.Fprintf(out, "this node: %d for arrivals before %s, %d for %s\n", v.AllowWaiting, hour(v.Cursor), v.AllowNew, s.rest())
	return out.String()
}

// rest says who competes for the places that are nobody's.
func (s *scenario) rest() string {
	if s.view.OpenToNew {
		return "everyone else"
	}
	return "arrivals before " + hour(s.view.Edge)
}

func hour(t time.Time) string {
	if t.Unix() <= 0 {
		return "never"
	}
	return t.UTC().Format("15:04:05")
}

func (s *scenario) visitor(args map[string]string) string {
	now := s.now
	if at := args["at"]; at != "" {
		now = s.time(at)
	}
	vis := Visitor{Arrival: s.time(args["arrived"]), LastPoll: s.time(args["polled"]), Refresh: s.duration(args["refresh"]),
		AcceptedAt: s.time(args["accepted"]), LeaseEnd: s.time(args["lease"])}
	d := s.view.Decide(vis, now)
	out := d.Action.String()
	if d.New {
		out += ", as a new visitor"
	}
	if d.Action == Wait || d.Action == TooEarly {
		arrival := vis.Arrival
		if d.New {
			arrival = now
		}
		e, _ := s.view.Estimate(arrival, Shown{})
		out += fmt.Sprintf("; %d ahead", e.Ahead)
		if e.Known {
			out += fmt.Sprintf(", %d min", e.Minutes)
		}
	}
	return out + "\n"
}
