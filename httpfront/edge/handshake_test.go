package edge

import (
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/must"
	"github.com/ropeline/ropeline/httpfront/http1"
)

// certified is TLS of a server.
func certified() *tls.Config {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	return &tls.Config{Certificates: s.TLS.Certificates}
}

// longHello is the beginning of a ClientHello of 64 KiB, in records of 1 KiB.
func longHello() []byte {
	record := append([]byte{22, 3, 1, 4, 0}, make([]byte, 1<<10)...)
	all := bytes.Repeat(record, 60)
	copy(all[5:], []byte{1, 0, 0xff, 0xfb})
	return all
}

// handing hands out one connection.
type handing struct {
	net.Listener
	c net.Conn
}

func (h handing) Accept() (net.Conn, error) { return h.c, nil }

// TestHandshakesAreBounded: of a ClientHello that goes on and on, no listener takes more than the bound.
func TestHandshakesAreBounded(t *testing.T) {
	config := certified()
	log := slog.New(slog.DiscardHandler)
	visitor := func(conns int) func(net.Conn) {
		return New(nil, Config{
			TLS: config, Limits: Limits{Conns: conns, Handshakes: 1}, Head: time.Hour, Write: time.Hour, Log: log,
			Refuse: func(http1.Refusal) []byte { return nil },
		}, nil).take
	}
	for whose, take := range map[string]func(net.Conn){
		"a visitor":                      visitor(1),
		"a visitor for whom is no place": visitor(0),
		"an operator, or another program": func(c net.Conn) {
			c = must.Do(NewPlaces(handing{c: c}, PlacesConfig{Conns: 1, PerAddress: 1, Strangers: 1, TLS: config, Log: log}).Accept())
			go func() {
				c.Read(make([]byte, 1))
				c.Close()
			}()
		},
	} {
		here, there := net.Pipe()
		take(here)
		if n, err := there.Write(longHello()); n != handshakeMax {
			t.Errorf("of %s %d bytes were taken, want %d; %v", whose, n, handshakeMax, err)
		}
		there.Close()
	}
}

// TestTheBoundEndsWithTheHandshake: what comes behind it is of any length, and those who count places find them.
func TestTheBoundEndsWithTheHandshake(t *testing.T) {
	here, there := net.Pipe()
	c := must.Do(NewPlaces(handing{c: here}, PlacesConfig{Conns: 1, PerAddress: 1, Strangers: 1, TLS: certified(), Log: slog.New(slog.DiscardHandler)}).Accept())
	if PlaceOf(c) == nil {
		t.Error("it has no place")
	}
	go func() {
		c := tls.Client(there, &tls.Config{InsecureSkipVerify: true})
		c.Write(make([]byte, 10*handshakeMax))
		c.Close()
	}()
	if n, err := io.Copy(io.Discard, c); n != 10*handshakeMax || err != nil {
		t.Errorf("got %d bytes, want %d; %v", n, 10*handshakeMax, err)
	}
}
