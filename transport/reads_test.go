package transport

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/ipv4"
)

// ailing is a socket every other read of which fails, with one of errs after the other.
type ailing struct {
	net.PacketConn
	batch *ipv4.PacketConn
	errs  []error
	reads atomic.Int64
}

func (a *ailing) fails() error {
	n := int(a.reads.Add(1))
	if n%2 == 0 {
		return nil
	}
	return &net.OpError{Op: "read", Net: "udp", Err: os.NewSyscallError("recvmmsg", a.errs[n/2%len(a.errs)])}
}

func (a *ailing) ReadFrom(b []byte) (int, net.Addr, error) {
	if err := a.fails(); err != nil {
		return 0, nil, err
	}
	return a.PacketConn.ReadFrom(b)
}

func (a *ailing) ReadBatch(ms []ipv4.Message, flags int) (int, error) {
	if err := a.fails(); err != nil {
		return -1, err
	}
	return a.batch.ReadBatch(ms, flags)
}

var passing = []error{
	syscall.ENOBUFS, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED, syscall.ECONNREFUSED, syscall.ECONNRESET,
	syscall.ENETDOWN, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.EHOSTUNREACH, syscall.EPERM, syscall.EPROTO, syscall.EMSGSIZE, syscall.EIO,
}

// TestAMeshOutlivesItsSocketsErrors: two nodes talk, every other read of one of which fails, until each error has come up.
func TestAMeshOutlivesItsSocketsErrors(t *testing.T) {
	for _, kind := range []string{"a socket", "another kind of connection"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			sick := &ailing{errs: passing}
			c := newCluster(t, nil)
			a := c.start(c.config(1, 1, 0))
			cfg := c.config(2, 1, 0)
			cfg.Seeds, cfg.OnCall = []string{a.addr.String()}, handler(nil)
			if kind == "a socket" {
				c.made = func(m *Mesh) {
					udp := m.socket.(*countedUDP)
					sick.batch, udp.batch = ipv4.NewPacketConn(udp.UDPConn), sick
				}
			} else {
				udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
				if err != nil {
					t.Fatal(err)
				}
				sick.PacketConn, cfg.PacketConn = udp, sick
			}
			b := c.start(cfg)
			a.waitAlive(1, 10*time.Second)
			for sick.reads.Load() < int64(2*len(passing)) {
				if _, err := a.mesh.Call(t.Context(), b.id, methodEcho, []byte("x")); err != nil {
					t.Fatal(err)
				}
			}
			select {
			case err := <-b.done:
				t.Fatalf("the node has ended: %v", err)
			default:
			}
		})
	}
}

// TestReadsEnd with their socket, and with the deadline by which QUIC ends one that waits.
func TestReadsEnd(t *testing.T) {
	r := newReads(slog.New(slog.DiscardHandler))
	for _, want := range []error{net.ErrClosed, os.ErrDeadlineExceeded} {
		left := []error{syscall.ENOBUFS, syscall.ENOMEM, &net.OpError{Op: "read", Err: want}}
		if err := r.patiently(func() error { err := left[0]; left = left[1:]; return err }); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}
