package rig

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Programs that [Built] builds.
const (
	Ropeline = "ropeline"
	Bench    = "ropeline-bench"
)

// shippedTag is what deploy/release.sh builds with; so are tests without the race detector, by the Makefile:
// each package is compiled once for both.
const shippedTag = "grpcnotrace"

// Built returns the path of a program, built of this checkout with these build tags, as it is shipped
// otherwise, but for paths in it. All tests and programs share it. It is built where something has
// changed; where not, it stays the file that it is, so that the results of tests that use it stay in Go's
// cache.
func Built(ctx context.Context, program string, tags ...string) (path string, err error) {
	err = Try(func() {
		root := Got(exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output())
		dir := filepath.Join(strings.TrimSpace(string(root)), "artifacts", "test")
		fresh := filepath.Join(dir, "build")
		Must(os.MkdirAll(fresh, 0o755))
		unlock := Got(lock(filepath.Join(fresh, "lock"))) // tests of several packages run at once
		defer func() { Must(unlock()) }()
		name := strings.Join(append([]string{program}, tags...), "-")
		path = filepath.Join(dir, name)
		made := filepath.Join(fresh, name)
		build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-tags", strings.Join(slices.Concat([]string{shippedTag}, tags), ","), "-o", made, "github.com/ropeline/ropeline/cmd/"+program)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		// By a shell: what a test opens itself is what its result in the cache hangs on.
		replace := exec.CommandContext(ctx, "sh", "-c", `cmp -s "$1" "$2" || { cp "$1" "$2.new" && mv "$2.new" "$2"; }`, "sh", made, path)
		for _, c := range []*exec.Cmd{build, replace} {
			if out, err := c.CombinedOutput(); err != nil {
				Must(fmt.Errorf("build %s: %w\n%s", name, err, out))
			}
		}
		Got(os.Stat(path))
	})
	return path, err
}
