//go:build !race

package pass

import "testing"

func TestSealAndOpenDoNotAllocate(t *testing.T) {
	r := keyring(1, 1)
	p := admitted()
	buf := make([]byte, 0, MaxSize)
	by := from("2001:db8:7::/48", "Mozilla/5.0", true, true)
	var as bool
	var err error
	for _, c := range []struct {
		name string
		do   func()
	}{
		{"AppendSeal", func() { buf = r.AppendSeal(buf[:0], p, shopHost) }},
		{"Open", func() { _, err = r.Open(buf, shop, shopHost) }},
		{"AppendSealTo", func() { buf = r.AppendSealTo(buf[:0], p, shopHost, by) }},
		{"OpenFrom", func() { _, as, err = r.OpenFrom(buf, shop, shopHost, by) }},
	} {
		if n := testing.AllocsPerRun(1000, c.do); n != 0 || err != nil {
			t.Errorf("%s allocates %v times, want 0; it says %v", c.name, n, err)
		}
	}
	if !as {
		t.Error("the pass is to be sealed again")
	}
}
