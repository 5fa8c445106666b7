package redis

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Repeat has so many connections make one call again and again for a time, each without waiting for the others, and with
// one under way, and returns how many calls there were.
func Repeat(address string, call []byte, conns int, lasts time.Duration) (calls int64, err error) {
	var all []net.Conn
	for range conns {
		c, err := net.DialTimeout("tcp", address, 5*time.Second)
		if err != nil {
			return 0, err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(lasts + 10*time.Second))
		all = append(all, c)
	}
	var made atomic.Int64
	errs := make([]error, conns)
	var wg sync.WaitGroup
	until := time.Now().Add(lasts)
	for i, c := range all {
		wg.Go(func() {
			in := bufio.NewReaderSize(c, 64)
			for time.Now().Before(until) && errs[i] == nil {
				errs[i] = Ask(c, in, call)
				made.Add(1)
			}
		})
	}
	wg.Wait()
	return made.Load(), errors.Join(errs...)
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
