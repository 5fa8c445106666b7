package measurement

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

// thisMachine says where something is measured, and with what: "AMD EPYC, 2 cores, Linux 6.1, go1.26.8, nginx 1.22.1". Programs
// that are not there, or do not say their version, are left out; each is the command that prints it.
func thisMachine(ctx context.Context, programs map[string][]string) string {
	var words []string
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if found := regexp.MustCompile(`(?m)^model name\s*:\s*(.+)$`).FindSubmatch(b); found != nil {
			words = append(words, string(found[1]))
		}
	}
	words = append(words, fmt.Sprintf("%d cores", runtime.NumCPU()))
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		words = append(words, "Linux "+string(bytes.TrimSpace(b)))
	}
	words = append(words, runtime.Version())
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		if v := versionOf(ctx, programs[name]); v != "" {
			words = append(words, name+" "+v)
		}
	}
	return strings.Join(words, ", ")
}

var version = regexp.MustCompile(`\d+\.\d+(\.\d+)?`)

// versionOf asks a program for its version, and where it does not say, the file for the module that it was built from.
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
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return ""
	}
	return version.FindString(info.Main.Version)
}
