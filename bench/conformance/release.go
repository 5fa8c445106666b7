//go:build unix

package conformance

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// release is a version of a program, and how the program says which it is.
type release struct{ program, asked, version string }

// check returns an error if a program is older than this release of it, which is the oldest that
// an example is right with. One that is not here is no error.
func (r release) check(ctx context.Context, o options, example string) error {
	program := r.program
	if program == "caddy" {
		program = o.caddy
	}
	path, err := find(program)
	if r.program == "" || err != nil {
		return nil
	}
	said, err := exec.CommandContext(ctx, path, r.asked).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ask %s for its version: %w: %s", path, err, said)
	}
	version := regexp.MustCompile(`\d+(\.\d+)+`).FindString(string(said))
	if slices.Compare(numbers(version), numbers(r.version)) < 0 {
		return fmt.Errorf("%s is of version %q, and docs/examples/%s is right with %s and newer: install a newer one, or put its directory first in PATH", path, version, example, r.version)
	}
	return nil
}

// numbers returns those that a version is made of.
func numbers(version string) (all []int) {
	for part := range strings.SplitSeq(version, ".") {
		n, _ := strconv.Atoi(part) // of digits alone; "" is older than anything
		all = append(all, n)
	}
	return all
}
