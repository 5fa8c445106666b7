package httpfront

import (
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/httpfront/observe/accesslog"
	"github.com/ropeline/ropeline/node"
)

// roundTrips measures requests one after another on a connection.
func roundTrips(b *testing.B, f *front, request string) {
	b.Helper()
	c := f.dial()
	ask := asker(b, c, request)
	b.ReportAllocs()
	for b.Loop() {
		ask()
	}
}

func BenchmarkWaitingPage(b *testing.B) {
	f := serve(b, fakeRooms{room: newRoom(never)}, http.NotFoundHandler())
	roundTrips(b, f, "GET / HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\n\r\n")
}

func BenchmarkWaitingJSON(b *testing.B) {
	f := serve(b, fakeRooms{room: newRoom(never)}, http.NotFoundHandler())
	roundTrips(b, f, "GET / HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\n\r\n")
}

// BenchmarkAdmitted measures a request with a pass, to an origin that costs
// next to nothing. The origin and the client are in the figure.
func BenchmarkAdmitted(b *testing.B) {
	f := serveTo(b, fakeRooms{room: newRoom(always)}, answering(b))
	p := node.Pass{Room: [16]byte{1}, Arrival: time.Now(), AcceptedAt: time.Now(), LeaseEnd: time.Now().Add(time.Minute)}
	roundTrips(b, f, "GET / HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\nCookie: ropeline="+
		string(f.keys.AppendSeal(nil, p, "a"))+"\r\n\r\n")
}

// answerAll answers every read of a request without a body.
func answerAll(c net.Conn) {
	defer c.Close()
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: text/plain\r\n\r\nhello")
	buf := make([]byte, 4096)
	for {
		if _, err := c.Read(buf); err != nil {
			return
		}
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

func BenchmarkGuard(b *testing.B) {
	head := http1.RawHead{
		Method: []byte("GET"), Target: []byte("/shop/item?id=7"), Protocol: []byte("HTTP/1.1"),
		Fields: []byte("Host: shop.example\r\nUser-Agent: Mozilla/5.0\r\nAccept: text/html,*/*;q=0.8\r\nAccept-Language: en\r\n" +
			"Accept-Encoding: gzip, br\r\nCookie: a=b\r\nConnection: keep-alive\r\n\r\n"),
	}
	b.ReportAllocs()
	for b.Loop() {
		r := newRequest()
		if no := r.Parse(head); no.Code != 0 {
			b.Fatal(no)
		}
		r.release()
	}
}

// BenchmarkAdmittedCounted is BenchmarkAdmitted with requests counted and logged.
func BenchmarkAdmittedCounted(b *testing.B) {
	var w silent
	f := serveTo(b, fakeRooms{room: newRoom(always)}, answering(b), func(c *Config) { c.Requests, c.AccessLog = &w, &w })
	p := node.Pass{Room: [16]byte{1}, Arrival: time.Now(), AcceptedAt: time.Now(), LeaseEnd: time.Now().Add(time.Minute)}
	roundTrips(b, f, "GET / HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\nCookie: ropeline="+
		string(f.keys.AppendSeal(nil, p, "a"))+"\r\n\r\n")
}

// silent writes lines and keeps none.
type silent struct {
	mu  sync.Mutex // guards the following
	buf []byte
}

func (*silent) Record(crdt.RoomID, Outcome, time.Duration) {}

func (s *silent) Write(e *accesslog.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = accesslog.AppendLine(s.buf[:0], e)
}
