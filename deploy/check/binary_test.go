package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// binary builds ropeline once for all tests, as releases are built.
var binary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(built, "ropeline")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-tags", "grpcnotrace", "-o", path, "./cmd/ropeline")
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build ropeline: %w\n%s", err, out)
	}
	return path, nil
})

// built is the folder for what tests share.
var built string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "ropeline-check-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	built = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// container is how a node is started in one: its command, its files, and its variables.
type container struct {
	args  []string          // of the binary
	files map[string]string // by their paths in the container
	env   map[string]string
}

// run starts a node as the container would, but on free ports of loopback and in folders of
// the test, waits until its path at admin answers 200, and ends it.
func (c container) run(t *testing.T, path string) {
	t.Helper()
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	moved := strings.NewReplacer(c.move(t, dir)...)
	args := make([]string, len(c.args))
	for i, arg := range c.args {
		args[i] = moved.Replace(arg)
	}
	admin := freeAddress(t, "tcp")
	args = append(args, "--listen", freeAddress(t, "tcp"), "--admin", admin, "--mesh", freeAddress(t, "udp"))
	cmd := exec.Command(bin, args...)
	cmd.Env = []string{"STATE_DIRECTORY=" + filepath.Join(dir, "state")}
	for name, value := range c.env {
		cmd.Env = append(cmd.Env, name+"="+moved.Replace(value))
	}
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	err = answers(t.Context(), "http://"+admin+path, ended)
	cmd.Process.Kill()
	if errors.Is(err, errEnded) {
		t.Fatalf("ropeline %s: %v\n%s", strings.Join(args, " "), err, &log)
	}
	<-ended
	if err != nil {
		t.Errorf("ropeline %s: %v\n%s", strings.Join(args, " "), err, &log)
	}
}

// move writes the container's files into dir, and returns by what each path is replaced.
func (c container) move(t *testing.T, dir string) (paths []string) {
	t.Helper()
	for path := range c.files {
		paths = append(paths, path, filepath.Join(dir, filepath.Base(path)))
	}
	moved := strings.NewReplacer(paths...)
	for path, text := range c.files {
		if err := os.WriteFile(moved.Replace(path), []byte(moved.Replace(text)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return paths
}

var errEnded = errors.New("the node ended")

// answers returns nil when url answers 200, and errEnded if the process ends before.
func answers(ctx context.Context, url string, ended <-chan error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("no such answer within a minute"))
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case err := <-ended:
			return fmt.Errorf("%w before %s was answered: %w", errEnded, url, err)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// handedOut has the addresses that freeAddress has returned: one that is not bound yet is as free as ever.
var handedOut sync.Map

// freeAddress returns one at which nobody listens, and that it has not returned before. Its port is none that the
// system hands out by itself, and none that tests of nodes choose, as these may run beside.
func freeAddress(t *testing.T, network string) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 12000+rand.IntN(8000))
		var taken io.Closer
		var err error
		if network == "udp" {
			taken, err = net.ListenPacket(network, address)
		} else {
			taken, err = net.Listen(network, address)
		}
		if err == nil {
			taken.Close()
			if _, again := handedOut.LoadOrStore(address, true); !again {
				return address
			}
		}
	}
	t.Fatal("no free port found")
	return ""
}

// exitCode runs a command and returns how it ended.
func exitCode(t *testing.T, name string, args []string) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

// newSecret returns the text of a secret, made by the binary.
func newSecret(t *testing.T) string {
	t.Helper()
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), bin, "keygen").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
