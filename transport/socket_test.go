package transport

import (
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

func TestBufferRemedy(t *testing.T) {
	for _, tc := range []struct {
		read, write int
		want        string
	}{
		{wantedBuffer, wantedBuffer, ""},
		{212992, wantedBuffer, "sysctl -w net.core.rmem_max=7500000"},
		{212992, 212992, "sysctl -w net.core.rmem_max=7500000 net.core.wmem_max=7500000"},
	} {
		if got := bufferRemedy(tc.read, tc.write); got != tc.want {
			t.Errorf("%d and %d: got %q, want %q", tc.read, tc.write, got, tc.want)
		}
	}
}

// TestQuietQUIC holds that QUIC's own warning is switched off where ours takes
// its place, and never against a choice that was made outside.
func TestQuietQUIC(t *testing.T) {
	udp, err := bindSocket(Config{Listen: "127.0.0.1:0"}, new(traffic))
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	_, _, known := socketBuffers(udp.(*countedUDP).UDPConn)
	t.Setenv(quicWarning, "") // puts the true value back at the end
	for _, tc := range []struct {
		name string
		conn net.PacketConn
		set  bool   // from outside
		want string // "": unset, or as it was
	}{
		{"a socket", udp, false, map[bool]string{true: "true"}[known]},
		{"a socket, with a choice made", udp, true, ""},
		{"another kind of connection", &countedConn{PacketConn: udp, t: new(traffic)}, false, ""},
	} {
		os.Unsetenv(quicWarning)
		if tc.set {
			os.Setenv(quicWarning, "")
		}
		quietQUIC(tc.conn)
		if got := os.Getenv(quicWarning); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestTrafficIsCounted compares what two nodes on loopback count: what one
// sends the other receives.
func TestTrafficIsCounted(t *testing.T) {
	a, b := pairOf(t, nil, func(c *Config) { c.OnCall = handler(nil) })
	before := [2]Stats{a.mesh.Stats(), b.mesh.Stats()}
	body := make([]byte, 500_000)
	if _, err := a.mesh.Call(t.Context(), b.id, methodEcho, body); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, 5*time.Second, "both counted", func() bool {
		after := [2]Stats{a.mesh.Stats(), b.mesh.Stats()}
		for i := range after {
			in, out := after[i].BytesIn-before[i].BytesIn, after[i].BytesOut-before[i].BytesOut
			if in < 500_000 || out < 500_000 || in > 700_000 || out > 700_000 {
				return false
			}
		}
		return true
	})
}

// TestBatchedSocket makes sure that counting does not cost what makes a UDP
// socket fast.
func TestBatchedSocket(t *testing.T) {
	var count traffic
	conn, err := bindSocket(Config{Listen: "127.0.0.1:0"}, &count)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, ok := conn.(interface {
		net.Conn
		WriteMsgUDP(b, oob []byte, addr *net.UDPAddr) (int, int, error)
	}); !ok {
		t.Errorf("%T does not look like a UDP socket to QUIC", conn)
	}
	if _, err := bindSocket(Config{Listen: conn.LocalAddr().String()}, &count); err == nil || !strings.Contains(err.Error(), conn.LocalAddr().String()) {
		t.Errorf("port in use: got error %v, want one that names it", err)
	}
}
