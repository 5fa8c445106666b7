package transport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	peersFile       = "mesh-peers"
	peersRemembered = 32
	peersFileLimit  = 16 << 10 // bytes read; more is not of our making
)

// Join asks the nodes at seeds to take this one in. It returns how many
// answered, and an error only when none did; a seed that turns out to be this
// very node does not count as either. Seeds are host:port; every address that
// a name has is tried.
func (m *Mesh) Join(ctx context.Context, seeds ...string) (int, error) {
	select {
	case <-m.ready:
	case <-ctx.Done():
		return 0, fmt.Errorf("join: %w", context.Cause(ctx))
	}
	n, errs := m.joinEach(ctx, seeds)
	if n > 0 {
		return n, nil
	}
	return 0, errors.Join(errs...)
}

// joinsAtOnce bounds the dials of one join.
const joinsAtOnce = 16

// joinEach tries all seeds at the same time: a dead one takes a whole timeout,
// and an old list has many in front of one that is there. It returns how many
// answered and why others did not.
func (m *Mesh) joinEach(ctx context.Context, seeds []string) (n int, errs []error) {
	var (
		wg    sync.WaitGroup
		slots = make(chan struct{}, joinsAtOnce)
		mu    sync.Mutex // guards n and errs
	)
	done := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			n++
		case !errors.Is(err, errSelf):
			errs = append(errs, err)
		}
	}
	for _, seed := range seeds {
		wg.Go(func() {
			addrs, err := resolve(ctx, seed)
			if err != nil {
				done(err)
				return
			}
			for _, addr := range addrs {
				wg.Go(func() {
					slots <- struct{}{}
					defer func() { <-slots }()
					done(m.joinOne(ctx, addr))
				})
			}
		})
	}
	wg.Wait()
	return n, errs
}

func (m *Mesh) joinOne(ctx context.Context, addr netip.AddrPort) error {
	if addr == m.advertise || addr == m.bound {
		return errSelf
	}
	l := m.links.at(addr)
	if l == nil {
		var err error
		if l, err = m.links.open(ctx, PeerID{}, addr); err != nil {
			return fmt.Errorf("join %s: %w", addr, err)
		}
	}
	if err := m.gossip.join(ctx, l); err != nil {
		return fmt.Errorf("join %s: %w", addr, err)
	}
	m.members.poke()
	return nil
}

// resolve returns the addresses behind a seed.
func resolve(ctx context.Context, seed string) ([]netip.AddrPort, error) {
	if ap, err := netip.ParseAddrPort(seed); err == nil {
		return []netip.AddrPort{netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())}, nil
	}
	host, service, err := net.SplitHostPort(seed)
	if err != nil {
		return nil, fmt.Errorf("seed %q: %w", seed, err)
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "udp", service)
	if err != nil {
		return nil, fmt.Errorf("seed %q: %w", seed, err)
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("seed %q: %w", seed, err)
	}
	var addrs []netip.AddrPort
	for _, ip := range ips {
		addrs = append(addrs, netip.AddrPortFrom(ip.Unmap(), uint16(port)))
	}
	return addrs, nil
}

// keepSeeds joins the seeds, and again for as long as one of them is missing:
// after a day a cut is forgotten by serf itself. A node that knows nobody
// tries at short intervals, with the peers it remembers as well.
func (m *Mesh) keepSeeds() {
	t := m.cfg.Timing
	remembered := m.loadPeers()
	saved := slices.Clone(remembered)
	lastAll := -t.SeedInterval
	var told seedsTold
	for {
		now := m.now()
		alone := !slices.ContainsFunc(m.Members(), func(p Peer) bool { return p.State == Alive })
		var try []string
		if alone || now-lastAll >= t.SeedInterval {
			try, lastAll = m.missing(m.cfg.Seeds), now
		}
		if alone {
			try = append(try, m.missing(remembered)...)
		}
		if len(try) > 0 {
			errs := m.joinSeeds(try)
			if why, say := told.after(alone, errs); say {
				m.log.Warn("no node to join has taken this one in; it is tried again and again", "error", why)
			}
		}
		if current := m.livePeers(); len(current) > 0 && !slices.Equal(current, saved) {
			if err := m.savePeers(current); err != nil {
				m.log.Warn("peers not remembered", "error", err.Error())
			}
			saved = current
		}
		select {
		case <-m.runCtx.Done():
			return
		case <-time.After(t.RetryInterval):
		}
	}
}

// joinSeeds tries each of them, and returns why some did not answer.
func (m *Mesh) joinSeeds(seeds []string) []error {
	ctx, cancel := context.WithTimeout(m.runCtx, m.cfg.Timing.StreamTimeout)
	defer cancel()
	// In another order each time, so that none is always the one for which
	// there is no time left.
	rand.Shuffle(len(seeds), func(i, j int) { seeds[i], seeds[j] = seeds[j], seeds[i] })
	n, errs := m.joinEach(ctx, seeds)
	for _, err := range errs {
		m.log.Debug("seed not joined", "error", err.Error())
	}
	if n > 0 {
		return nil
	}
	return errs
}

// missing returns the seeds behind which there is neither a living member nor
// this node. A name that does not resolve is missing.
func (m *Mesh) missing(seeds []string) []string {
	present := map[netip.AddrPort]bool{m.advertise: true, m.bound: true}
	for _, p := range m.Members() {
		if p.State == Alive {
			present[p.Addr] = true
		}
	}
	for _, l := range m.links.all() {
		present[l.addr] = m.members.lists(l.id, l.hello.boot)
	}
	ctx, cancel := context.WithTimeout(m.runCtx, m.cfg.Timing.StreamTimeout)
	defer cancel()
	var out []string
	for _, seed := range seeds {
		addrs, err := resolve(ctx, seed)
		if err != nil || slices.ContainsFunc(addrs, func(a netip.AddrPort) bool { return !present[a] }) {
			out = append(out, seed)
		}
	}
	return out
}

// livePeers returns the addresses to remember: those of living members,
// sorted, at most as many as are worth remembering.
func (m *Mesh) livePeers() []string {
	var addrs []string
	for _, p := range m.Members() {
		if p.State == Alive {
			addrs = append(addrs, p.Addr.String())
		}
	}
	slices.Sort(addrs)
	return addrs[:min(len(addrs), peersRemembered)]
}

// loadPeers reads what savePeers wrote. It is a hint: whatever is wrong with
// the file, there are the seeds.
func (m *Mesh) loadPeers() []string {
	if m.cfg.DataDir == "" {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(m.cfg.DataDir, peersFile))
	if err != nil || len(text) > peersFileLimit {
		return nil
	}
	var addrs []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if _, err := netip.ParseAddrPort(line); err == nil && len(addrs) < peersRemembered {
			addrs = append(addrs, line)
		}
	}
	return addrs
}

// savePeers replaces the file as a whole, so that a crash leaves the old one
// or the new one.
func (m *Mesh) savePeers(addrs []string) error {
	if m.cfg.DataDir == "" {
		return nil
	}
	name := filepath.Join(m.cfg.DataDir, peersFile)
	f, err := os.CreateTemp(m.cfg.DataDir, peersFile+"-*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(addrs, "\n") + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
