// Package machine says where something was measured, and with what.
package machine

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
)

// Machine is where something was measured, and with what.
type Machine struct {
	Processor string            `json:"processor"` // its name; empty: the kernel does not say
	Cores     int               `json:"cores"`
	Kernel    string            `json:"kernel"`
	Go        string            `json:"go"`
	Load      string            `json:"load"`               // average load of the last minutes when the run ended, by which others can be seen
	Programs  map[string]string `json:"programs,omitempty"` // versions of those that are there
}

// Of returns this machine, with the versions of programs, by their names. Each is the command that prints its version.
func Of(ctx context.Context, programs map[string][]string) Machine {
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
	for name, ask := range programs {
		if v := versionOf(ctx, ask); v != "" {
			m.Programs[name] = v
		}
	}
	return m
}

// String returns the machine as a list of words: "AMD EPYC, 2 cores, Linux 6.1, go1.26.8, nginx 1.22.1".
func (m Machine) String() string {
	words := []string{}
	if m.Processor != "" {
		words = append(words, m.Processor)
	}
	if m.Cores == 1 {
		words = append(words, "1 core")
	} else {
		words = append(words, fmt.Sprintf("%d cores", m.Cores))
	}
	if m.Kernel != "" {
		words = append(words, m.Kernel)
	}
	words = append(words, m.Go)
	for _, name := range slices.Sorted(maps.Keys(m.Programs)) {
		words = append(words, name+" "+m.Programs[name])
	}
	return strings.Join(words, ", ")
}

var version = regexp.MustCompile(`\d+\.\d+(\.\d+)?`)

// versionOf asks a program for its version, and where it does not say, what it was built from; empty: it is not there, or
// neither is known.
func versionOf(ctx context.Context, ask []string) string {
	path, err := rig.Find(ask[0])
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, ask[1:]...).CombinedOutput()
	if v := version.FindString(string(out)); err == nil && v != "" {
		return v
	}
	return builtFrom(path)
}

// builtFrom returns the version of the module whose program a file is, if that is in Go; empty: the file does not say.
func builtFrom(path string) string {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return ""
	}
	return moduleVersion(info)
}

func moduleVersion(info *buildinfo.BuildInfo) string { return version.FindString(info.Main.Version) }
