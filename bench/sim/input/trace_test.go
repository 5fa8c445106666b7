package input

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

const testdata = "../../testdata/"

func openTrace(t testing.TB, name string) *Traffic {
	t.Helper()
	f, err := os.Open(testdata + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	traffic, err := ReadTrace(f, name)
	if err != nil {
		t.Fatal(err)
	}
	return traffic
}

func readText(text string) (*Traffic, error) { return ReadTrace(strings.NewReader(text), "t.csv") }

func TestReadRealCounts(t *testing.T) {
	traffic := openTrace(t, "worldcup98-0707.csv")
	if traffic.Span() != 6*time.Hour || traffic.Len() != 29_662_241 || len(traffic.spans) != 360 {
		t.Errorf("got %d requests in %v and %d spans; want 29662241 in 6h and 360", traffic.Len(), traffic.Span(), len(traffic.spans))
	}
	if s := traffic.spans[1]; s.from != time.Minute || s.length != time.Minute || s.visitors != 24_149 {
		t.Errorf("got %+v, want the 24149 of the second minute", s)
	}
}

func TestReadRealLog(t *testing.T) {
	traffic := openTrace(t, "semicomplete-2015-05.access.log.gz")
	if n := traffic.Len(); n < 1750 || n > 1753 || traffic.Skipped != nil {
		t.Errorf("got %d visitors, skipped %v; want each of some 1750 addresses once", n, traffic.Skipped)
	}
	if d := traffic.Span(); d < 80*time.Hour || d > 96*time.Hour {
		t.Errorf("got %v, want four days", d)
	}
}

// The first request in time counts, wherever in the file it stands.
func TestReadLogTakesFirstRequests(t *testing.T) {
	line := func(address, second, method string) string {
		return address + " - - [17/May/2015:10:05:" + second + ` +0000] "` + method + ` / HTTP/1.1" 200 5` + "\n"
	}
	traffic, err := readText(line("b", "30", "GET") + "rubbish\n" + line("a", "10", "GET") + line("c", "02", "OPTIONS") +
		line("b", "20", "GET") + line("b", "40", "GET") + line("d", "20", "GET"))
	if err != nil {
		t.Fatal(err)
	}
	want := []span{{0, time.Second, 1}, {10 * time.Second, time.Second, 2}}
	if len(traffic.spans) != 2 || traffic.spans[0] != want[0] || traffic.spans[1] != want[1] {
		t.Errorf("got %+v, want %+v", traffic.spans, want)
	}
	if traffic.SkippedLines != 1 || traffic.Skipped == nil || !strings.HasPrefix(traffic.Skipped.Error(), "t.csv:2:1: ") {
		t.Errorf("got %d skipped, first %v; want 1 at t.csv:2:1", traffic.SkippedLines, traffic.Skipped)
	}
}

func TestReadCounts(t *testing.T) {
	var zipped bytes.Buffer
	zw := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(zw, "\ufeffminute,requests\r\n1998-07-07 18:00,5\r\n1998-07-07T18:03:00Z,7")
	_ = zw.Close()
	traffic, err := ReadTrace(&zipped, "zipped")
	if err != nil {
		t.Fatal(err)
	}
	want := []span{{0, time.Minute, 5}, {3 * time.Minute, time.Minute, 7}}
	if len(traffic.spans) != 2 || traffic.spans[0] != want[0] || traffic.spans[1] != want[1] {
		t.Errorf("got %+v, want %+v: nobody comes in a minute that is missing", traffic.spans, want)
	}
}

func TestTraceErrors(t *testing.T) {
	const head = "minute,requests\n1998-07-07 18:00:00,5\n"
	for _, tc := range []struct{ text, want string }{
		{"", "t.csv: there is no request in it; a trace is either"},
		{"Minute;Requests\n", `t.csv:1:1: the first line must be "minute,requests"`},
		{"time,count\n1,2\n", "t.csv:1:1: not a line of an access log; a trace is either"},
		{"minute,requests\n", "t.csv: no minute has a request"},
		{head + "1998-07-07 18:01:00\n", "t.csv:3:1: 1 fields"},
		{head + "1998-07-07 18:01:00,1,2\n", "t.csv:3:23: 3 fields"},
		{head + "1998-07-07 18:01:00,-1\n", `t.csv:3:21: "-1" is not a number of requests: a whole number from 0 to 1000000000`},
		{head + "1998-07-07 18:01:00, 1\n", "t.csv:3:21: "},
		{head + "1998-07-07 18:01:00,9999999999\n", "t.csv:3:21: "},
		{head + "yesterday,1\n", `t.csv:3:1: "yesterday" is not a whole minute`},
		{head + "1998-07-07 18:01:30,1\n", "t.csv:3:1: "},
		{head + "1998-07-07 18:00:00,1\n", "does not come after"},
		{head + "1998-08-07 18:00:00,1\n", "more than 30 days"},
		{head + "1998-07-07 18:01:00,\"1\n", "t.csv:3:24: extraneous"},
		{head + "a\"b,1\n", "t.csv:3:2: bare"},
		{head + strings.Repeat("x", maxCounts), "larger than"},
		{"\x1f\x8bnot", "t.csv: gzip: "},
		{`h - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5` + "\n" + `i - - [17/Jul/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5`, "61 days"},
	} {
		if _, err := readText(tc.text); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%.60q: got %v, want an error with %q", tc.text, err, tc.want)
		}
	}
	broken := io.MultiReader(strings.NewReader(head), iotest.ErrReader(io.ErrUnexpectedEOF))
	if _, err := ReadTrace(broken, "t.csv"); err == nil || err.Error() != "t.csv: unexpected EOF" {
		t.Errorf("got %v, want the error of the source", err)
	}
}

// FuzzReadTrace holds that whatever a file says, what comes of it can be dealt
// out in order, and that errors name the file.
func FuzzReadTrace(f *testing.F) {
	f.Add([]byte("minute,requests\n1998-07-07 18:00:00,5\n1998-07-07 18:01:00,0\n"))
	f.Add([]byte(`h - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5`))
	f.Add([]byte("\xef\xbb\xbfminute,requests\r\n\"1998-07-07 18:00\",5"))
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, data []byte) {
		traffic, err := ReadTrace(bytes.NewReader(data), "name")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "name:") {
				t.Fatalf("%v does not name the file", err)
			}
			return
		}
		checkTraffic(t, traffic)
	})
}

func BenchmarkReadLog(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		openTrace(b, "semicomplete-2015-05.access.log.gz")
	}
}
