package rate

import (
	"bufio"
	"net"
	"sync/atomic"
	"testing"
)

// get returns the head of a GET request.
func get(target string) []byte {
	return []byte("GET " + target + " HTTP/1.1\r\nHost: a.example\r\n\r\n")
}

// scripted is a server that a test has written by hand.
type scripted struct {
	address string
	conns   atomic.Int64 // how many were made
	heads   atomic.Int64 // how many requests came
}

// startScripted starts a server that has answer called for each request, with the number of its connection,
// the line that it began with, and what writes to it. The connection ends where it returns false.
func startScripted(t *testing.T, answer func(conn int64, line string, w net.Conn) bool) *scripted {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s := &scripted{address: l.Addr().String()}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(s.conns.Add(1)-1, c, answer)
		}
	}()
	return s
}

func (s *scripted) serve(number int64, c net.Conn, answer func(int64, string, net.Conn) bool) {
	defer c.Close()
	r := bufio.NewReader(c)
	for first := ""; ; {
		line, err := r.ReadString('\n')
		switch {
		case err != nil:
			return
		case first == "":
			first = line
		case line == "\r\n":
			s.heads.Add(1)
			if !answer(number, first, c) {
				return
			}
			first = ""
		}
	}
}

// says returns what answers every request with the same bytes, in one write.
func says(text string, goesOn bool) func(int64, string, net.Conn) bool {
	return func(_ int64, _ string, w net.Conn) bool {
		_, err := w.Write([]byte(text))
		return err == nil && goesOn
	}
}
