//go:build linux

package heavy

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
)

// TestMain lets the test be the origin, as the program is when it starts itself.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == Origin {
		if err := ServeOrigin(context.Background()); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestALightRun does everything with little, so that the target works when it is
// wanted. The slow clients are left out: a node gives them half a minute.
func TestALightRun(t *testing.T) {
	binary, err := rig.Built(t.Context(), rig.Ropeline)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := measure(t.Context(), plan{binary: binary, origin: []string{self, Origin}, body: 3 << 20, sockets: 20, hold: 10 * time.Millisecond, visitors: 2, alone: time.Millisecond}, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	text := table(rows)
	for _, want := range []string{
		"a body of 3.0 MiB up, with a length", "up, in chunks", "down, with a length", "down, in chunks", "20 WebSockets that say nothing for 10ms | ",
		"20 answer afterwards", "2 visitors who ask", "0 failed",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "broken") {
		t.Errorf("something did not hold:\n%s", text)
	}
}

func TestVerdictOnWebSockets(t *testing.T) {
	for _, c := range []struct {
		wanted, n, dead int
		want            string
	}{
		{10000, 10000, 0, "held"},
		{10000, 4900, 0, "held by 4900, **not tried** with the 10000 that are wanted: raise the limit of open files"},
		{10000, 10000, 3, "**broken**: 3 of 10000 are dead"},
		{10000, 4900, 3, "**broken**: 3 of 4900 are dead"},
	} {
		if got := socketsVerdict(c.wanted, c.n, c.dead); got != c.want {
			t.Errorf("%d of %d, %d dead: %s, want %s", c.n, c.wanted, c.dead, got, c.want)
		}
	}
}

func TestFilesForWebSockets(t *testing.T) {
	n, why, err := fit(10)
	if n != 10 || why != "" || err != nil {
		t.Errorf("for ten: got %d %q, %v", n, why, err)
	}
}
