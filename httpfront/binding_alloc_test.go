//go:build !race

package httpfront

import (
	"testing"

	"github.com/ropeline/ropeline/httpfront/gate/pass"
	"github.com/ropeline/ropeline/node/room"
)

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
	b.Run("again", func(b *testing.B) { // on the connection that has brought it before
		r, keys, s := admittedRequest(b, room.Binding{})
		r.before = new(memory)
		b.ReportAllocs()
		for b.Loop() {
			if !r.openPass(keys, s, nil).known {
				b.Fatal("the pass does not open")
			}
		}
	})
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

func TestAPassThatIsRememberedCostsNoAllocation(t *testing.T) {
	r, keys, s := admittedRequest(t, room.Binding{})
	r.before = new(memory)
	r.openPass(keys, s, nil)
	if n := testing.AllocsPerRun(1000, func() {
		if !r.openPass(keys, s, nil).known {
			t.Fatal("the pass does not open")
		}
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
