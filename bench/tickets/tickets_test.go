//go:build linux

package tickets

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/measurement"
)

// later answers nobody before it has been asked by so many.
type later struct {
	all  []*visitor
	want int
}

func (l *later) begin(v *visitor) {
	if l.all = append(l.all, v); len(l.all) == l.want {
		for _, v := range l.all {
			v.answered(true)
		}
	}
}

func TestWaitsCountFromWhenVisitorsWereDue(t *testing.T) {
	const lasts = 50 * time.Millisecond
	s, err := newLoad().drive(t.Context(), []*lane{{decider: &later{want: 50}}}, 1000, 0, lasts)
	if err != nil {
		t.Fatal(err)
	}
	if s.Came != 50 || s.Given != 50 || s.Refused != 0 {
		t.Errorf("%d came, %d given, %d refused; want 50, 50, 0", s.Came, s.Given, s.Refused)
	}
	// The last is due after 49 ms, and the first has waited for at least that long then.
	if s.P999 < 48.9 || s.P50 < 23.9 {
		t.Errorf("p99.9 %.1f ms, p50 %.1f ms; want at least 49 and 24", s.P999, s.P50)
	}
}

// TestWhoIsDueComes though the load is held up until its time is over: whom it left out would
// be those who wait longest.
func TestWhoIsDueComes(t *testing.T) {
	const lasts = 20 * time.Millisecond
	l, first := newLoad(), true
	s, err := l.drive(t.Context(), []*lane{{decider: deciderFunc(func(v *visitor) {
		v.answered(true)
		for start := l.clock(); first && l.clock()-start < int64(lasts); {
		}
		first = false
	})}}, 1000, 0, lasts)
	if err != nil {
		t.Fatal(err)
	}
	if s.Came != 20 || s.Given != 20 {
		t.Errorf("%d came, %d given; want 20, 20", s.Came, s.Given)
	}
	// The second is due after 1 ms, and is asked for when the 20 are over.
	if s.P999 < 18.9 {
		t.Errorf("p99.9 %.1f ms; want at least 19", s.P999)
	}
}

func TestNobodyLetsMoreComeThanAllowed(t *testing.T) {
	most, under := 0, 0
	s, err := newLoad().drive(t.Context(), []*lane{{decider: deciderFunc(func(v *visitor) {
		under++
		most = max(most, under)
		v.answered(true)
		under--
	})}}, 0, 8, 5*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if most != 1 || s.Came < 8 {
		t.Errorf("%d at once, %d in all", most, s.Came)
	}
}

type deciderFunc func(*visitor)

func (f deciderFunc) begin(v *visitor) { f(v) }

// TestSomeVisitorsOfAMesh has the program's own nodes answer, so that the target works when it
// is wanted. How fast they are is not looked at.
func TestSomeVisitorsOfAMesh(t *testing.T) {
	m, err := startMesh(t.Context(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.room.drive(t.Context(), m.lanes(), 500, 0, 100*time.Millisecond)
	if err != nil {
		t.Error(err)
	}
	if s.Came == 0 || s.Given+s.Refused != s.Came {
		t.Errorf("%d came, %d given, %d refused", s.Came, s.Given, s.Refused)
	}
	if err := m.stop(); err != nil {
		t.Error(err)
	}
}

func TestRatiosAreOfARound(t *testing.T) {
	s := func(n int64, cpu time.Duration, p99 float64) spell {
		return spell{Wanted: 1, Came: n, Given: n, Lasted: time.Second, CPU: cpu, P99: p99}
	}
	r := round{
		redisMost: s(100, 10*time.Microsecond, 0), redisHalf: s(50, 10*time.Microsecond, 2), saturated: s(400, 0, 0),
		most: s(300, 2*time.Microsecond, 9), atHalf: s(50, time.Microsecond, 0.5),
	}
	recorded := func() string {
		var file strings.Builder
		e := Entry()
		run := measurement.Run{Out: t.Output()}
		run.Begin(&e, &file)
		r.record(&run)
		if _, err := run.End(t.Context()); err != nil {
			t.Fatal(err)
		}
		return file.String()
	}
	for _, want := range []string{
		"/case=most 1 300 decisions/s 0 p50-sec 0.009 p99-sec 2e-06 cpu-sec/decision", "/of=rate 1 3 ratio", "/of=p99 1 0.25 ratio",
	} {
		if got := recorded(); !strings.Contains(got, want+"\n") {
			t.Errorf("it lacks %q:\n%s", want, got)
		}
	}
	delete(r, redisMost)
	delete(r, redisHalf)
	if got := recorded(); strings.Contains(got, "redis 1") || strings.Contains(got, "ratio\n") || !strings.Contains(got, "case=most") {
		t.Errorf("without Redis:\n%s", got)
	}
}

func TestAsk(t *testing.T) {
	for answer, fails := range map[string]bool{":17\r\n": false, ":0\r\n": true, "-ERR\r\n": true, ":1": true, "": true} {
		var out bytes.Buffer
		err := ask(&out, bufio.NewReader(strings.NewReader(answer)))
		if (err != nil) != fails {
			t.Errorf("answer %q: %v", answer, err)
		}
		if got, want := out.String(), "*2\r\n$4\r\nINCR\r\n$8\r\nvisitors\r\n"; got != want {
			t.Errorf("asked %q, want %q", got, want)
		}
	}
	if err := ask(failing{}, nil); err == nil {
		t.Error("a call that could not be written has no error")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
