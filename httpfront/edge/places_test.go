package edge

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"testing"
)

// fake is a connection from an address.
type fake struct {
	net.Conn
	from   string
	closed bool
}

func (f *fake) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(f.from))
}
func (f *fake) Close() error { f.closed = true; return nil }

func closed(p *Place) bool { return p.Conn.(*fake).closed }

// places are for so many connections, of which peers in 203.0.113.0/24 are trusted. A connection that enters has none where it
// gets nil.
func places(conns, perAddress int) (l *Places, enter func(from string) *Place) {
	trusted := []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}
	l = NewPlaces(nil, PlacesConfig{Conns: conns, PerAddress: perAddress, Trusted: trusted, Strangers: conns, Log: slog.New(slog.DiscardHandler)})
	return l, func(from string) *Place {
		if p := newPlace(l, &fake{from: from}); l.enter(p) {
			return p
		}
		return nil
	}
}

// TestWhoGivesUpAPlace: who has waited for longest, of the same address where that one has too many; nobody whose
// request is being answered.
func TestWhoGivesUpAPlace(t *testing.T) {
	const conns, perAddress = 40, 10
	l, enter := places(conns, perAddress)
	stranger := func(i int) string { return fmt.Sprintf("10.%d.%d.1:1", i/200, i%200) }
	served := enter(stranger(0))
	served.Keep()
	crowd := []*Place{}
	for range perAddress {
		crowd = append(crowd, enter("192.0.2.1:1"))
	}
	if p := enter("192.0.2.1:2"); p == nil || !closed(crowd[0]) || closed(crowd[1]) || closed(served) {
		t.Fatal("of an address with too many, not its oldest connection gave up its place")
	}
	crowd[1].Keep()
	crowd[1].Await() // behind all others
	for i := 1; l.open < conns; i++ {
		enter(stranger(i))
	}
	if p := enter("198.51.100.1:1"); p == nil || !closed(crowd[2]) || closed(crowd[1]) || closed(served) {
		t.Fatal("of all, not the connection that had waited for longest gave up its place")
	}
	for l.waiting.Len() > 0 {
		l.waiting.Front().Value.(*Place).Keep()
	}
	if enter("198.51.100.2:1") != nil {
		t.Error("a connection whose request is being answered gave up its place")
	}
	crowd[3].Await()
	crowd[3].Await() // it waits once
	next := enter("198.51.100.3:1")
	if next == nil || !closed(crowd[3]) || l.open != conns || l.waiting.Len() != 1 {
		t.Fatal("a connection that waits again did not give up its place")
	}
	next.Keep()
	if err := errors.Join(served.Close(), served.Close()); err != nil || l.open != conns-1 {
		t.Errorf("%d are open after one was closed: %v", l.open, err)
	}
	served.Await()
	if p := enter("198.51.100.2:1"); p == nil || l.open != conns || l.waiting.Len() != 1 {
		t.Error("the place of a closed connection is nobody's, or it waits although it is closed")
	}
}

// TestStrangersCostTheTrustedNoPlace: those have no limit of an address, and give up places after all others.
func TestStrangersCostTheTrustedNoPlace(t *testing.T) {
	_, enter := places(3, 1)
	proxies := []*Place{enter("203.0.113.1:1"), enter("203.0.113.1:2")}
	for i := range 5 {
		first, second := enter(fmt.Sprintf("192.0.2.%d:1", i)), enter("198.51.100.1:1")
		if !closed(first) || closed(second) || closed(proxies[0]) || closed(proxies[1]) {
			t.Fatal("a stranger's connection did not make room for another stranger's")
		}
	}
	if third := enter("203.0.113.1:3"); closed(proxies[0]) || third.IsLimited() {
		t.Error("the connection of a trusted peer made room while a stranger had one")
	}
	if enter("203.0.113.1:4"); !closed(proxies[0]) || closed(proxies[1]) {
		t.Error("of trusted peers, not the connection that had waited for longest made room")
	}
}

// TestStrangersAreBoundedTogether: however many addresses they have, and whether or not places are left.
func TestStrangersAreBoundedTogether(t *testing.T) {
	l, enter := places(100, 10)
	l.cfg.Strangers = 20
	all := []*Place{}
	for i := range l.cfg.Strangers {
		all = append(all, enter(fmt.Sprintf("10.0.%d.1:1", i)), enter("203.0.113.1:1"))
	}
	if p := enter("192.0.2.1:1"); p == nil || !closed(all[0]) || closed(all[1]) {
		t.Error("one stranger more does not have the place of the one that has waited for longest")
	}
	for e := l.waiting.Front(); e != nil; e = l.waiting.Front() {
		e.Value.(*Place).Keep()
	}
	if enter("192.0.2.2:1") != nil || enter("203.0.113.2:1") == nil {
		t.Error("while all are being answered there is a place for a stranger, or none for a proxy")
	}
}
