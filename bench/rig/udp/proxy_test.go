package udp

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
)

// pair is a proxy with two nodes, a and b, that are plain sockets.
type pair struct {
	t     *testing.T
	proxy *Proxy
	sock  map[string]*net.UDPConn
	at    map[string]*net.UDPAddr // at the proxy

	mu    sync.Mutex // guards the following
	links map[[2]string]Link
}

func (p *pair) link(from, to string) Link {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.links[[2]string{from, to}]
}

func (p *pair) set(from, to string, l Link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.links[[2]string{from, to}] = l
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{t: t, sock: map[string]*net.UDPConn{}, at: map[string]*net.UDPAddr{}, links: map[[2]string]Link{}}
	p.proxy = NewProxy(1, p.link)
	t.Cleanup(func() { p.proxy.Close() })
	for _, name := range []string{"a", "b"} {
		s, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		address, err := p.proxy.Add(name, s.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		p.sock[name] = s
		if p.at[name], err = net.ResolveUDPAddr("udp4", address); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func (p *pair) send(from, to, text string) {
	p.t.Helper()
	if _, err := p.sock[from].WriteToUDP([]byte(text), p.at[to]); err != nil {
		p.t.Fatal(err)
	}
}

// receive returns what comes to a node within d, and from which address.
func (p *pair) receive(at string, d time.Duration) (string, *net.UDPAddr) {
	p.t.Helper()
	buf := make([]byte, 1500)
	p.sock[at].SetReadDeadline(time.Now().Add(d))
	n, src, err := p.sock[at].ReadFromUDP(buf)
	if err != nil {
		return "", nil
	}
	return string(buf[:n]), src
}

func TestBothSidesSeeTheAddressesOfTheProxy(t *testing.T) {
	p := newPair(t)
	p.send("a", "b", "hello")
	text, src := p.receive("b", time.Second)
	if text != "hello" || src.String() != p.at["a"].String() {
		t.Fatalf("b got %q from %v, want hello from %v", text, src, p.at["a"])
	}
	if _, err := p.sock["b"].WriteToUDP([]byte("back"), src); err != nil {
		t.Fatal(err)
	}
	if text, src = p.receive("a", time.Second); text != "back" || src.String() != p.at["b"].String() {
		t.Fatalf("a got %q from %v, want back from %v", text, src, p.at["b"])
	}
}

func TestCutOneWay(t *testing.T) {
	p := newPair(t)
	p.set("a", "b", Link{Cut: true})
	p.send("a", "b", "lost")
	p.send("b", "a", "heard")
	if text, _ := p.receive("a", time.Second); text != "heard" {
		t.Errorf("a got %q, want heard", text)
	}
	for p.proxy.Stats().Judged < 2 { // by the old link
		time.Sleep(time.Millisecond)
	}
	p.set("a", "b", Link{})
	p.send("a", "b", "again")
	if text, _ := p.receive("b", time.Second); text != "again" {
		t.Errorf("b got %q, want again", text)
	}
	if got := p.proxy.Stats(); got.Sent != 2 {
		t.Errorf("got %+v, want 2 sent", got)
	}
}

func TestNarrowLinkLosesLongPackets(t *testing.T) {
	p := newPair(t)
	p.set("a", "b", Link{Room: 4})
	p.send("a", "b", "12345")
	p.send("a", "b", "1234")
	if text, _ := p.receive("b", time.Second); text != "1234" {
		t.Errorf("b got %q, want what has 4 bytes alone", text)
	}
	if got := p.proxy.Stats().Sent; got != 1 {
		t.Errorf("%d packets were sent on, want 1", got)
	}
}

func TestDelay(t *testing.T) {
	p := newPair(t)
	p.set("a", "b", Link{Delay: 60 * time.Millisecond})
	began := time.Now()
	p.send("a", "b", "x")
	if text, _ := p.receive("b", time.Second); text != "x" {
		t.Fatalf("b got %q", text)
	}
	if took := time.Since(began); took < 60*time.Millisecond {
		t.Errorf("came after %v, want 60 ms or more", took)
	}
}

func TestReorderedPacketsComeLate(t *testing.T) {
	p := newPair(t)
	p.set("a", "b", Link{Reorder: 1, Late: 500 * time.Millisecond})
	p.send("a", "b", "first")
	for p.proxy.Stats().Judged == 0 { // by the old link
		time.Sleep(time.Millisecond)
	}
	p.set("a", "b", Link{})
	p.send("a", "b", "second")
	one, _ := p.receive("b", 5*time.Second)
	two, _ := p.receive("b", 5*time.Second)
	if one != "second" || two != "first" {
		t.Errorf("got %q, then %q; want second, then first", one, two)
	}
}

func TestLossAndDuplicates(t *testing.T) {
	p := newPair(t)
	p.set("a", "b", Link{Loss: 0.25, Duplicate: 0.5})
	const sent = 2000
	got := map[string]int{}
	came := uint64(0)
	drain := func(sent int) {
		for {
			if s := p.proxy.Stats(); s.Judged == uint64(sent) && came == s.Sent {
				return // all have been judged, and what was passed on has come
			}
			if text, _ := p.receive("b", 10*time.Millisecond); text != "" {
				got[text]++
				came++
			}
		}
	}
	for i := range sent {
		p.send("a", "b", fmt.Sprint(i))
		if i%100 == 99 {
			drain(i + 1) // before a buffer of the kernel is full, and loses some of its own
		}
	}
	twice := 0
	for _, n := range got {
		if n == 2 {
			twice++
		}
	}
	if n := len(got); n < sent*70/100 || n > sent*80/100 {
		t.Errorf("%d of %d came, want about three quarters", n, sent)
	}
	if share := float64(twice) / float64(len(got)); share < 0.42 || share > 0.58 {
		t.Errorf("%.2f of those that came did so twice, want about half", share)
	}
}

func TestStrangersAreNotPassedOn(t *testing.T) {
	p := newPair(t)
	s, err := net.DialUDP("udp4", nil, p.at["b"])
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	for p.proxy.Stats().Judged == 0 {
		time.Sleep(time.Millisecond)
	}
	if text, _ := p.receive("b", 50*time.Millisecond); text != "" {
		t.Errorf("b got %q from nobody", text)
	}
	if got := p.proxy.Stats().Sent; got != 0 {
		t.Errorf("%d packets were sent on", got)
	}
}
