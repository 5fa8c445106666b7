package rate

import (
	"encoding/json"
	"errors"
	"testing"
	"time"
)

// TestResultJSON holds the names and units that programs read.
func TestResultJSON(t *testing.T) {
	ta := newTally()
	ta.due, ta.sent, ta.inTime = 7, 6, 4
	for _, us := range []int64{100, 200, 300, 400_000} {
		ta.answer(200, us*1000)
	}
	ta.answer(503, 700)
	ta.fail(ErrReset, errors.New("connection reset by peer"))
	ta.fail(ErrUnsent, nil)
	ta.late.add(5400)
	r := ta.result(3.5, 2*time.Second)
	r.share(spent{wall: 2 * time.Second, thread: 1900 * time.Millisecond, waited: 10 * time.Millisecond})
	got, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"model":"open","rate_wanted":3.5,"seconds":2,"due":7,"sent":6,"answered":5,` +
		`"status":{"200":4,"503":1},"errors":{"reset":1,"unsent":1},"rate":2,` +
		`"latency_us":{"p50":200,"p90":400000,"p99":400000,"p999":400000,"max":400000},` +
		`"cpu_share":0.95,"cpu_waited":0.005,` +
		`"late_us":{"p99":5,"max":5.4},` +
		`"last_error":"connection reset by peer"}`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	got, err = json.Marshal(newTally().result(0, time.Second))
	if err != nil {
		t.Fatal(err)
	}
	const none = `{"model":"closed","rate_wanted":0,"seconds":1,"due":0,"sent":0,"answered":0,"status":{},"errors":{},"rate":0,` +
		`"latency_us":{"p50":0,"p90":0,"p99":0,"p999":0,"max":0},` +
		`"cpu_share":0,"cpu_waited":0,"late_us":{"p99":0,"max":0}}`
	if string(got) != none {
		t.Errorf("got\n%s\nwant\n%s", got, none)
	}
}

func TestFiguresBeyondTheirRange(t *testing.T) {
	f := newFigures()
	f.add(-5)
	f.add(3)
	if got := f.latency(); got.Max != 0 || got.P99 != 0 {
		t.Errorf("got %+v of nothing", got)
	}
	f.add(int64(2 * time.Minute))
	if got := f.latency(); got.Max != 120e6 || got.P999 < 59.9e6 || got.P999 > 60.1e6 {
		t.Errorf("got %+v, want two minutes, and one as far as the histogram goes", got)
	}
}
