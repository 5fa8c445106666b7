//go:build linux

package floods

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// TestTheBudgetIsTheDocumentedOne: each item is a line of the table of docs/operating.md, with its bound, what one costs, and
// what that comes to.
func TestTheBudgetIsTheDocumentedOne(t *testing.T) {
	text, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## What strangers can make a node hold\n")
	if !found {
		t.Fatal("docs/operating.md has no such section")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	want := map[string]string{}
	for _, k := range kinds() {
		for _, i := range k.items {
			want[i.name] = fmt.Sprintf("%s | %s | %s", thousands(i.most), size(i.each), size(i.all(i.most)))
		}
	}
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 5 || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| held") {
			continue
		}
		name := strings.TrimSpace(cells[0])
		if got := strings.TrimSpace(strings.Join(cells[2:], " | ")); got != want[name] {
			t.Errorf("%s: the page has %q, and the measurement goes by %q", name, got, want[name])
		}
		delete(want, name)
	}
	for name, figures := range want {
		t.Errorf("the page has no line for %s: | %s |", name, figures)
	}
}

// thousands writes a number as pages have it.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// size writes bytes as pages have them.
func size(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", (n+1<<19)>>20)
	case n >= 1<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

func TestGrown(t *testing.T) {
	steady, leaks := make([]float64, 300), make([]float64, 300)
	for i := range steady {
		garbage := 20 * float64(i%10)
		steady[i], leaks[i] = (1000+garbage)*(1<<20), (1000+garbage+float64(i))*(1<<20)
	}
	for _, c := range []struct {
		name    string
		samples []float64
		most    bool // it is within what is noise
	}{
		{"garbage comes and goes", steady, true},
		{"something is never given back", leaks, false},
		{"all is given back", []float64{3e9, 3e9, 2e9, 2e9, 1e9, 1e9}, true},
		{"a small node does something", []float64{9e6, 9e6, 9e6, 13e6, 13e6, 13e6}, true},
		{"too few to tell", []float64{1, 2}, true},
	} {
		if got := grown(c.samples); (got <= mostGrowth) != c.most {
			t.Errorf("%s: it has grown by %.3f", c.name, got)
		}
	}
	if got := grown([]float64{100 * slack, 100 * slack, 100 * slack, 300 * slack, 111 * slack, 111 * slack}); got != 0.1 {
		t.Errorf("by a tenth beyond slack: got %.3f", got)
	}
}

func TestMedianP99(t *testing.T) {
	windows := []seen{{p99: 3 * time.Millisecond}, {p99: 90 * time.Millisecond}, {p99: 2 * time.Millisecond}}
	if got := medianP99(windows); got != 3*time.Millisecond {
		t.Errorf("one window in which the machine stood still: got %v", got)
	}
}

func TestBudget(t *testing.T) {
	k := kind{items: []item{{"a", 10, 100}, {"b", 1, 7}}}
	for n, want := range map[int]int64{1: 107, 3: 307, 10: 1007, 500: 1007} {
		if got := k.budget(n); got != want {
			t.Errorf("of %d: got %d, want %d", n, got, want)
		}
	}
}

// TestFloodsSendWhatTheySay looks at some requests of each kind that sends some.
func TestFloodsSendWhatTheySay(t *testing.T) {
	for _, k := range kinds() {
		if (k.head == nil) == (k.open == nil) || len(k.items) == 0 {
			t.Errorf("%s: want either connections or requests, and what they are charged", k.name)
		}
		if k.head == nil {
			continue
		}
		seen := map[string]bool{}
		const some = 1000
		for i := range some {
			head := k.head(i)
			r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(head)))
			if err != nil || len(r.Cookies()) > 0 {
				t.Fatalf("%s: %v of %q", k.name, err, head)
			}
			seen[string(head)] = true
		}
		if different := len(seen); different != some && (k.name != "new-visitors" || different != 1) {
			t.Errorf("%s: %d of %d requests are different", k.name, different, some)
		}
	}
}

// TestTheLongHelloIsNearlyAsLongAsTheBound: a longer one is not answered, and a shorter one takes less.
func TestTheLongHelloIsNearlyAsLongAsTheBound(t *testing.T) {
	if n := len(longHello()); n < 15<<9 || n > 8<<10 {
		t.Errorf("it has %d bytes", n)
	}
}

// TestConnectionsAreKept has a flood of some connections to a server that ends each at once, and counts them.
func TestConnectionsAreKept(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out bytes.Buffer
	over := make(chan error)
	go func() {
		over <- Hold(ctx, Order{Kind: "operator-connections", Address: ln.Addr().String(), Conns: 3}, &out)
	}()
	if err := ln.(*net.TCPListener).SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	from := map[string]bool{}
	for ends := 0; ends < 20 || len(from) < 3; ends++ { // one may come back before another has come at all
		c, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		from[c.RemoteAddr().(*net.TCPAddr).IP.String()] = true
		c.Close()
	}
	stop()
	if err := <-over; err != nil {
		t.Error(err)
	}
	var last progress
	if err := json.Unmarshal(bytes.Split(out.Bytes(), []byte("\n"))[0], &last); err != nil || len(from) != 3 {
		t.Errorf("%v; they came from %v, want three addresses", err, from)
	}
}
