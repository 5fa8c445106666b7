package suite

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"
)

// crowd is visitors who come to a server for the first time, all at once.
type crowd struct {
	address string
	visitor []byte // the request of each
	count   int
	keep    int // so many of their cookies, NAME=VALUE, are returned
}

const (
	crowdConns = 32
	crowdBatch = 16 // requests are sent so many at a time, or a million would take minutes
	crowdTime  = 5 * time.Minute
)

// come has all of them come, and returns cookies of some.
func (c crowd) come(ctx context.Context) ([]string, error) {
	conns := max(1, min(crowdConns, c.count/crowdBatch))
	parts := make([][]string, conns)
	errs := make([]error, conns)
	share := func(n, i int) int { return n*(i+1)/conns - n*i/conns }
	var wg sync.WaitGroup
	for i := range conns {
		wg.Go(func() { parts[i], errs[i] = c.some(ctx, share(c.count, i), share(c.keep, i)) })
	}
	wg.Wait()
	var all []string
	for _, p := range parts {
		all = append(all, p...)
	}
	return all, errors.Join(errs...)
}

// some has count visitors come by one connection.
func (c crowd) some(ctx context.Context, count, keep int) (cookies []string, err error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", c.address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_ = conn.SetDeadline(time.Now().Add(crowdTime))
	in := bufio.NewReaderSize(conn, 64<<10)
	for done := 0; done < count; {
		n := min(crowdBatch, count-done)
		if _, err := conn.Write(bytes.Repeat(c.visitor, n)); err != nil {
			return cookies, err
		}
		for range n {
			cookie, err := readAnswer(in)
			if err != nil {
				return cookies, err
			}
			if cookie == "" {
				return cookies, errors.New("a visitor has got no cookie")
			}
			if len(cookies) < keep {
				cookies = append(cookies, cookie)
			}
		}
		done += n
	}
	return cookies, nil
}

// readAnswer reads one answer, of a length that is told, and returns its cookie, NAME=VALUE.
func readAnswer(in *bufio.Reader) (cookie string, err error) {
	length := -1
	for first := true; ; first = false {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return "", err
		}
		line = bytes.TrimRight(line, "\r\n")
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch {
		case first && !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")):
			return "", fmt.Errorf("the answer to a visitor is %q", line)
		case len(line) == 0:
			if length < 0 {
				return "", errors.New("an answer does not tell its length")
			}
			_, err = in.Discard(length)
			return cookie, err
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil {
				return "", err
			}
		case bytes.EqualFold(name, []byte("Set-Cookie")):
			pair, _, _ := bytes.Cut(value, []byte(";"))
			cookie = string(pair)
		}
	}
}
