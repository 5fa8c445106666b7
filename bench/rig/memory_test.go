package rig

import "testing"

func TestMemoryIsReadOfTheStatus(t *testing.T) {
	got, err := memoryIn("Name:\tx\nVmHWM:\t   40 kB\nVmRSS:\t   30 kB\nRssAnon:\t   20 kB\nRssFile:\t   10 kB\n")
	if want := (Memory{30 << 10, 20 << 10, 10 << 10, 40 << 10}); err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for _, bad := range []string{"", "VmRSS: 1 kB\n", "VmHWM: 1 kB\nVmRSS: x kB\nRssAnon: 1 kB\nRssFile: 1 kB\n"} {
		if got, err := memoryIn(bad); err == nil {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}
