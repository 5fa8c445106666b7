package input

import (
	"bytes"
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

func TestReadCounts(t *testing.T) {
	traffic, err := readText("minute,requests\r\n1998-07-07 18:00:00,5\r\n1998-07-07 18:03:00,7")
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
		{"", "t.csv: no minute has a request"},
		{"Minute;Requests\n", `t.csv:1: "Minute;Requests": the first line must be "minute,requests"`},
		{"minute,requests\n", "t.csv: no minute has a request"},
		{head + "1998-07-07 18:01:00\n", `t.csv:3: "" is not a number of requests`},
		{head + "1998-07-07 18:01:00,1,2\n", `t.csv:3: "1,2" is not`},
		{head + "1998-07-07 18:01:00,-1\n", `t.csv:3: "-1" is not a number of requests: a whole number from 0 to 1000000000`},
		{head + "1998-07-07 18:01:00, 1\n", "t.csv:3: "},
		{head + "1998-07-07 18:01:00,9999999999\n", "t.csv:3: "},
		{head + "yesterday,1\n", `t.csv:3: "yesterday" is not a whole minute`},
		{head + "\n", `t.csv:3: "" is not a whole minute`},
		{head + "1998-07-07 18:01:30,1\n", "t.csv:3: "},
		{head + "1998-07-07 18:00:00,1\n", "does not come after"},
		{head + "1998-08-07 18:00:00,1\n", "more than 30 days"},
		{head + strings.Repeat("x", 1<<20), "t.csv:3: bufio.Scanner: token too long"},
	} {
		if _, err := readText(tc.text); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%.60q: got %v, want an error with %q", tc.text, err, tc.want)
		}
	}
	broken := io.MultiReader(strings.NewReader(head), iotest.ErrReader(io.ErrUnexpectedEOF))
	if _, err := ReadTrace(broken, "t.csv"); err == nil || err.Error() != "t.csv:3: unexpected EOF" {
		t.Errorf("got %v, want the error of the source", err)
	}
}

// FuzzReadTrace holds that whatever a file says, what comes of it can be dealt
// out in order, and that errors name the file.
func FuzzReadTrace(f *testing.F) {
	f.Add([]byte("minute,requests\n1998-07-07 18:00:00,5\n1998-07-07 18:01:00,0\n"))
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
