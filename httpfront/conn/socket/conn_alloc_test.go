//go:build unix && !race

package socket

import "testing"

func TestAllocsOfReadsAndWrites(t *testing.T) {
	here, there := pair(t)
	p := []byte("hello")
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := here.Write(p); err != nil {
			t.Fatal(err)
		}
		if _, err := there.Read(p); err != nil {
			t.Fatal(err)
		}
		if _, err := there.Write(p); err != nil {
			t.Fatal(err)
		}
		if _, err := here.Read(p); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
