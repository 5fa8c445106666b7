package accesslog

import (
	"bytes"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	bench "github.com/ropeline/ropeline/bench/accesslog"
)

func someEntry() *Entry {
	return &Entry{
		Addr: netip.MustParseAddr("203.0.113.7"), Time: time.Date(2026, 3, 1, 13, 0, 0, 0, time.FixedZone("CET", 3600)),
		Method: []byte("GET"), Target: []byte("/a?b"), Protocol: []byte("HTTP/1.1"), Status: 200, Bytes: 512,
		Agent: []byte("Browser/1.0"), Room: "shop", Decision: "queued", Wait: 12500 * time.Millisecond,
	}
}

func TestLine(t *testing.T) {
	for want, change := range map[string]func(*Entry){
		`203.0.113.7 - - [01/Mar/2026:12:00:00 +0000] "GET /a?b HTTP/1.1" 200 512 "-" "Browser/1.0" "shop" "queued" 12.500`: func(*Entry) {},
		`- - - [01/Mar/2026:12:00:00 +0000] "- - -" 000 - "-" "-" "-" "-" -`: func(e *Entry) {
			*e = Entry{Time: e.Time, Wait: -1}
		},
		`fe80::1 - - [01/Mar/2026:12:00:00 +0000] "GET /a?b HTTP/1.1" 200 512 "-" "Browser/1.0" "shop" "queued" 0.000`: func(e *Entry) {
			e.Addr, e.Wait = netip.MustParseAddr("fe80::1%a b"), 0
		},
		`203.0.113.7 - - [01/Mar/2026:12:00:00 +0000] "GET /a?b HTTP/1.1" 404 - "http://\"\x0d\x0a\xc3\xa4" "\\x41\x1b[2J" "s\"" "queued" 12.500`: func(e *Entry) {
			e.Addr, e.Status, e.Bytes = netip.MustParseAddr("::ffff:203.0.113.7"), 404, 0
			e.Referer, e.Agent, e.Room = []byte("http://\"\r\nä"), []byte("\\x41\x1b[2J"), `s"`
		},
	} {
		e := someEntry()
		change(e)
		equal(t, "line", string(AppendLine(nil, e)), want+"\n")
	}
}

// TestLongestLine: whatever the lengths, a line is no longer than MaxLine.
func TestLongestLine(t *testing.T) {
	long := bytes.Repeat([]byte{0xff}, 100<<10)
	e := &Entry{
		Addr: netip.MustParseAddr("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), Time: time.Unix(1<<40, 0), Method: long, Target: long, Protocol: long,
		Status: 999, Bytes: 1<<63 - 1, Referer: long, Agent: long, Room: string(long), Decision: string(long), Wait: 1<<63 - 1,
	}
	if n := len(AppendLine(nil, e)); n > MaxLine || n < MaxLine-200 || MaxLine > bench.MaxLine {
		t.Errorf("a line of %d bytes, MaxLine is %d, and readers take lines of %d", n, MaxLine, bench.MaxLine)
	}
}

// aField is a text without blanks, or one in quotes or brackets.
const aField = `("(?:\\.|[^"\\])*"|\[[^\]]*\]|[^ "\[]*)`

var fields = regexp.MustCompile("^" + strings.Repeat(aField+" ", 11) + aField + "$")

// fieldsOf splits a line as any reader would: at blanks outside of quotes and brackets. It
// unescapes nothing. What is no line has no fields.
func fieldsOf(line string) []string {
	if all := fields.FindStringSubmatch(line); all != nil {
		return all[1:]
	}
	return nil
}

func FuzzLine(f *testing.F) {
	f.Add("GET", "/", "HTTP/1.1", "http://a/", "Browser", "shop", "queued")
	f.Add("GET", "/", "HTTP/1.1", "", strings.Repeat("\xd2", maxAgent+1), "", "")
	f.Add("GET", "/\" 200 1 \"-\" \"x\"\n1.2.3.4 - - [", "HTTP/1.1", "\\", "\\\"", "\" \"", "\\\\\"")
	f.Fuzz(func(t *testing.T, method, target, protocol, referer, agent, room, decision string) {
		e := someEntry()
		e.Method, e.Target, e.Protocol = []byte(method), []byte(target), []byte(protocol)
		e.Referer, e.Agent, e.Room, e.Decision = []byte(referer), []byte(agent), room, decision
		line := string(AppendLine([]byte("before\n"), e))
		line, kept := strings.CutPrefix(line, "before\n")
		text, ended := strings.CutSuffix(line, "\n")
		if !kept || !ended || len(line) > MaxLine || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' }) {
			t.Fatalf("no line, or one with bytes that are to be escaped: %q", line)
		}
		fields := fieldsOf(text)
		if len(fields) != 12 || fields[0] != "203.0.113.7" || fields[5] != "200" || fields[6] != "512" || fields[11] != "12.500" {
			t.Fatalf("%d fields, and not at their places: %q", len(fields), fields)
		}
		readBack(t, text, e)
	})
}

// readBack holds what a reader of combined logs makes of a line against the request, as far
// as it reads such requests.
func readBack(t *testing.T, text string, e *Entry) {
	got, err := bench.Parse(text)
	plain := string(e.Method) == "GET" && bytes.HasPrefix(e.Target, []byte("/")) && len(e.Target) < 2000 &&
		bytes.HasPrefix(e.Protocol, []byte("HTTP/")) && !bytes.Contains(e.Protocol, []byte(" "))
	path := bench.CleanPath(string(e.Target))
	switch {
	case err != nil && plain:
		t.Errorf("%q is not read: %v", text, err)
	case err == nil && (got.Address != "203.0.113.7" || !got.At.Equal(e.Time) || plain && got.Path != path || got.Agent != "" && got.Agent != string(e.Agent[:min(len(e.Agent), maxAgent)])):
		t.Errorf("%q is read as %+v, want %s of %q", text, got, path, e.Agent)
	}
}
