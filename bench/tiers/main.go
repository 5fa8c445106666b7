// Command tiers lists the tests that do less with -short, or nothing: for packages, as go list takes
// them, it prints the arguments of a go test that runs these tests alone. After make test they are
// the rest.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	args, err := rest(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "tiers:", err)
		os.Exit(1)
	}
	fmt.Println(strings.Join(args, " "))
}

// rest returns the arguments of go test for the tests of packages that ask for -short.
func rest(patterns []string) ([]string, error) {
	out, err := exec.Command("go", append([]string{"list", "-f", "{{.ImportPath}} {{.Dir}}"}, patterns...)...).Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("go list %s: %w", strings.Join(patterns, " "), err)
	}
	var names, packages []string
	for line := range strings.Lines(string(out)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		s, err := read(dir)
		if err != nil {
			return nil, err
		}
		if found := s.tests(s.reaching(asksForShort)); len(found) > 0 {
			names, packages = append(names, found...), append(packages, path)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no test of %s asks for -short: this would run all tests", strings.Join(patterns, " "))
	}
	slices.Sort(names)
	return append([]string{"-run", "^(" + strings.Join(slices.Compact(names), "|") + ")$"}, packages...), nil
}

// asksForShort reports whether a function itself asks whether the run is short. Whoever opens a
// browser does.
func asksForShort(f function) bool {
	return f["testing.Short"] || f["browsertest.New"]
}
