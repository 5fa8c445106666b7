package suite

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ropeline/ropeline/bench/peers"
)

// shot is what a generator is to send.
type shot struct {
	address string
	heads   [][]byte // in turn
	conns   int
	lasts   time.Duration
	dir     string // for files
}

// answers is what came of it.
type answers struct {
	rate      float64
	p50, p99  time.Duration
	answered  int64
	bad       int64 // neither 2xx nor 3xx
	failed    int64 // no answer
	generator float64
}

// wrk sends with the program wrk, in the closed model.
func wrk(ctx context.Context, s shot) (a answers, err error) {
	script := filepath.Join(s.dir, "wrk.lua")
	if err := os.WriteFile(script, luaOf(s.heads), 0o600); err != nil {
		return a, err
	}
	cmd := exec.CommandContext(ctx, "taskset", "-c", strconv.Itoa(int(peers.OfLoad)), "wrk", "-t1", fmt.Sprintf("-c%d", s.conns), "--latency",
		fmt.Sprintf("-d%ds", max(1, int(s.lasts.Seconds()))), "-s", script, "http://"+s.address+"/")
	begun := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return a, fmt.Errorf("wrk: %w: %s", err, out)
	}
	a, err = parseWrk(string(out))
	if used, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		a.generator = float64(used.Utime.Nano()+used.Stime.Nano()) / float64(time.Since(begun))
	}
	return a, err
}

// luaOf has wrk send heads in turn.
func luaOf(heads [][]byte) []byte {
	var b bytes.Buffer
	b.WriteString("local heads = {\n")
	for _, h := range heads {
		fmt.Fprintf(&b, "%q,\n", h)
	}
	b.WriteString("}\nlocal i, n = 0, #heads\nfunction request() i = i % n + 1 return heads[i] end\n")
	return b.Bytes()
}

func parseWrk(out string) (a answers, err error) {
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		switch {
		case len(f) > 2 && f[1] == "requests" && f[2] == "in":
			a.answered, _ = strconv.ParseInt(f[0], 10, 64)
		case len(f) == 2 && f[0] == "Requests/sec:":
			a.rate, _ = strconv.ParseFloat(f[1], 64)
		case len(f) == 2 && f[0] == "50%":
			a.p50, _ = time.ParseDuration(f[1])
		case len(f) == 2 && f[0] == "99%":
			a.p99, _ = time.ParseDuration(f[1])
		case len(f) > 2 && f[0] == "Non-2xx":
			a.bad, _ = strconv.ParseInt(f[len(f)-1], 10, 64)
		case len(f) > 2 && f[0] == "Socket": // Socket errors: connect 0, read 0, write 0, timeout 0
			for _, n := range f[2:] {
				n, _ := strconv.ParseInt(strings.TrimSuffix(n, ","), 10, 64)
				a.failed += n
			}
		}
	}
	if a.answered == 0 {
		return a, fmt.Errorf("wrk: %s", out)
	}
	return a, nil
}
