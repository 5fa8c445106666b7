package httpfront

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// fullListener has no descriptors left for its first connections.
type fullListener struct {
	net.Listener
	left atomic.Int32
}

func (l *fullListener) Accept() (net.Conn, error) {
	if l.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

func TestRunningOutOfDescriptorsPasses(t *testing.T) {
	var full fullListener
	full.left.Store(3)
	f := serve(t, nil, http.HandlerFunc(echo), func(c *Config) {
		full.Listener = c.Listener
		c.Listener = &full
	})
	if got := f.get("/"); got.StatusCode != 200 {
		t.Errorf("got %d", got.StatusCode)
	}
	if n := full.left.Load(); n >= 0 {
		t.Errorf("%d failures to accept are still to come: the test shows nothing", n+1)
	}
}

// brokenListener cannot accept at all.
type brokenListener struct{ net.Listener }

func (brokenListener) Accept() (net.Conn, error) {
	return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EINVAL)}
}

func TestRunReportsABrokenListener(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Listener: brokenListener{ln}, Origins: origins(t, "http://127.0.0.1:1"), Rooms: fakeRooms{}, Keys: newKeys(t), Logger: testLogger(t)}
	f, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Run(t.Context()); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("got %v, want the listener's error", err)
	}
}

// TestSilentClientsDoNotHoldUpOthers fills the front with connections, of which
// those over the limit never begin their handshake.
func TestSilentClientsDoNotHoldUpOthers(t *testing.T) {
	cert := httptest.NewTLSServer(nil)
	defer cert.Close()
	f := serve(t, nil, http.HandlerFunc(echo), func(c *Config) {
		c.TLS = &tls.Config{Certificates: cert.TLS.Certificates}
		c.Limits.Conns = 1
	})
	first := f.dial()
	for range 3 {
		c := f.dial()
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("over the limit: got %v, want the end", err)
		}
	}
	first.Close()
	client := &http.Client{Transport: cert.Client().Transport.(*http.Transport).Clone(), Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	waitFor(t, "a place to become free", func() bool {
		resp, err := client.Get("https://" + f.addr)
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == 200
	})
}
