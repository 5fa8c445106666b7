package adminserver

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/time/rate"

	"github.com/ropeline/ropeline/bench/must"
)

// ready is a Part that says that the node is ready.
func ready() Part {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ready") })
	return NewPaths(h, map[string]Scope{"/readyz": Nothing})
}

func withHealth(c *Config) {
	withTokens(c)
	c.Health = ready()
}

// TestBodiesOfStrangersAreNotHeld has strangers send long bodies, with a length and in chunks, all but their ends.
func TestBodiesOfStrangersAreNotHeld(t *testing.T) {
	base, _ := start(t, withTokens)
	const strangers, length = 16, 4 << 20
	before := heap()
	var all sync.WaitGroup
	conns := make([]net.Conn, strangers)
	for i := range conns {
		conns[i] = dial(t, base)
		all.Go(func() {
			how, begin := fmt.Sprintf("Content-Length: %d", length+1), ""
			if i%2 == 1 {
				how, begin = "Transfer-Encoding: chunked", fmt.Sprintf("%x\r\n", length+1)
			}
			fmt.Fprintf(conns[i], "POST /thing HTTP/1.1\r\nHost: localhost\r\n%s\r\nAuthorization: Bearer none-0123456789ab\r\n\r\n%s", how, begin)
			part := bytes.Repeat([]byte("x"), 64<<10)
			for range length / len(part) {
				if _, err := conns[i].Write(part); err != nil {
					t.Errorf("stranger %d: %v", i, err)
					return
				}
			}
		})
	}
	all.Wait()
	if held := heap() - before; held > strangers*length/8 {
		t.Errorf("%d MB are held of %d MB that strangers sent", held>>20, strangers*length>>20)
	}
	for i, c := range conns {
		io.WriteString(c, map[int]string{0: "x", 1: "x\r\n0\r\n\r\n"}[i%2])
		c.SetReadDeadline(time.Now().Add(10 * time.Second))
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("stranger %d: %v, %v; want 401", i, resp, err)
		}
	}
	// What followed the body is the next request.
	io.WriteString(conns[0], "POST /thing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nAuthorization: Bearer "+writeToken+"\r\n\r\nabc")
	resp := must.Do(http.ReadResponse(bufio.NewReader(conns[0]), nil))
	if body, _ := io.ReadAll(resp.Body); string(body) != "POST 3 bytes" {
		t.Errorf("the next request of the connection: %q", body)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestBodiesAreDroppedAtARate has a body be dropped of which each piece counts, while none may be dropped beyond what there is.
func TestBodiesAreDroppedAtARate(t *testing.T) {
	_, s := start(t, withTokens)
	const pieces = 4
	s.drops = rate.NewLimiter(rate.Every(time.Hour), pieces*dropPiece)
	var ctx fasthttp.RequestCtx
	body := bytes.NewReader(make([]byte, pieces*dropPiece-1))
	ctx.Request.SetBodyStream(body, body.Len())
	s.dropBody(&ctx)
	if left := s.drops.Tokens(); body.Len() != 0 || left < dropPiece || left > dropPiece+1 {
		t.Errorf("%d bytes are left of the body, and %.0f may be dropped at once; want none, and %d", body.Len(), left, dropPiece)
	}
}

// TestWhoGaveUpAPlaceIsNotHeld: a connection whose body is being dropped ends with its place, and not only once it may drop the
// next piece: else there are more of them than places, the more the faster others come.
func TestWhoGaveUpAPlaceIsNotHeld(t *testing.T) {
	base, s := start(t, func(c *Config) {
		withHealth(c)
		c.Conns = 1
	})
	s.drops.SetLimit(rate.Every(time.Hour))
	fmt.Fprintf(dial(t, base), "POST /thing HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", MaxBody, strings.Repeat("x", 2*dropPiece))
	awaits := func(what string, waits bool) {
		for end := time.Now().Add(10 * time.Second); s.drops.Tokens() < 0 != waits; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: waiting to drop the next piece is %v, want %v", what, !waits, waits)
			}
		}
	}
	awaits("with a long body", true)
	wantStatus(t, base, "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "200")
	awaits("after another connection took its place", false)
}

// TestFewLongBodiesAtATime: those of operators are held a few at a time, and short ones beside them.
func TestFewLongBodiesAtATime(t *testing.T) {
	base, s := start(t, nil)
	for range largeMax {
		s.large <- struct{}{}
	}
	wants(t, 200, "", "POST", base+"/thing", strings.NewReader(strings.Repeat("x", smallBody)))
	done := make(chan string)
	go func() {
		_, body := ask(t, "POST", base+"/thing", io.MultiReader(strings.NewReader("of unknown length"))) // in chunks
		done <- body
	}()
	select {
	case got := <-done:
		t.Errorf("a body of unknown length is read beside %d others: %q", largeMax, got)
	case <-time.After(100 * time.Millisecond):
	}
	<-s.large
	if got := <-done; got != "POST 17 bytes" {
		t.Errorf("once there is room: %q", got)
	}
}

// TestOpenConnectionsKeepNobodyOut holds more connections than there may be, none of which asks anything to the end.
func TestOpenConnectionsKeepNobodyOut(t *testing.T) {
	base, _ := start(t, withHealth)
	for range connsMaxPerAddress + 20 {
		io.WriteString(dial(t, base), "GET /readyz HTTP/1.1\r\nHost: localhost\r\n")
	}
	for range 3 {
		wantStatus(t, base, "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "200")
	}
}

// TestHealthChecksAreNotLimited, and neither is who has a token, by what strangers at the same address do.
func TestHealthChecksAreNotLimited(t *testing.T) {
	base, _ := start(t, withHealth)
	untilLimited(t, base+"/thing/open", false)
	for range 3 {
		wants(t, 200, "ready", "GET", base+"/readyz", strings.NewReader("and a body"))
		wants(t, 200, "", "GET", base+"/thing", nil, with(readToken)...)
	}
}

// TestTheLogHasNoTokens has heads be malformed in many ways, each with a token in it.
func TestTheLogHasNoTokens(t *testing.T) {
	file := must.Do(os.Create(filepath.Join(t.TempDir(), "log")))
	defer file.Close()
	log := slog.New(slog.NewTextHandler(file, &slog.HandlerOptions{Level: slog.LevelDebug}))
	base, _ := start(t, func(c *Config) {
		withTokens(c)
		c.Logger = log
	})
	auth := "Authorization: Bearer " + writeToken
	for _, head := range []string{
		"GET\r\n" + auth + "\r\n\r\n",
		"GET / HTTP/9\r\n" + auth + "\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\n" + auth + "\x01\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\n" + strings.Replace(auth, ":", " ", 1) + ": x\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\n" + auth + "\r\nContent-Length: " + writeToken + "\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: " + writeToken + "\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: " + writeToken + " x\r\n\r\n",
		"GET http://" + writeToken + "%zz/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\n" + auth + strings.Repeat("x", 20<<10) + "\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\n" + auth + "\r\n cut off",
	} {
		exchange(t, base, head)
	}
	logger := discreet{log}
	logger.Printf("error %q: %v, %v", "x", fmt.Errorf("in %q", auth), fmt.Errorf("%s: %w", auth, &net.OpError{Op: "read", Err: errors.New("reset")}))
	logger.Printf("%v", &fasthttp.ErrSmallBuffer{})
	if text := string(must.Do(os.ReadFile(file.Name()))); strings.Contains(text, writeToken) || !strings.Contains(text, "read: reset") {
		t.Errorf("the log:\n%s", text)
	}
}
