package sink

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// reader is the other end of a log: it may stop reading, and go away.
type reader struct {
	gone   bool
	had    bytes.Buffer
	longer chan struct{} // when not nil, each write waits for one
}

func (r *reader) Write(p []byte) (int, error) {
	if r.longer != nil {
		<-r.longer
	}
	if r.gone {
		return 0, errors.New("broken pipe")
	}
	return r.had.Write(p)
}

func started(r *reader, most int) *Sink {
	s := New(r, most, 0)
	go s.Run()
	return s
}

func TestLinesArriveInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r reader
		s := started(&r, 1<<20)
		want := ""
		for i := range 10_000 {
			line := fmt.Sprintf("line %d\n", i)
			fmt.Fprint(s, line)
			want += line
		}
		if !s.Close(time.Second) || r.had.String() != want || s.Dropped() != 0 {
			t.Errorf("%d bytes arrived and %d lines were dropped, want %d and none", r.had.Len(), s.Dropped(), len(want))
		}
		fmt.Fprintln(s, "late")
		if s.Dropped() != 1 || r.had.String() != want {
			t.Errorf("after the end: dropped %d, want 1", s.Dropped())
		}
	})
}

// TestAReaderThatStops has nobody wait for it: neither who writes, nor the end.
func TestAReaderThatStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := reader{longer: make(chan struct{})}
		s := started(&r, 100)
		var reported []uint64
		s.Report(func(n uint64) {
			reported = append(reported, n)
			fmt.Fprintf(s, "%d dropped\n", n)
		})
		write := func(n int) {
			for range n {
				fmt.Fprint(s, "123456789\n")
			}
		}
		write(1)
		synctest.Wait() // it is being written
		write(25)
		if got := s.Dropped(); got != 15 {
			t.Errorf("%d lines dropped, want 15: 10 fit", got)
		}
		r.longer <- struct{}{}
		synctest.Wait()
		r.longer <- struct{}{}
		synctest.Wait()
		if len(reported) != 1 || reported[0] != 15 {
			t.Errorf("reported %v, want 15 once", reported)
		}
		begun := time.Now()
		if s.Close(2*time.Second) || time.Since(begun) != 2*time.Second {
			t.Errorf("the end took %v, and all was written; want 2 s, and that it was not", time.Since(begun))
		}
		close(r.longer)
		if !s.Close(time.Second) || bytes.Count(r.had.Bytes(), []byte{'\n'}) != 12 {
			t.Errorf("read %q, want 11 lines and what was dropped", r.had.String())
		}
	})
}

// TestAReaderThatGoesAway and comes back, as one that is started again with the same pipe does.
func TestAReaderThatGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r reader
		s := started(&r, 1000)
		s.Report(func(n uint64) { fmt.Fprintf(s, "%d dropped\n", n) })
		for i, gone := range []bool{false, true, true, false} {
			r.gone = gone
			fmt.Fprintf(s, "line %d\n", i)
			synctest.Wait()
		}
		if want := "line 0\nline 3\n2 dropped\n"; !s.Close(time.Second) || r.had.String() != want || s.Dropped() != 2 {
			t.Errorf("read %q to the end, %d dropped, want %q and 2", r.had.String(), s.Dropped(), want)
		}
	})
}

func TestManyAtOnce(t *testing.T) {
	var r reader
	s := started(&r, 1<<16)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				fmt.Fprint(s, "one of many\n")
			}
		})
	}
	all.Wait()
	s.Close(10 * time.Second)
	if got := uint64(bytes.Count(r.had.Bytes(), []byte("one of many\n"))) + s.Dropped(); got != 8000 {
		t.Errorf("%d lines arrived or were counted, want 8000", got)
	}
}
