package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/golden"
	"github.com/ropeline/ropeline/bench/must"
	"github.com/ropeline/ropeline/httpfront/page/pagetest"
	"github.com/ropeline/ropeline/node/room"
)

// TestJSONOfEverySituation compares with files under testdata/json. After a wanted
// change, write them again with -update and look at the difference.
func TestJSONOfEverySituation(t *testing.T) {
	p := newPage(Config{})
	for name, in := range situations() {
		var got bytes.Buffer
		if err := json.Indent(&got, p.AppendJSON(nil, fill(p, in)), "", "  "); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		compare(t, "json/"+name+".json", got.Bytes())
	}
}

// compare holds a file under testdata that is called as a situation to what comes of it.
func compare(t *testing.T, name string, got []byte) {
	t.Helper()
	golden.File(t, filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")), string(got))
}

// TestJSONHasEveryVariable: with its type, in every situation, and nothing else.
func TestJSONHasEveryVariable(t *testing.T) {
	p := newPage(Config{})
	for name, in := range situations() {
		var got map[string]map[string]any
		if err := json.Unmarshal(p.AppendJSON(nil, fill(p, in)), &got); err != nil || len(got) != 1 {
			t.Fatalf("%s: got %d objects, %v", name, len(got), err)
		}
		fields := got["cfWaitingRoom"]
		for v := range Variables() {
			field, ok := fields[v.Name]
			delete(fields, v.Name)
			switch field := field.(type) {
			case bool:
				ok = v.Type == Bool
			case float64:
				ok = v.Type == Int && field == float64(int(field)) && field >= 0
			case string:
				ok = v.Type == Text || v.Type == HTML || v.Type == Time
			case nil:
				ok = ok && v.Type == Time
			}
			if ok == v.TemplateOnly {
				t.Errorf("%s: %s is %T %v, want a %s in the JSON unless it is for templates only (%v)", name, v.Name, field, field, v.Type, v.TemplateOnly)
			}
		}
		if len(fields) > 0 {
			t.Errorf("%s: these are not variables: %v", name, fields)
		}
	}
}

func TestRefreshIsRoundedUp(t *testing.T) {
	p := newPage(Config{})
	in := inputOf("random")
	for d, want := range map[time.Duration]int{
		16 * time.Second: 16, 16*time.Second + time.Millisecond: 17, time.Millisecond: 1, 0: 20,
	} {
		in.Verdict.Refresh = d
		equal(t, d.String(), fill(p, in).Refresh(), want)
	}
}

func TestProgress(t *testing.T) {
	p := newPage(Config{})
	for _, tt := range []struct {
		situation string
		change    func(*Input)
		want      int // -1: not known
	}{
		{"fifo", nil, 14}, // ten minutes of 71
		{"fifo", func(in *Input) { in.Verdict.Pass.Arrival = noon }, 0},
		{"fifo", func(in *Input) { in.Verdict.Pass.Arrival = noon.Add(time.Minute) }, 0}, // a clock is off
		{"fifo", func(in *Input) { in.Verdict.Estimate.Minutes = 0 }, 99},
		{"fifo without an estimate", nil, -1},
		{"fifo for more than a day", nil, -1},
		{"random", nil, -1},
		{"pre-queue that shuffles", nil, 49},
		{"pre-queue that shuffles", func(in *Input) { in.Now = noon.Add(time.Hour) }, 99},
		{"queue all", nil, -1},
		{"reject", nil, -1},
		{"reject in a pre-queue", nil, 49},
	} {
		in := inputOf(tt.situation)
		if tt.change != nil {
			tt.change(&in)
		}
		equal(t, tt.situation+": progress", fill(p, in).progress, tt.want)
	}
}

// TestProgressDoesNotGoDown while an estimate does not go up.
func TestProgressDoesNotGoDown(t *testing.T) {
	p := newPage(Config{})
	in := inputOf("fifo")
	last := 0
	for minute := range 90 {
		in.Now = noon.Add(time.Duration(minute) * time.Minute)
		if minute%3 != 0 { // a line that moves more slowly than was thought
			in.Verdict.Estimate.Minutes = max(1, in.Verdict.Estimate.Minutes-1)
		}
		got := fill(p, in).progress
		if got < last || got > 99 {
			t.Fatalf("minute %d: %d %% after %d %%", minute, got, last)
		}
		last = got
	}
	if last < 95 {
		t.Errorf("a minute before the end it is %d %%", last)
	}
}

func TestNegativePlacesAreNone(t *testing.T) {
	p := newPage(Config{})
	in := inputOf("fifo")
	in.Verdict.Estimate = room.Estimate{Position: -1, Ahead: -1}
	if s := fill(p, in); s.estimate.Position != 0 || s.estimate.Ahead != 0 {
		t.Errorf("got %+v", s.estimate)
	}
}

func TestTimesAreWrittenAsTheFormatSays(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		at := time.Unix(rnd.Int64N(253_402_300_800+62_167_219_200)-62_167_219_200, rnd.Int64N(1e9)).In(time.FixedZone("", rnd.IntN(80_000)-40_000))
		if got, want := string(appendTime(nil, at)), at.UTC().Format(timeFormat); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	if got := appendTime(nil, time.Time{}); len(got) > 0 {
		t.Errorf("no time is %q, want nothing", got)
	}
}

// TestDocsListTheVariables: docs/pages.md has the table that templates and JSON are
// made from.
func TestDocsListTheVariables(t *testing.T) {
	var table bytes.Buffer
	own := true
	for v := range Variables() {
		if v.Own != own {
			fmt.Fprint(&table, "\n| name | type | meaning |\n|---|---|---|\n")
			own = v.Own
		}
		only := ""
		if v.TemplateOnly {
			only = "; in templates only"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s%s |\n", v.Name, v.Type, v.Meaning, only)
	}
	golden.Part(t, "../../docs/pages.md", "<!-- variables -->\n", "<!-- end of variables -->\n", table.String()+"\n")
}

var noon = pagetest.Noon

func situations() map[string]Input {
	all := make(map[string]Input)
	for name, s := range pagetest.Situations() {
		all[name] = Input{Settings: s.Settings, Verdict: s.Verdict, Down: s.Down, Now: noon}
	}
	return all
}

// inputOf is one of them.
func inputOf(name string) Input { return situations()[name] }

func htmlOf(p *Page, in Input) string { return string(p.AppendHTML(nil, fill(p, in))) }

func newPage(cfg Config) *Page { return must.Do(New(cfg)) }

// fill is Fill into a new State.
func fill(p *Page, in Input) *State {
	var s State
	p.Fill(&s, in)
	return &s
}

// equal fails the test unless got is want.
func equal[T comparable](tb testing.TB, what string, got, want T) {
	tb.Helper()
	if got != want {
		tb.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}
