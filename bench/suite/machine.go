package suite

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/peers"
)

// Machine is where a benchmark was run, and with what.
type Machine struct {
	Processor string            `json:"processor"` // its name; empty: the kernel does not say
	Cores     int               `json:"cores"`
	Kernel    string            `json:"kernel"`
	Go        string            `json:"go"`
	Load      string            `json:"load"`     // average load of the last minutes when the run ended, by which others can be seen
	Programs  map[string]string `json:"programs"` // versions of those that are there
}

func machineOf(ctx context.Context, c Config) Machine {
	m := Machine{Cores: runtime.NumCPU(), Go: runtime.Version(), Programs: map[string]string{}}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if found := regexp.MustCompile(`(?m)^model name\s*:\s*(.+)$`).FindSubmatch(b); found != nil {
			m.Processor = string(found[1])
		}
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = "Linux " + string(bytes.TrimSpace(b))
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load = strings.Join(strings.Fields(string(b))[:3], " ")
	}
	for name, ask := range map[string][]string{"nginx": {"nginx", "-v"}, "HAProxy": {"haproxy", "-v"}, "Redis": {"redis-server", "--version"}, "Caddy": {c.Caddy, "version"}} {
		if v := versionOf(ctx, ask); v != "" {
			m.Programs[name] = v
		}
	}
	return m
}

var version = regexp.MustCompile(`\d+\.\d+(\.\d+)?`)

// versionOf asks a program for its version; empty: it is not there, or does not say.
func versionOf(ctx context.Context, ask []string) string {
	path, err := peers.Find(ask[0])
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, ask[1:]...).CombinedOutput()
	if err != nil {
		return ""
	}
	return version.FindString(string(out))
}
