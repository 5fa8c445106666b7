package dashboard

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/performance"

	"github.com/ropeline/ropeline/httpfront/browsertest"
)

// measuring notes the time between frames.
const measuring = `
self.times = []; self.scrolling = 0
{
	let last = 0
	const frame = () => {
		const t = performance.now()
		if (last) times.push(t - last)
		last = t
		if (scrolling) {
			scrollBy(0, scrolling)
			const most = document.documentElement.scrollHeight - innerHeight
			if (scrollY <= 0 || scrollY >= most - 1) scrolling = -scrolling
		}
		requestAnimationFrame(frame)
	}
	requestAnimationFrame(frame)
}`

// BenchmarkViews tells how smoothly the page shows 200 rooms on 12 nodes of which every one changes every second, and what it
// takes of memory. One operation is a second in which a view is looked at.
func BenchmarkViews(b *testing.B) {
	mesh := wellAndBusy(200)
	mesh.moving = true
	s, tab := sitDown(b, mesh)
	tab.Before(measuring)
	tab.Do(browsertest.Call(performance.Enable, performance.EnableParams{}))
	for _, v := range []struct {
		name, hash string
		scrolling  int
	}{{"rooms", "", 0}, {"rooms, scrolling", "", 7}, {"a room", "#/rooms/" + mesh.snap.Rooms[0].ID, 0}, {"mesh", "#/mesh", 0}, {"nodes", "#/nodes", 0}} {
		b.Run("view="+v.name, func(b *testing.B) {
			tab.open(s, v.hash)
			tab.Awaits("document.querySelector('#main').innerText.length > 100")
			time.Sleep(3 * time.Second) // for the page to be loaded and drawn
			tab.Run(fmt.Sprintf("times.length = 0; scrolling = %d", v.scrolling))
			before, begun := tab.metric("TaskDuration"), time.Now()
			for b.Loop() {
				time.Sleep(time.Second)
			}
			busy := (tab.metric("TaskDuration") - before) / time.Since(begun).Seconds()
			tab.report(b, busy)
			tab.wantNothingWrong()
		})
	}
}

// report tells of the times between frames as the page sees them, which are a little off those in which the screen is
// drawn, of which part of the time the main thread of the page works, and of memory.
func (b *tab) report(to *testing.B, busy float64) {
	times := browsertest.See[[]float64](b.Tab, "times")
	slices.Sort(times)
	at := func(part float64) float64 { return 1e6 * times[int(part*float64(len(times)-1))] }
	sum := 0.0
	for _, ms := range times {
		sum += ms
	}
	over, _ := slices.BinarySearch(times, 33)
	to.ReportMetric(1000*float64(len(times))/sum, "frames/s")
	to.ReportMetric(at(0.5), "p50-ns")
	to.ReportMetric(at(0.95), "p95-ns")
	to.ReportMetric(at(1), "longest-ns")
	to.ReportMetric(100*float64(len(times)-over)/float64(len(times)), "over-33ms-%")
	to.ReportMetric(100*busy, "busy-%")
	script, process := b.memory()
	to.ReportMetric(script, "script-B")
	if process > 0 {
		to.ReportMetric(process, "process-B")
	}
	to.ReportMetric(0, "ns/op")
}

// memory returns what a page takes, in bytes: JavaScript in use after a collection, and what is private to the process of the
// page; 0 where that cannot be told.
func (b *tab) memory() (script, process float64) {
	b.T.Helper()
	b.Do(browsertest.Call(heapprofiler.CollectGarbage, cdp.Empty{}), browsertest.Call(heapprofiler.CollectGarbage, cdp.Empty{}))
	return b.metric("JSHeapUsedSize"), rendererMemory()
}

// metric returns one of the browser's own figures.
func (b *tab) metric(name string) float64 {
	b.T.Helper()
	for _, m := range browsertest.Ask(b.Tab, performance.GetMetrics, cdp.Empty{}).Metrics {
		if m.Name == name {
			return m.Value
		}
	}
	b.T.Fatalf("the browser has no figure %s", name)
	return 0
}

// rendererMemory returns how many bytes the largest renderer among the processes that
// this one started has for itself, 0 if that is not known (elsewhere than on Linux).
func rendererMemory() (most float64) {
	parents := map[string]string{}
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range all {
		if b, err := os.ReadFile(stat); err == nil {
			after := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
			parents[filepath.Base(filepath.Dir(stat))] = after[1]
		}
	}
	ours := strconv.Itoa(os.Getpid())
	for pid := range parents {
		up := pid
		for up != "" && up != ours {
			up = parents[up]
		}
		cmd, _ := os.ReadFile("/proc/" + pid + "/cmdline")
		if up != ours || !strings.Contains(string(cmd), "--type=renderer") {
			continue
		}
		maps, _ := os.ReadFile("/proc/" + pid + "/smaps_rollup")
		private := 0.0
		for line := range strings.Lines(string(maps)) {
			if f := strings.Fields(line); strings.HasPrefix(line, "Private_") && len(f) > 1 {
				kib, _ := strconv.ParseFloat(f[1], 64)
				private += kib * 1024
			}
		}
		most = max(most, private)
	}
	return most
}
