package transport

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// childSeed tells a copy of the test binary to be a node of its own.
const childSeed, childSecret = "TRANSPORT_TEST_SEED", "TRANSPORT_TEST_SECRET"

// runChild is a node that joins and then does nothing until it is killed.
func runChild(seed, secret string) error {
	s, err := ParseSecret(secret)
	if err != nil {
		return err
	}
	cfg := LAN()
	cfg.ID, cfg.Boot, cfg.Site, cfg.Listen, cfg.Seeds = testID(50), 1, "child", "127.0.0.1:0", []string{seed}
	if cfg.Identity, err = IdentityFromSecret(s, testKey(50), "child", cfg.Site, time.Now()); err != nil {
		return err
	}
	m, err := New(cfg)
	if err != nil {
		return err
	}
	return m.Run(context.Background())
}

// TestKilledProcess kills a real process with SIGKILL and waits until two
// others on the real network know.
func TestKilledProcess(t *testing.T) {
	t.Parallel() // it waits most of the time
	c := newCluster(t, nil)
	ns := c.nodes(2)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childSeed+"="+ns[0].addr.String(), childSecret+"="+c.secret.Text())
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, n := range ns {
		n.waitState(testID(50), Alive, 20*time.Second)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	_ = cmd.Wait()
	for _, n := range ns {
		n.waitState(testID(50), Failed, detectionGoal-time.Since(killed))
	}
	t.Logf("both knew after %v", time.Since(killed))
}
