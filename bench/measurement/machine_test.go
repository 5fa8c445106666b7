package measurement

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func TestTheMachineIsDescribed(t *testing.T) {
	got := thisMachine(t.Context(), map[string][]string{"a shell": {"sh", "-c", "echo shell 7.8.9"}, "nothing": {"there is no such program"}, "fails": {"sh", "-c", "echo 1.2; exit 1"}})
	for _, want := range []string{fmt.Sprintf("%d cores", runtime.NumCPU()), runtime.Version(), "a shell 7.8.9"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q without %q", got, want)
		}
	}
	if strings.Contains(got, "nothing") || strings.Contains(got, "fails") {
		t.Errorf("%q has programs that tell no version", got)
	}
}
