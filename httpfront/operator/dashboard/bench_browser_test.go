package dashboard

import (
	"flag"
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
	"github.com/chromedp/chromedp"

	"github.com/ropeline/ropeline/httpfront/browsertest"
)

var benchFor = flag.Duration("dashboard-bench", 0, "how long TestBrowserBench looks at each view; 0: it is skipped")

// measuring notes the time between frames, and tasks that hold up the page.
const measuring = `
self.times = []; self.longs = []; self.scrolling = 0
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
	new PerformanceObserver(list => longs.push(...list.getEntries().map(e => e.duration))).observe({type: 'longtask'})
}`

// TestBrowserBench prints how smoothly the page shows 200 rooms on 12 nodes of which
// every one changes every second, and what it takes of memory. It judges nothing.
func TestBrowserBench(t *testing.T) {
	if *benchFor == 0 {
		t.Skip("it takes minutes: make dashboard-bench")
	}
	mesh := wellAndBusy()
	mesh.moving = true
	s, b := sitDown(t, mesh)
	b.Before(measuring)
	b.Do(browsertest.Call(performance.Enable, performance.EnableParams{}), chromedp.Navigate("about:blank"))
	_, _, blank := b.memory()
	fmt.Printf("%-18s %8s %7s %7s %7s %7s %7s %7s %5s %6s\n", "view", "frames/s", "p50 ms", "p95 ms", "p99 ms", "max ms", ">17 ms", ">33 ms", "long", "busy")
	for _, v := range []struct {
		name, hash string
		scrolling  int
	}{{"rooms", "", 0}, {"rooms, scrolling", "", 7}, {"room", "#/rooms/" + mesh.snap.Rooms[0].ID, 0}, {"mesh", "#/mesh", 0}, {"nodes", "#/nodes", 0}} {
		b.open(s, v.hash)
		b.Awaits("document.querySelector('#main').innerText.length > 100")
		time.Sleep(3 * time.Second) // for the page to be loaded and drawn
		b.Run(fmt.Sprintf("times.length = longs.length = 0; scrolling = %d", v.scrolling))
		before, begun := b.metric("TaskDuration"), time.Now()
		time.Sleep(*benchFor)
		b.printFrames(v.name, (b.metric("TaskDuration")-before)/time.Since(begun).Seconds())
		if v.name == "rooms, scrolling" || v.name == "room" {
			heap, page, process := b.memory()
			fmt.Printf("  after %-16s %.1f MiB of JavaScript, %.1f MiB of page, %.1f MiB of process (an empty page: %.1f MiB), %.0f elements\n",
				v.name+":", heap, page, process, blank, b.metric("Nodes"))
		}
		b.wantNothingWrong()
	}
}

// printFrames prints the times between frames as the page sees them, which are a little
// off those in which the screen is drawn, tasks of more than 50 ms, and which part of the
// time the main thread of the page works.
func (b *tab) printFrames(view string, busy float64) {
	b.T.Helper()
	times, longs := browsertest.See[[]float64](b.Tab, "times"), browsertest.See[[]float64](b.Tab, "longs")
	slices.Sort(times)
	at := func(part float64) float64 { return times[int(part*float64(len(times)-1))] }
	over := func(ms float64) float64 {
		i, _ := slices.BinarySearch(times, ms)
		return 100 * float64(len(times)-i) / float64(len(times))
	}
	sum := 0.0
	for _, ms := range times {
		sum += ms
	}
	fmt.Printf("%-18s %8.1f %7.1f %7.1f %7.1f %7.1f %6.1f%% %6.1f%% %5d %5.1f%%\n", view, 1000*float64(len(times))/sum,
		at(0.5), at(0.95), at(0.99), at(1), over(17), over(33), len(longs), 100*busy)
}

const mib = 1 << 20

// memory returns what a page takes, in MiB: JavaScript in use after a collection, the page by the browser's own account
// (JavaScript, elements, canvases), and what is private to the process of the page; 0 where that cannot be told.
func (b *tab) memory() (heap, page, process float64) {
	b.T.Helper()
	b.Do(browsertest.Call(heapprofiler.CollectGarbage, cdp.Empty{}), browsertest.Call(heapprofiler.CollectGarbage, cdp.Empty{}))
	page = browsertest.See[float64](b.Tab, "crossOriginIsolated ? performance.measureUserAgentSpecificMemory().then(m => m.bytes) : 0")
	return b.metric("JSHeapUsedSize") / mib, page / mib, rendererMemory() / mib
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
