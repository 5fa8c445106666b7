package redis

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/ropeline/ropeline/bench/rig"
)

// Result is what came of a call that was repeated.
type Result struct {
	Calls    int64
	Rate     float64 // calls a second
	P50      float64 // from when a call was sent until its answer was read
	P99      float64 //
	CPU      float64 // of this process, for each call
	CPUShare float64 // of this process; 1 is a core
}

// slowest bounds latencies that are told apart: a minute, in nanoseconds.
const slowest = int64(time.Minute)

// Repeat has so many connections make one call for a time, each without waiting for the others, and with
// one under way.
func Repeat(address string, call []byte, conns int, lasts time.Duration) (Result, error) {
	var all []net.Conn
	for range conns {
		c, err := net.DialTimeout("tcp", address, 5*time.Second)
		if err != nil {
			return Result{}, err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(lasts + 10*time.Second))
		all = append(all, c)
	}
	tallies, errs := make([]*hdrhistogram.Histogram, conns), make([]error, conns)
	var wg sync.WaitGroup
	begun, before := time.Now(), rig.Own()
	for i, c := range all {
		tallies[i] = hdrhistogram.New(1000, slowest, 3)
		wg.Go(func() { errs[i] = repeat(c, call, begun.Add(lasts), tallies[i]) })
	}
	wg.Wait()
	passed, used := time.Since(begun), rig.Own()-before
	for _, t := range tallies[1:] {
		tallies[0].Merge(t)
	}
	calls := tallies[0].TotalCount()
	micros := func(q float64) float64 { return float64(tallies[0].ValueAtQuantile(q)) / 1e3 }
	return Result{
		Calls: calls, Rate: float64(calls) / passed.Seconds(), P50: micros(50), P99: micros(99),
		CPU: used.Seconds() * 1e6 / float64(max(calls, 1)), CPUShare: used.Seconds() / passed.Seconds(),
	}, errors.Join(errs...)
}

func repeat(c net.Conn, call []byte, until time.Time, t *hdrhistogram.Histogram) error {
	in := bufio.NewReaderSize(c, 64)
	for at := time.Now(); at.Before(until); {
		if err := Ask(c, in, call); err != nil {
			return err
		}
		now := time.Now()
		_ = t.RecordValue(min(int64(now.Sub(at)), slowest))
		at = now
	}
	return nil
}

// Ask makes one call, and takes in the answer, which is a number, and not 0.
func Ask(out io.Writer, in *bufio.Reader, call []byte) error {
	if _, err := out.Write(call); err != nil {
		return err
	}
	line, err := in.ReadSlice('\n')
	if err != nil {
		return err
	}
	if line[0] != ':' || line[1] == '0' {
		return fmt.Errorf("redis: the answer is %q", line)
	}
	return nil
}
