package transport

import (
	"errors"
	"testing"
	"time"
)

func TestPinger(t *testing.T) {
	var p pinger
	const interval = 2 * time.Second
	at := func(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }
	if got := p.wait(at(1), interval); got > 0 {
		t.Errorf("first ping waits %v", got)
	}
	p.sent(100, at(1))
	if elapsed, ok := p.answered(100, at(31)); !ok || elapsed != at(30) {
		t.Errorf("answer: got %v, %v", elapsed, ok)
	}
	if _, ok := p.answered(100, at(32)); ok {
		t.Error("one ping was answered twice")
	}
	if got := p.wait(at(501), interval); got != at(1499) {
		t.Errorf("answered: next ping in %v, want 1.499s", got)
	}
	if got := p.silence(at(1900)); got != 0 {
		t.Errorf("answered: silent for %v", got)
	}
	// Unanswered pings are repeated, and silence counts from the first.
	for i := range 3 {
		if got := p.wait(at(2001+500*i), interval); got > 0 {
			t.Errorf("repetition %d waits %v", i, got)
		}
		p.sent(int64(200+i), at(2001+500*i))
	}
	if got := p.silence(at(3501)); got != silenceLimit {
		t.Errorf("silent for %v, want %v", got, silenceLimit)
	}
	// On a slow path the answer to an earlier ping ends the silence.
	if elapsed, ok := p.answered(200, at(3601)); !ok || elapsed != at(1600) {
		t.Errorf("late answer: got %v, %v", elapsed, ok)
	}
	if got := p.silence(at(3700)); got != 0 {
		t.Errorf("answered late: silent for %v", got)
	}
	for i := range int64(pingsKept + 1) {
		p.sent(300+i, at(4000))
	}
	if _, ok := p.answered(300, at(4001)); ok {
		t.Error("an answer from long ago counts")
	}
	if _, ok := p.answered(0, at(4001)); ok {
		t.Error("an answer to nothing counts")
	}
}

func TestStrikes(t *testing.T) {
	var s strikes
	a, b := testID(1), testID(2)
	logged, cut := 0, 0
	for i := range strikeLimit {
		log, ban := s.add(a, time.Duration(i)*time.Second)
		if log {
			logged++
		}
		if ban {
			cut++
		}
	}
	if logged != 1 || cut != 1 {
		t.Errorf("logged %d times, cut off %d times, want once each", logged, cut)
	}
	end := time.Duration(strikeLimit-1)*time.Second + banTime
	if !s.banned(a, end-1) || s.banned(a, end) || s.banned(b, 0) {
		t.Error("the wrong peer or time is banned")
	}
	// A new minute is a new count, and a new line in the log.
	if log, ban := s.add(a, 2*strikeSpan); !log || ban {
		t.Errorf("a minute later: got %v, %v", log, ban)
	}
	// Peers without end are forgotten rather than kept without end.
	for i := range 3 * strikePeers {
		s.add(PeerID{0: byte(i), 1: byte(i >> 8), 2: 1}, 0)
	}
	if len(s.peers) > strikePeers {
		t.Errorf("%d peers kept, at most %d may be", len(s.peers), strikePeers)
	}
}

func TestParsePeerID(t *testing.T) {
	id := testID(3)
	if got, err := ParsePeerID(id.String()); err != nil || got != id {
		t.Errorf("got %v, %v", got, err)
	}
	for _, s := range []string{"", "00", PeerID{}.String(), id.String() + "0", "zz" + id.String()[2:]} {
		if _, err := ParsePeerID(s); err == nil {
			t.Errorf("%q: accepted", s)
		}
	}
	if errors.Is(ErrClosed, ErrUnreachable) {
		t.Error("two errors that callers tell apart are the same")
	}
}
