package main

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/transport"
)

// findings runs the doctor, and returns what it says of each thing, and its exit code.
func findings(t *testing.T, args ...string) (map[string]finding, int) {
	t.Helper()
	cmd := newRootCommand()
	var out strings.Builder
	cmd.SetOut(&out)
	cmd.SetArgs(append([]string{"doctor"}, args...))
	err := cmd.ExecuteContext(t.Context())
	var told struct{ Findings []finding }
	if jsonErr := json.Unmarshal([]byte(out.String()), &told); jsonErr != nil {
		t.Fatalf("%s: %v, %v", out.String(), jsonErr, err)
	}
	by := map[string]finding{}
	for _, f := range told.Findings {
		if _, twice := by[f.Check]; twice || f.Found == "" || (f.Do == "") != (f.State == findOK) {
			t.Errorf("finding %+v", f)
		}
		by[f.Check] = f
	}
	if err == nil {
		return by, 0
	}
	return by, exitCode(err)
}

// TestTheDoctorBesideARunningNode asks with the flags of the node that runs, which another
// one joins.
func TestTheDoctorBesideARunningNode(t *testing.T) {
	inTestAll(t)
	t.Parallel()
	origin := startOrigin(t)
	nodes := serveMesh(t, origin, []string{"a", "b"})
	p := nodes[1]
	got, code := findings(t, append([]string{"--name", p.name, "--site", p.site, "--listen", p.http, "--admin", p.admin}, p.args...)...)
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	var secret, data string
	for i, a := range p.args {
		switch a {
		case "--secret-file":
			secret = p.args[i+1]
		case "--data-dir":
			data = p.args[i+1]
		}
	}
	for check, says := range map[string]string{
		"admin " + p.admin: "answers", "listen " + p.http: "in use, as of the node", "mesh UDP " + p.mesh: "in use, as of the node",
		"secret " + secret: "the newest is", "peer " + nodes[0].mesh: "a node answers", "origin " + origin: "takes connections",
	} {
		if f := got[check]; f.State != findOK || !strings.Contains(f.Found, says) {
			t.Errorf("%s: %+v, want ok with %q", check, f, says)
		}
	}
	other := filepath.Join(t.TempDir(), "other.key")
	if err := os.WriteFile(other, []byte(transport.NewSecret().Text()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := slices.Clone(p.args)
	args[slices.Index(args, secret)] = other
	strange, code := findings(t, append([]string{"--name", p.name, "--site", p.site, "--listen", p.http, "--admin", p.admin}, args...)...)
	if f := strange["peer "+nodes[0].mesh]; code != exitFailed || f.State != findFail || !strings.Contains(f.Found, "another secret") {
		t.Errorf("with another secret: %+v, exit code %d", f, code)
	}
	if f := got["data directory "+data]; f.State == findFail || f.Check == "" {
		t.Errorf("the data directory: %+v", f)
	}
	if entries, err := filepath.Glob(filepath.Join(data, ".ropeline-doctor-*")); err != nil || len(entries) != 0 {
		t.Errorf("it leaves %v behind, %v", entries, err)
	}
}

// TestTheDoctorFindsWhatIsWrong has everything be wrong.
func TestTheDoctorFindsWhatIsWrong(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	secret, file := filepath.Join(dir, "secret"), filepath.Join(dir, "file")
	for _, name := range []string{secret, file} {
		if err := os.WriteFile(name, []byte("nonsense"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	nobody := freeAddress(t)
	got, code := findings(t, "--origin", "http://"+freeAddress(t), "--listen", taken.Addr().String(), "--admin", freeAddress(t), "--mesh", freeAddress(t),
		"--secret-file", secret, "--join", nobody+",no-such-host.invalid:7946", "--data-dir", filepath.Join(file, "below"))
	if code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	for prefix, want := range map[string]finding{
		"listen ":                   {State: findFail, Found: "something else"},
		"secret ":                   {State: findFail, Found: "line 1"},
		"peer " + nobody:            {State: findWarn, Found: "no answer"},
		"peer no-such-host.invalid": {State: findFail, Found: "no address"},
		"origin ":                   {State: findFail, Found: "not reached"},
		"data directory ":           {State: findFail, Found: "cannot be written"},
		"mesh UDP ":                 {State: findOK, Found: "free"},
		"admin ":                    {State: findOK, Found: "free"},
	} {
		for check, f := range got {
			if strings.HasPrefix(check, prefix) && (f.State != want.State || !strings.Contains(f.Found, want.Found)) {
				t.Errorf("%s: %+v, want %s with %q", check, f, want.State, want.Found)
			}
		}
		found := false
		for check := range got {
			found = found || strings.HasPrefix(check, prefix)
		}
		if !found {
			t.Errorf("nothing is said of %s", prefix)
		}
	}
	if _, code := refusedDoctor(t, "--origin", "nonsense"); code != exitUsage {
		t.Errorf("flags that are refused: exit code %d", code)
	}
}

// refusedDoctor is for what is refused before anything is looked at.
func refusedDoctor(t *testing.T, args ...string) (string, int) {
	t.Helper()
	cmd := newRootCommand()
	var out strings.Builder
	cmd.SetOut(&out)
	cmd.SetArgs(append([]string{"doctor"}, args...))
	return out.String(), exitCode(cmd.ExecuteContext(t.Context()))
}

// TestHealthOfANode asks one that is ready, one that stops, and nobody.
func TestHealthOfANode(t *testing.T) {
	t.Parallel()
	p := startNode(t, "a", "one", "--origin", startOrigin(t), "--data-dir", t.TempDir(), "--drain-delay", "5s")
	at := "http://" + p.admin
	if got, code := says(t, t.Context(), at, "health", "--wait", "20s"); code != 0 || got != "ready\n" {
		t.Errorf("a node that is ready: %d %q", code, got)
	}
	p.Signal(syscall.SIGINT)
	p.await("is not ready any more", 10*time.Second, func(s node.Status) bool { return !s.Ready })
	if got, code := says(t, t.Context(), at, "health"); code != exitRefused || !strings.Contains(got, "being stopped") {
		t.Errorf("a node that is being stopped: %d %q", code, got)
	}
	if got, code := says(t, t.Context(), at, "health", "--alive"); code != 0 || got != "ok\n" {
		t.Errorf("whether it runs: %d %q", code, got)
	}
	if _, code := says(t, t.Context(), at, "health", "--wait", "-1s"); code != exitUsage {
		t.Errorf("a wait of less than nothing: %d", code)
	}
	if _, code := says(t, t.Context(), "127.0.0.1:1", "health", "--wait", "300ms"); code != exitNotReached {
		t.Errorf("nobody: %d", code)
	}
}

// TestTheServiceManagerIsTold when a node is ready, and when it stops.
func TestTheServiceManagerIsTold(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	t.Setenv("NOTIFY_SOCKET", socket)
	p := startNode(t, "a", "one", "--origin", startOrigin(t), "--data-dir", t.TempDir())
	hears := func(want string) {
		t.Helper()
		b := make([]byte, 100)
		if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := c.Read(b)
		if err != nil || string(b[:n]) != want {
			t.Errorf("it hears %q, %v; want %q", b[:n], err, want)
		}
	}
	hears("READY=1")
	if s, err := p.status(); err != nil || !s.Ready {
		t.Errorf("the node says that it is ready, and is %v, %v", s.Ready, err)
	}
	p.Signal(syscall.SIGINT)
	hears("STOPPING=1")
}

// TestAServiceManagerThatDoesNotReadHoldsUpNothing: with its socket full, a node takes visitors, ends at SIGTERM, and at once at
// the second one.
func TestAServiceManagerThatDoesNotReadHoldsUpNothing(t *testing.T) {
	to := &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"}
	manager, err := net.ListenUnixgram("unixgram", to)
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	other, err := net.DialUnix("unixgram", nil, to)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	for err == nil {
		_, err = other.Write([]byte("WATCHDOG=1"))
	}
	t.Setenv("NOTIFY_SOCKET", to.Name)
	for delay, signals := range map[string]int{"0s": 1, "1h": 2} {
		p := startNode(t, "a", "one", "--origin", startOrigin(t), "--data-dir", t.TempDir(), "--drain-delay", delay)
		p.await("is ready", 20*time.Second, ready)
		p.Signal(syscall.SIGTERM)
		if signals > 1 {
			p.stopAtOnce()
		}
		select {
		case <-p.Ended():
		case <-time.After(20 * time.Second):
			t.Fatalf("%d signals do not end the node", signals)
		}
	}
}

// TestAnswersOfQUIC tells a node from what else answers by UDP.
func TestAnswersOfQUIC(t *testing.T) {
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() {
		b := make([]byte, 2000)
		for {
			_, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			c.WriteTo([]byte("what is that?"), from)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := answersQUIC(ctx, c.LocalAddr().String()); err == nil {
		t.Error("what does not speak QUIC is taken for a node")
	}
}
