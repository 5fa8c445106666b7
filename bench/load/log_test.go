package load

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/ropeline/ropeline/bench/accesslog"
)

const realLog = "../testdata/semicomplete-2015-05.access.log.gz"

func readReal() (*Log, error) {
	f, err := os.Open(realLog)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadLog(f)
}

var readRealOnce = sync.OnceValues(readReal) // which takes a second or two with the race detector

// openReal returns the real log, which tests share and do not change.
func openReal(t *testing.T) *Log {
	t.Helper()
	log, err := readRealOnce()
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func TestReadRealLog(t *testing.T) {
	log := openReal(t)
	if log.Requests+log.Skipped+log.Malformed != 10_000 || log.Malformed != 0 || len(log.Clients) < 1750 {
		t.Errorf("got %d requests, %d skipped, %d malformed of %d clients; want 10000 lines of 1753 clients",
			log.Requests, log.Skipped, log.Malformed, len(log.Clients))
	}
	if log.Span < 80*time.Hour || log.Span > 96*time.Hour {
		t.Errorf("got a span of %v, want four days", log.Span)
	}
	var last time.Duration
	total := 0
	for _, c := range log.Clients {
		if c.Requests[0].At < last {
			t.Fatalf("client %s comes before the one ahead of it", c.Address)
		}
		last = c.Requests[0].At
		total += len(c.Requests)
		if !slices.IsSortedFunc(c.Requests, func(a, b LogRequest) int { return int(a.At - b.At) }) {
			t.Errorf("requests of %s are not in order of time", c.Address)
		}
	}
	if total != log.Requests {
		t.Errorf("clients hold %d requests, want %d", total, log.Requests)
	}
}

func TestReadLogPlainIsTheSame(t *testing.T) {
	f, err := os.Open(realLog)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zr, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var text, zipped bytes.Buffer
	zw := gzip.NewWriter(&zipped)
	if _, err := io.CopyN(io.MultiWriter(&text, zw), zr, 200<<10); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	plain, err := ReadLog(&text)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ReadLog(&zipped); err != nil || !reflect.DeepEqual(plain, got) || plain.Requests < 500 {
		t.Errorf("of %d requests, the compressed log differs from the plain one, %v", plain.Requests, err)
	}
}

func TestLogFirst(t *testing.T) {
	whole := openReal(t)
	part := whole.First(400)
	if len(part.Clients) != 400 {
		t.Fatalf("got %d clients, want 400", len(part.Clients))
	}
	end := whole.Clients[400].Requests[0].At
	n := 0
	for i, c := range part.Clients {
		n += len(c.Requests)
		for j, r := range c.Requests {
			if r.At > end || r != whole.Clients[i].Requests[j] {
				t.Fatalf("client %d, request %d: %+v is not from before %v", i, j, r, end)
			}
		}
		if rest := whole.Clients[i].Requests[len(c.Requests):]; len(rest) > 0 && rest[0].At < end {
			t.Errorf("client %d lost a request at %v", i, rest[0].At)
		}
	}
	if n != part.Requests || part.Span > end {
		t.Errorf("got %d requests in %v, counted %d until %v", part.Requests, part.Span, n, end)
	}
	if whole.First(1<<30) != whole {
		t.Error("all clients are not the whole log")
	}
	if none := whole.First(0); len(none.Clients) != 0 || none.Requests != 0 {
		t.Errorf("no clients have %d requests", none.Requests)
	}
}

func line(address string, second int) string {
	return fmt.Sprintf("%s - - [17/May/2015:10:05:%02d +0000] \"GET /%s HTTP/1.1\" 200 5\n", address, second, address)
}

func TestReadLogCountsMalformedLines(t *testing.T) {
	long := strings.Repeat("x", 3*accesslog.MaxLine) + "\n"
	text := "\n" + line("b", 20) + "rubbish\r\n" + long + line("a", 10) + strings.TrimSuffix(line("b", 30), "\n")
	log, err := ReadLog(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if log.Malformed != 2 || log.FirstMalformed == nil || !strings.HasPrefix(log.FirstMalformed.Error(), "line 3: ") {
		t.Errorf("got %d malformed, first %v, want 2 from line 3 on", log.Malformed, log.FirstMalformed)
	}
	if log.Requests != 3 || len(log.Clients) != 2 || log.Clients[0].Address != "a" || log.Span != 20*time.Second {
		t.Errorf("got %+v, want a at 10 s, then b at 20 s and 30 s", log)
	}
}

func TestReadLogErrors(t *testing.T) {
	var cut bytes.Buffer
	zw := gzip.NewWriter(&cut)
	for i := range 60 {
		_, _ = zw.Write([]byte(line(fmt.Sprint("c", i*7919), i)))
	}
	_ = zw.Close()
	cut.Truncate(cut.Len() - 20)
	broken := errors.New("disk on fire")
	for _, tc := range []struct {
		name   string
		source io.Reader
		want   string
	}{
		{"empty", strings.NewReader(""), "empty"},
		{"no log", strings.NewReader("a\nb\n"), "line 1: "},
		{"endless line", strings.NewReader(strings.Repeat("a", accesslog.MaxLine)), "line 1: "},
		{"cut gzip", &cut, "unexpected EOF"},
		{"bad gzip", strings.NewReader("\x1f\x8bnot"), "gzip"},
		{"source fails", io.MultiReader(strings.NewReader(line("a", 1)), iotest.ErrReader(broken)), "line 2: disk on fire"},
		{"source fails in a long line", io.MultiReader(strings.NewReader(strings.Repeat("a", 2*accesslog.MaxLine)), iotest.ErrReader(broken)), "line 1: disk on fire"},
	} {
		if _, err := ReadLog(tc.source); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want an error with %q", tc.name, err, tc.want)
		}
	}
}

// FuzzReadLog holds that whatever a file says, what would be sent is a proper
// request and nothing else.
func FuzzReadLog(f *testing.F) {
	f.Add([]byte(line("a", 1) + line("b", 2)))
	f.Add([]byte(`1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET /a?b HTTP/1.1" 200 5 "http://x/" "Browser 1.0"`))
	f.Add([]byte(`h - a [b] c [17/May/2015:12:05:03 +0200] "GET /\"\xc3\\ \t#x HTTP/1.1" 200 - "\"" "\x7f"`))
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, data []byte) {
		log, err := ReadLog(bytes.NewReader(data))
		if err != nil {
			return
		}
		total := 0
		for _, c := range log.Clients {
			if len(c.Requests) == 0 || c.Address == "" {
				t.Fatalf("empty client %+v", c)
			}
			for _, r := range c.Requests {
				total++
				if r.At < 0 || r.At > log.Span {
					t.Fatalf("request at %v of %v", r.At, log.Span)
				}
				if !strings.HasPrefix(r.Path, "/") || accesslog.CleanPath(r.Path) != r.Path || strings.ContainsFunc(r.Agent, isControl) {
					t.Fatalf("unsafe request %+v", r)
				}
			}
		}
		if total != log.Requests {
			t.Fatalf("%d requests, counted %d", log.Requests, total)
		}
	})
}

func BenchmarkReadLog(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := readReal(); err != nil {
			b.Fatal(err)
		}
	}
}
