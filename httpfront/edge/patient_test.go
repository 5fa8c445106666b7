package edge

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
)

// failing is a listener whose Accept fails in turn.
type failing struct {
	net.Listener
	with []error
}

func (f *failing) Accept() (net.Conn, error) {
	if len(f.with) == 0 {
		c, _ := net.Pipe()
		return c, nil
	}
	err := f.with[0]
	f.with = f.with[1:]
	return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", err)}
}

func (f *failing) Close() error { return nil }

func TestPatient(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for _, err := range []error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED,
		// What accept(2) passes on of the network, and a firewall's no.
		syscall.ENETDOWN, syscall.EPROTO, syscall.ENOPROTOOPT, syscall.EHOSTDOWN, syscall.EHOSTUNREACH,
		syscall.EOPNOTSUPP, syscall.ENETUNREACH, syscall.EPERM,
		syscall.ETIMEDOUT, syscall.EINVAL, // and what nobody has thought of
	} {
		if c, got := Patient(&failing{with: []error{err, err}}, log).Accept(); got != nil || c == nil {
			t.Errorf("%v: got %v", err, got)
		}
	}
	short := func() net.Listener { return &failing{with: []error{syscall.EMFILE, syscall.EINVAL}} }
	for whose, ln := range map[string]net.Listener{
		"visitors":                      New(short(), Config{Log: log}, nil),
		"operators, and other programs": NewPlaces(short(), PlacesConfig{Conns: 1, PerAddress: 1, Strangers: 1, Log: log}),
	} {
		if c, got := ln.Accept(); got != nil || c == nil {
			t.Errorf("a listener for %s: got %v", whose, got)
		}
	}
	if _, got := Patient(&failing{with: []error{net.ErrClosed}}, log).Accept(); !errors.Is(got, net.ErrClosed) {
		t.Errorf("closed from outside: got %v", got)
	}
	p := Patient(&failing{with: slices.Repeat([]error{syscall.EMFILE}, 1000)}, log)
	p.Close()
	if _, got := p.Accept(); !errors.Is(got, net.ErrClosed) {
		t.Errorf("closed: got %v", got)
	}
}
