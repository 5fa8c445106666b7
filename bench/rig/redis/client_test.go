package redis

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func TestRepliesAreUnderstood(t *testing.T) {
	for said, want := range map[string]string{
		"+PONG\r\n":              "PONG",
		":-7\r\n":                "-7",
		"$5\r\nhello\r\n":        "hello",
		"$-1\r\n":                "",
		"$0\r\n\r\n":             "",
		"*1\r\n:1\r\n":           "error: redis: the answer \"*1\\r\\n\" is not understood",
		"-ERR no such thing\r\n": "error: redis: ERR no such thing",
		"?\r\n":                  "error: redis: the answer \"?\\r\\n\" is not understood",
		"$99999999999\r\n":       "error: redis: the answer \"$99999999999\\r\\n\" is not understood",
		"$3\r\nab":               "error: unexpected EOF",
		"":                       "error: EOF",
	} {
		got, err := readReply(bufio.NewReader(strings.NewReader(said)))
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", said, got, want)
		}
	}
}

// counting is a server that answers each command of a connection with the next number.
func counting(t *testing.T) (address string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for {
					if line, err := in.ReadString('\n'); err != nil || line != "*2\r\n" {
						return
					}
					for range 4 { // two words
						if _, err := in.ReadString('\n'); err != nil {
							return
						}
					}
					if _, err := io.WriteString(c, ":1\r\n"); err != nil {
						return
					}
				}
			}()
		}
	}()
	return ln.Addr().String()
}

func TestRepeatCountsCalls(t *testing.T) {
	got, err := Repeat(counting(t), Command("INCR", "counter"), 3, 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if got < 3 {
		t.Errorf("got %d calls", got)
	}
}

func TestAsk(t *testing.T) {
	call := Command("INCR", "visitors")
	for answer, fails := range map[string]bool{":17\r\n": false, ":0\r\n": true, "-ERR\r\n": true, ":1": true, "": true} {
		var out bytes.Buffer
		err := Ask(&out, bufio.NewReader(strings.NewReader(answer)), call)
		if (err != nil) != fails {
			t.Errorf("answer %q: %v", answer, err)
		}
		if got, want := out.String(), "*2\r\n$4\r\nINCR\r\n$8\r\nvisitors\r\n"; got != want {
			t.Errorf("asked %q, want %q", got, want)
		}
	}
	if err := Ask(failing{}, nil, call); err == nil {
		t.Error("a call that could not be written has no error")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestCommandsAreWrittenAsWords(t *testing.T) {
	server, client := net.Pipe()
	defer client.Close()
	go func() {
		defer server.Close()
		got := make([]byte, 64)
		n, err := server.Read(got)
		if want := "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n"; err != nil || string(got[:n]) != want {
			t.Errorf("got %q, %v, want %q", got[:n], err, want)
		}
	}()
	c := &Conn{conn: client, in: bufio.NewReader(client)}
	if _, err := c.Do("ECHO", ""); !errors.Is(err, io.EOF) {
		t.Errorf("got %v from a server that went away", err)
	}
}
