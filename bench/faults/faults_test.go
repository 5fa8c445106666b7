//go:build linux

package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/load"
	"github.com/ropeline/ropeline/bench/rig"
)

// built is ropeline, built with the tag faults from the code under test.
var built string

func TestMain(m *testing.M) {
	var err error
	if built, err = rig.Built(context.Background(), rig.Ropeline, "faults"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func testOptions(t *testing.T, policy string) options {
	return options{binary: built, dir: t.TempDir(), policy: policy, seed: 1, loopback: true, out: t.Output()}
}

// TestHurtMeshKeepsItsPromises is the mixture of faults in short: whole hours of
// it, and all others, are run by make measure NAME=faults and make soak.
func TestHurtMeshKeepsItsPromises(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes most of a minute")
	}
	s := scenario{
		Name: "test", Nodes: []string{"a1", "a2", "a3", "b1"},
		Room:  roomArgs{active: 60, perMinute: 900, session: 2 * time.Second},
		Crowd: load.Crowd{Burst: 80, Spread: 2 * time.Second, Rate: 25, Stay: time.Second, Think: 500 * time.Millisecond, Patience: 10 * time.Second},
		Script: func(r *run) {
			c := r.counter("a")
			r.mark("%s, the counter, is killed", c.Name)
			r.kill(c)
			r.sleep(2 * time.Second)
			r.start(c)
			r.pause(r.counter("a"), 2500*time.Millisecond)
			r.whole()
			r.cut(3*time.Second, "the sites are cut apart", func() error { return r.mesh.Net.CutSite("a") })
		},
	}
	r, err := execute(t.Context(), s, testOptions(t, escrow), 0)
	if err != nil {
		t.Fatal(err)
	}
	if broken := r.broken(); len(broken) > 0 {
		t.Errorf("broken:\n%s", strings.Join(broken, "\n"))
	}
	if r.found.tickets.Given < 150 || len(r.marks) < 4 {
		t.Errorf("%d tickets after %d faults: too little happened for this to tell anything", r.found.tickets.Given, len(r.marks))
	}
	if r.found.moves.Count == 0 {
		t.Error("no transfer of rights is on record: do the kinds of messages there still fit?")
	}
}

// TestRollingRestartLosesNobody is an upgrade in short; make measure NAME=rolling does it with more
// nodes and for longer.
func TestRollingRestartLosesNobody(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	s := scenario{
		Name: "rolling", Nodes: []string{"a1", "a2", "b1"}, Balanced: true, Args: drain,
		Room:   roomArgs{active: 40, perMinute: 900, session: 20 * time.Second},
		Crowd:  load.Crowd{Burst: 60, Spread: 2 * time.Second, Rate: 4, Stay: 4 * time.Second, Think: 500 * time.Millisecond},
		Script: rolling(3 * time.Second), Check: checkNothingLost,
	}
	r, err := execute(t.Context(), s, testOptions(t, escrow), 0)
	if errors.Is(err, rig.ErrCannot) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if broken := r.broken(); len(broken) > 0 {
		t.Errorf("broken:\n%s", strings.Join(broken, "\n"))
	}
	if r.loaded.Waited < 20 || r.loaded.Requests < 500 {
		t.Errorf("%d visitors waited and %d requests were sent: too little happened for this to tell anything", r.loaded.Waited, r.loaded.Requests)
	}
}

// TestHarnessSeesALimitThatIsPassed runs a policy that has no limit: were this
// not found, the other test would tell nothing.
func TestHarnessSeesALimitThatIsPassed(t *testing.T) {
	t.Parallel()
	s := scenario{
		Name: "open", Nodes: []string{"a1", "b1"}, Length: 3 * time.Second,
		Room:  roomArgs{active: 20, perMinute: 30, session: 3 * time.Second},
		Crowd: load.Crowd{Burst: 50, Spread: time.Second},
	}
	r, err := execute(t.Context(), s, testOptions(t, "open"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if r.found.active.Peak != 50 || r.found.rate.Peak != 50 || len(r.found.strict) != 2 || r.found.active.Over <= 0 {
		t.Errorf("got %d active, %d new, %q; want 50 and 50, and both said to be too many", r.found.active.Peak, r.found.rate.Peak, r.found.strict)
	}
	if r.loaded.PeakActive > r.found.active.Peak {
		t.Errorf("visitors saw %d of them inside, the records only %d", r.loaded.PeakActive, r.found.active.Peak)
	}
	if len(r.found.broken) > 0 {
		t.Errorf("got %q, want no ticket twice", r.found.broken)
	}
}

func TestNamespacesCutAndHeal(t *testing.T) {
	t.Parallel()
	n, err := rig.NewNamespaces()
	if err != nil {
		t.Skip(err)
	}
	m, err := rig.NewMesh(rig.Config{Binary: built, Dir: t.TempDir(), Names: []string{"a1", "a2", "b1"}, Args: wideRoom.args("even"), Origin: http.HandlerFunc(shop)}, n)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		left, err := filepath.Glob(fmt.Sprintf("/var/run/netns/rl%d*", os.Getpid()))
		if err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}()
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	sees := func(name string, want int) {
		t.Helper()
		deadline := time.Now().Add(25 * time.Second)
		for {
			s, err := m.Node(name).Status(t.Context())
			if err == nil && rig.Alive(s) == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s sees %d peers alive, want %d; %v", name, rig.Alive(s), want, err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	if err := n.CutSite("a"); err != nil {
		t.Fatal(err)
	}
	sees("b1", 0)
	sees("a1", 1)
	if err := n.Heal(); err != nil {
		t.Fatal(err)
	}
	sees("b1", 2)
}

// TestNothingEndsANode has each fault of the chaos happen once, and each of its network beside one of those.
func TestNothingEndsANode(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes most of a minute")
	}
	s := chaosScenario(0)
	s.Script = func(r *run) {
		for i, a := range chaos.nodes {
			if a.kind == fullDisk(1).kind && s.Disk == 0 {
				continue
			}
			if !a.alone {
				d := chaos.network[i%len(chaos.network)]
				r.mark("%s", d.come(r, "a1", "b2"))
			}
			n := r.victim()
			r.mark("%s: %s", n.Name, a.kind)
			cure := a.come(r, n)
			r.sleep(time.Second)
			rig.Must(r.mesh.Net.Heal())
			cure()
			r.wholeAgain()
		}
	}
	r, err := execute(t.Context(), s, testOptions(t, escrow), 0)
	switch {
	case errors.Is(err, rig.ErrCannot):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	if broken := r.broken(); len(broken) > 0 {
		t.Error(strings.Join(broken, "; "))
	}
}
