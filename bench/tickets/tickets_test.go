//go:build linux

package tickets

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
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
	s, err := newLoad().open(t.Context(), []*lane{{decider: &later{want: 50}}}, 1000, lasts)
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
	s, err := l.open(t.Context(), []*lane{{decider: deciderFunc(func(v *visitor) {
		v.answered(true)
		for start := l.clock(); first && l.clock()-start < int64(lasts); {
		}
		first = false
	})}}, 1000, lasts)
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
	s, err := newLoad().closed(t.Context(), []*lane{{decider: deciderFunc(func(v *visitor) {
		under++
		most = max(most, under)
		v.answered(true)
		under--
	})}}, 8, 5*time.Millisecond)
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
	for _, goroutines := range []bool{false, true} {
		s, err := m.room.open(t.Context(), m.lanes(goroutines), 500, 100*time.Millisecond)
		if err != nil {
			t.Error(err)
		}
		if s.Came == 0 || s.Given+s.Refused != s.Came {
			t.Errorf("goroutines %t: %d came, %d given, %d refused", goroutines, s.Came, s.Given, s.Refused)
		}
	}
	if err := m.stop(); err != nil {
		t.Error(err)
	}
}

func TestAskOfRedis(t *testing.T) {
	for _, c := range []struct {
		answer string
		fails  bool
	}{
		{":17\r\n", false}, {":0\r\n", true}, {"-ERR\r\n", true}, {":1", true}, {"", true},
	} {
		var out bytes.Buffer
		err := ask(&out, bufio.NewReader(strings.NewReader(c.answer)), incr)
		if (err != nil) != c.fails {
			t.Errorf("answer %q: %v", c.answer, err)
		}
		if got, want := out.String(), "*2\r\n$4\r\nINCR\r\n$8\r\nvisitors\r\n"; got != want {
			t.Errorf("asked %q, want %q", got, want)
		}
	}
	if err := ask(failing{}, nil, incr); err == nil {
		t.Error("a call that could not be written has no error")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestTableTellsMediansAndWhatIsMissing(t *testing.T) {
	one := func(rate int64) round {
		s := func(n int64, cpu time.Duration, p99 float64) spell {
			return spell{Came: n, Given: n, Lasted: time.Second, CPU: cpu, P99: p99}
		}
		return round{RedisMost: s(rate, 10*time.Microsecond, 0), RedisHalf: s(rate/2, 10*time.Microsecond, 2),
			Saturated: s(4*rate, 0, 0), Load: s(3*rate, time.Microsecond, 0), Most: s(3*rate, 2*time.Microsecond, 9), Half: s(rate, time.Microsecond, 1), AtHalf: s(rate/2, time.Microsecond, 0.5)}
	}
	all := results{Processors: 2, Rounds: []round{one(300), one(100), one(200)}}
	for _, want := range []string{"| 200 (100 to 300) |", "× 3.0 (3.0 to 3.0)", "× 4.0 (4.0", "× 5.0 (5.0", "× 10.0 (10.0", "× 0.50 (0.50", "× 0.25 (0.25", "2 processors", "`redis-benchmark` is missing"} {
		if text := all.table(); !strings.Contains(text, want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
	all.NoRedis = errNoRedis.Error()
	for i := range all.Rounds {
		all.Rounds[i].RedisMost, all.Rounds[i].RedisHalf = spell{}, spell{}
	}
	if text := all.table(); !strings.Contains(text, "not measured: redis-server is missing") || strings.Contains(text, "| Redis") {
		t.Errorf("the table does not say that there is no Redis:\n%s", text)
	}
}
