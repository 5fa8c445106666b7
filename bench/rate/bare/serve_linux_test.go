package bare

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
)

// TestServe sends some requests at once.
func TestServe(t *testing.T) {
	const body, requests, atOnce = 10_000, 2_000, 4
	server, err := Listen(Config{Address: "127.0.0.1:0", Body: body})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- server.Serve(ctx) }()
	c, err := net.Dial("tcp", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want := Config{Body: body}.answer()
	got := make([]byte, len(want))
	for i := range requests {
		if i%atOnce == 0 {
			if _, err := c.Write(bytes.Repeat([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), atOnce)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("answer %d: %v, or it is another", i, err)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n, err := c.Read(got); err == nil {
		t.Errorf("it goes on after its end: %d bytes", n)
	}
}

func TestListenRefuses(t *testing.T) {
	for _, cfg := range []Config{{Address: "127.0.0.1"}, {Address: "[::1]:0"}, {Address: "127.0.0.1:0", Body: -1}, {Address: "192.0.2.1:0"}} {
		if _, err := Listen(cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}
