//go:build linux

package heavy

import (
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
)

// TestALightRun does everything with little, so that the target works when it is
// wanted. The slow clients are left out: a node gives them half a minute.
func TestALightRun(t *testing.T) {
	binary, err := rig.Built(t.Context(), rig.Ropeline)
	if err != nil {
		t.Fatal(err)
	}
	e := Entry()
	var file strings.Builder
	r := measurement.Run{Log: t.Output(), Out: t.Output()}
	r.Begin(&e, &file)
	p := plan{binary: binary, body: 3 << 20, sockets: 20, hold: 10 * time.Millisecond, visitors: 2, alone: 300 * time.Millisecond}
	if err := measure(t.Context(), p, &r); err != nil {
		t.Fatal(err)
	}
	if missed, err := r.End(t.Context()); missed > 0 || err != nil {
		t.Errorf("%d bounds are missed, %v", missed, err)
	}
	for _, row := range []string{"body=up,_with_a_length", "body=up,_in_chunks", "body=down,_with_a_length", "body=down,_in_chunks", "sockets", "visitors-beside=nobody"} {
		if !strings.Contains(file.String(), "BenchmarkHeavy/"+row+" 1 0 broken") {
			t.Errorf("it is not said that %s is not broken:\n%s", row, file.String())
		}
	}
}

func TestFilesForWebSockets(t *testing.T) {
	n, err := fit(10)
	if n != 10 || err != nil {
		t.Errorf("for ten: got %d, %v", n, err)
	}
}
