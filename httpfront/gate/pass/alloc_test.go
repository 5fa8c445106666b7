//go:build !race

package pass

import "testing"

func TestSealAndOpenDoNotAllocate(t *testing.T) {
	r := keyring(t, 1, 1)
	p := admitted()
	buf := make([]byte, 0, MaxSize)
	if n := testing.AllocsPerRun(1000, func() { buf = r.AppendSeal(buf[:0], p, shopHost) }); n != 0 {
		t.Errorf("AppendSeal allocates %v times, want 0", n)
	}
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := r.Open(buf, shop, shopHost); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("Open allocates %v times, want 0", n)
	}
	by := from("2001:db8:7::/48", "Mozilla/5.0", true, true)
	if n := testing.AllocsPerRun(1000, func() { buf = r.AppendSealTo(buf[:0], p, shopHost, by) }); n != 0 {
		t.Errorf("AppendSealTo allocates %v times, want 0", n)
	}
	if n := testing.AllocsPerRun(1000, func() {
		if _, as, err := r.OpenFrom(buf, shop, shopHost, by); err != nil || !as {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("OpenFrom allocates %v times, want 0", n)
	}
}
