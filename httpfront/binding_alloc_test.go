//go:build !race

package httpfront

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront/pass"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// admittedRequest is one with a pass, bound as by says.
func admittedRequest(tb testing.TB, by room.Binding) (*request, *pass.Keyring, *room.Settings) {
	tb.Helper()
	keys, err := pass.NewKeyring(pass.Key{ID: 1, Secret: [32]byte{1}})
	if err != nil {
		tb.Fatal(err)
	}
	s := newRoom(always).settings
	s.Front.Binding = by
	r := newRequest()
	if no := r.ask(asks("GET", "/", "User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0)")); no.code != 0 {
		tb.Fatal(no)
	}
	r.via.client = netip.MustParseAddr("2001:db8::7")
	now := time.Now()
	in := node.Pass{Visitor: node.VisitorID{3}, AcceptedAt: now, LeaseEnd: now.Add(time.Minute)}
	cookie, _, _ := bytes.Cut(r.appendSetCookie(nil, keys, in, &s, now), []byte(";"))
	r.fields, r.cookies = append(r.fields, field{[]byte("Cookie"), cookie}), true
	return r, keys, &s
}

func TestOpeningABoundPassCostsNoAllocation(t *testing.T) {
	for _, by := range []room.Binding{{}, {Address: true, UserAgent: true}} {
		r, keys, s := admittedRequest(t, by)
		if n := testing.AllocsPerRun(1000, func() {
			var to pass.Binding
			if p := r.openPass(keys, s, r.bind(&to, s)); !p.known || p.stale {
				t.Fatal("the pass does not open")
			}
		}); n != 0 {
			t.Errorf("%+v: %v allocations, want 0", by, n)
		}
	}
}

func BenchmarkOpenPass(b *testing.B) {
	for name, by := range map[string]room.Binding{"loose": {}, "bound": {Address: true, UserAgent: true}} {
		b.Run(name, func(b *testing.B) {
			r, keys, s := admittedRequest(b, by)
			b.ReportAllocs()
			for b.Loop() {
				var to pass.Binding
				if p := r.openPass(keys, s, r.bind(&to, s)); !p.known {
					b.Fatal("the pass does not open")
				}
			}
		})
	}
}
