package measurement

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"

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
		if v := rig.Version(ctx, programs[name][0], programs[name][1:]...); v != "" {
			words = append(words, name+" "+v)
		}
	}
	return strings.Join(words, ", ")
}
