package node

import (
	"errors"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/ticket"
)

func TestWhatANodeSaysOfARoom(t *testing.T) {
	for _, s := range []said{{}, {ticket.Amount{Places: 1, Rate: maxAmount}, time.Second}, {session: maxSession}} {
		if got, err := decodeSaid(s.encode()); err != nil || got != s {
			t.Errorf("%+v became %+v, %v", s, got, err)
		}
	}
	for _, s := range []said{
		{limits: ticket.Amount{Places: -1}},
		{limits: ticket.Amount{Rate: maxAmount + 1}},
		{session: -time.Second},
		{session: maxSession + time.Millisecond},
	} {
		if _, err := decodeSaid(s.encode()); !errors.Is(err, errMalformed) {
			t.Errorf("%+v: %v, want %v", s, err, errMalformed)
		}
	}
	if _, err := decodeSaid(append(said{}.encode(), 0)); !errors.Is(err, errMalformed) {
		t.Errorf("with a byte too many: %v", err)
	}
}

func FuzzDecodeSaid(f *testing.F) {
	f.Add(said{ticket.Amount{Places: 10, Rate: 20}, time.Minute}.encode())
	f.Add(encodeAmount(ticket.Amount{Places: 10, Rate: 20}))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decodeSaid(data)
		if err != nil {
			return
		}
		if again, err := decodeSaid(s.encode()); err != nil || again != s {
			t.Errorf("%+v became %+v, %v", s, again, err)
		}
	})
}
