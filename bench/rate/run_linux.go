package rate

import (
	"context"
	"net"
	"net/netip"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/ropeline/ropeline/bench/rate/internal/poll"
)

// Run sends what cfg says, and returns what came of it. Where ctx ends before, it returns the error of ctx
// and what was measured until then. All connections have to come about at the beginning, or nothing is sent.
//
// The thread that it runs on is its own, and ends with it.
func Run(ctx context.Context, cfg Config) (Result, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return Result{}, err
	}
	to, family, err := resolve(cfg.Address)
	if err != nil {
		return Result{}, err
	}
	var result Result
	done := make(chan struct{})
	go func() {
		defer close(done)
		// It stays locked, so that the thread with its CPU and its timers is not used for anything else after.
		runtime.LockOSThread()
		result, err = run(ctx, cfg, to, family)
	}()
	<-done
	return result, err
}

// run runs on the calling thread.
func run(ctx context.Context, cfg Config, to unix.Sockaddr, family int) (Result, error) {
	if cfg.CPU != nil {
		if err := poll.Pin(*cfg.CPU); err != nil {
			return Result{}, err
		}
	}
	poll.WakeInTime()
	l, err := newLoop(cfg, to, family)
	if err != nil {
		return Result{}, err
	}
	defer l.close()
	if err := l.connect(ctx); err != nil {
		return Result{}, err
	}
	l.begins()
	for {
		if done, err := l.step(ctx); done || err != nil {
			return l.result(), err
		}
	}
}

// resolve looks an address up, once.
func resolve(address string) (unix.Sockaddr, int, error) {
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, 0, err
	}
	number, ip := at.Port, at.AddrPort().Addr().Unmap()
	if !ip.IsValid() { // no host was given
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	if ip.Is4() {
		return &unix.SockaddrInet4{Port: number, Addr: ip.As4()}, unix.AF_INET, nil
	}
	to := &unix.SockaddrInet6{Port: number, Addr: ip.As16()}
	if zone := ip.Zone(); zone != "" {
		nic, err := net.InterfaceByName(zone)
		if err != nil {
			return nil, 0, err
		}
		to.ZoneId = uint32(nic.Index)
	}
	return to, unix.AF_INET6, nil
}
