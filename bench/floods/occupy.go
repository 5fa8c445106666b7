//go:build linux

package floods

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
)

// What connections do until the node ends them. None of them reads more than it has to.

const (
	headSize  = 16<<10 - 512            // just below what is refused as too long
	bodyEvery = 2500 * time.Millisecond // hardly faster than min-body-rate, and shorter than any pause that ends a body
	longBody  = 7_000_000
	formPath  = "/form" // for which the site reads all of a body before it answers
)

// toEnd reads until the connection ends.
func toEnd(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// unfinished sends a head without its end, of so many bytes.
func unfinished(size int) func(context.Context, net.Conn, int) {
	head := bytes.TrimSuffix(headWith("X-Filler: "), []byte("\r\n\r\n"))
	return only(append(head, bytes.Repeat([]byte("x"), size-len(head))...))
}

// only sends something, and nothing else.
func only(this []byte) func(context.Context, net.Conn, int) {
	return func(_ context.Context, c net.Conn, _ int) {
		if _, err := c.Write(this); err == nil {
			toEnd(c)
		}
	}
}

// longHello is a ClientHello nearly as long as a node takes one.
var longHello = sync.OnceValue(func() []byte {
	protocols := []string{"http/1.1"}
	for i := range 26 {
		protocols = append(protocols, fmt.Sprintf("%0250d", i))
	}
	var sent recorder
	_ = tls.Client(&sent, &tls.Config{ServerName: "shop.example", NextProtos: protocols, MinVersion: tls.VersionTLS13}).Handshake() // there is no answer
	return sent.Bytes()
})

// recorder is a connection that keeps what is sent, and on which nothing comes.
type recorder struct {
	net.Conn
	bytes.Buffer
}

func (r *recorder) Read([]byte) (int, error)    { return 0, io.EOF }
func (r *recorder) Write(p []byte) (int, error) { return r.Buffer.Write(p) }

// post is the head of a request with a body.
func post(path string, length int) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: shop.example\r\nAccept: application/json\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", path, length)
}

// trickle sends a body that takes for ever, and goes on when it is answered, until the node does not take more.
func trickle(ctx context.Context, c net.Conn, _ int) {
	var reading sync.WaitGroup
	reading.Go(func() { toEnd(c) })
	defer reading.Wait()
	defer c.Close()
	piece := bytes.Repeat([]byte("x"), 1<<10)
	if _, err := io.WriteString(c, post(formPath, 1<<30)); err != nil {
		return
	}
	for {
		if _, err := c.Write(piece); err != nil || rig.Sleep(ctx, bodyEvery) != nil {
			return
		}
	}
}

// longRequest is one with a long body for the API of operators, which all connections share.
var longRequest = sync.OnceValue(func() []byte {
	return append([]byte(post("/api/v1/rooms", longBody)), bytes.Repeat([]byte(" "), longBody)...)
})

// sendLong sends one body after the other for the API of operators.
func sendLong(_ context.Context, c net.Conn, _ int) {
	var writing sync.WaitGroup
	writing.Go(func() {
		for err := error(nil); err == nil; {
			_, err = c.Write(longRequest())
		}
	})
	toEnd(c)
	c.Close()
	writing.Wait()
}

// deaf is a visitor in line who asks for more than fits into the kernel's buffers, and reads nothing but the first answer.
func deaf(_ context.Context, c net.Conn, _ int) {
	_, err := c.Write(newcomer(0))
	first := make([]byte, 1<<10)
	_, _ = c.Read(first)
	_, first, _ = bytes.Cut(first, []byte("Set-Cookie: "))
	pass, _, _ := bytes.Cut(first, []byte(";"))
	for head := headWith("Cookie: " + string(pass) + "\r\n"); err == nil; {
		_, err = c.Write(head)
	}
}

// follow opens a stream, and every other one does not read it.
func follow(ctx context.Context, c net.Conn, i int) {
	if _, err := io.WriteString(c, "GET /api/v1/watch HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		return
	}
	if i%2 == 0 {
		toEnd(c)
		return
	}
	<-ctx.Done()
}
