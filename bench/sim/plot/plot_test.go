package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/sim"
)

// made returns a result of half an hour in which a crowd comes, waits longer
// and longer, and something breaks.
func made(method string) *sim.Result {
	rng := rand.New(rand.NewPCG(1, 2))
	r := &sim.Result{Seed: 7, Sites: 5, Nodes: 3, Policy: "even", Method: method}
	r.Visitors = 10_000
	waiting := 0
	for i := range 300 {
		come := 0
		if i < 180 {
			come = 50 + rng.IntN(12)
		}
		active := min(205, i*20) - rng.IntN(12)
		waiting = max(0, waiting+come-33)
		r.Series = append(r.Series, sim.Point{
			At: float64(i) * 10, Arrivals: come, Active: max(active, 0), Seen: active, Waiting: waiting, Limit: 200, Minute: 198 + rng.IntN(5), PerMin: 2_000_000,
		})
	}
	r.Waits = sim.Waits{Step: 10, R2: 0.991, Correlation: 0.995}
	for minute := range 30 {
		counts := make([]int, 130)
		for range 330 {
			at := float64(minute)*3 + rng.NormFloat64()*2
			if method == "random" {
				at = rng.ExpFloat64() * 30
			}
			counts[min(max(int(at), 0), 129)]++
		}
		r.Waits.Rows = append(r.Waits.Rows, sim.WaitRow{Visitors: 330, Counts: counts})
	}
	r.Faults = []sim.Fault{{Kind: sim.Partition, Site: 2, From: 10 * time.Minute, For: 12 * time.Minute}}
	return r
}

func drawn(t *testing.T, r *sim.Result) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	names, err := Write(dir, r)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string][]byte)
	for _, name := range names {
		if files[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if there, _ := os.ReadDir(dir); len(there) != len(names) {
		t.Errorf("wrote %d files and told of %v", len(there), names)
	}
	return files
}

func TestWriteDrawsTheSameAgain(t *testing.T) {
	first, second := drawn(t, made("fifo")), drawn(t, made("fifo"))
	want := []string{"course-fifo.svg", "waits-fifo.svg"}
	for _, name := range want {
		if len(first[name]) == 0 || !bytes.Equal(first[name], second[name]) {
			t.Errorf("%s: %d and %d bytes, want the same ones", name, len(first[name]), len(second[name]))
		}
	}
	if len(first) != len(want) {
		t.Errorf("got %d files, want %v", len(first), want)
	}
	other := made("fifo")
	other.Series[100].Active += 60
	other.Waits.Rows[3].Counts[100] += 200
	for name, data := range drawn(t, other) {
		if bytes.Equal(data, first[name]) {
			t.Errorf("%s does not show that the result is another one", name)
		}
	}
}

func TestPicturesAreWhole(t *testing.T) {
	for name, data := range drawn(t, made("random")) {
		texts := svgTexts(t, data)
		for _, want := range []string{"method random, policy even, 5 sites of 3 nodes, 10\u00a0000 visitors, seed 7"} {
			if !slices.Contains(texts, want) {
				t.Errorf("%s lacks %q; it has %q", name, want, texts)
			}
		}
	}
}

// svgTexts returns the texts of a drawing, which must be proper XML.
func svgTexts(t *testing.T, data []byte) []string {
	t.Helper()
	var texts []string
	for d, inText := xml.NewDecoder(bytes.NewReader(data)), false; ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			inText = e.Name.Local == "text"
		case xml.CharData:
			if inText {
				texts = append(texts, string(e))
			}
		case xml.EndElement:
			inText = false
		}
	}
}

func TestAxesHaveUnits(t *testing.T) {
	files := drawn(t, made("fifo"))
	for name, want := range map[string][]string{
		"course-fifo.svg": {"time since the start [minutes]", "visitors per minute", "active visitors", "waiting visitors", "fault", "limit", "limit: 2\u00a0000\u00a0000", "50"},
		"waits-fifo.svg":  {"time of arrival [minutes]", "wait [minutes]", "visitors (at most 285)", "wait over arrival: R² = 0.991, correlation = 0.995", "30"},
	} {
		texts := svgTexts(t, files[name])
		for _, w := range want {
			if !slices.Contains(texts, w) {
				t.Errorf("%s lacks %q; it has %q", name, w, texts)
			}
		}
	}
}

// A run of which there is nothing to show is drawn all the same.
func TestPicturesOfLittle(t *testing.T) {
	for name, r := range map[string]*sim.Result{
		"nothing":     {},
		"one point":   {Series: []sim.Point{{At: 10}}},
		"nobody came": {Series: make([]sim.Point, 3), Waits: sim.Waits{Step: 10, Rows: make([]sim.WaitRow, 2)}},
		"one visitor": {Waits: sim.Waits{Step: 10, Rows: []sim.WaitRow{{Visitors: 1, Counts: []int{1}}}}},
	} {
		if files := drawn(t, r); len(files) == 0 {
			t.Errorf("%s: no picture", name)
		}
	}
	if _, err := Write(filepath.Join(t.TempDir(), "none"), made("fifo")); err == nil {
		t.Error("wrote into a directory that is not there")
	}
}

func TestLongRunsAreThinned(t *testing.T) {
	r := made("fifo")
	r.Series = make([]sim.Point, 100_000)
	for i := range r.Series {
		r.Series[i] = sim.Point{At: float64(i) * 10, Active: 10}
	}
	r.Series[77_777].Active = 99
	pts := thinned(r.Series)
	peak := slices.MaxFunc(pts, func(a, b sim.Point) int { return a.Active - b.Active })
	if len(pts) > mostPoints || peak.Active != 99 {
		t.Errorf("got %d points with a peak of %d, want at most %d and 99", len(pts), peak.Active, mostPoints)
	}
	r.Waits.Rows = make([]sim.WaitRow, 10_000)
	r.Waits.Rows[9_999] = sim.WaitRow{Visitors: 7, Counts: append(make([]int, 9_999), 7)}
	c := newCells(r.Waits)
	if c.columns > mostColumns || c.rows > mostRows || c.counts[c.columns-1][c.rows-1] != 7 {
		t.Errorf("got %d by %d cells, the last with %v; want at most %d by %d, and 7", c.columns, c.rows, c.counts[c.columns-1][c.rows-1], mostColumns, mostRows)
	}
	if right := c.width * float64(c.columns); math.Abs(right-10_000.0/60) > 5 {
		t.Errorf("the last column ends at %v hours", right)
	}
}
