// Package tiers holds which tests make test runs with the race detector, and which without.
package tiers

import (
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// TestOneGoroutineStartsNone holds that tests which are left out with the race detector have nothing to
// race with, and that make test runs their packages without it.
func TestOneGoroutineStartsNone(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	mixed := regexp.MustCompile(`(?m)^MIXED := (.*)$`).FindStringSubmatch(string(makefile))
	if mixed == nil {
		t.Fatal("the Makefile has no MIXED, the packages that are tested with and without the race detector")
	}
	packages, left := strings.Fields(mixed[1]), 0
	for _, dir := range packages {
		s, err := read(filepath.Join(root, dir))
		if err != nil {
			t.Fatal(err)
		}
		alone, starting := s.reaching(names("single.Goroutine")), s.starting()
		left += len(s.tests(alone))
		for name := range alone {
			if f := s[name]; f.mentionsAny(starting) {
				t.Errorf("%s: %s starts goroutines, and is left out with the race detector", dir, name)
			}
		}
	}
	if left < 100 {
		t.Errorf("%d tests are left out, there used to be more than 200: is it still by single.Goroutine?", left)
	}
	for _, dir := range leavingOut(t) {
		if !slices.Contains(packages, "./"+dir) {
			t.Errorf("%s leaves tests out with the race detector, and is not in MIXED of the Makefile", dir)
		}
	}
}

// TestAloneStartsNoGoroutine holds that what make test never runs with the race detector has nothing to
// race with.
func TestAloneStartsNoGoroutine(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	alone := regexp.MustCompile(`(?m)^ALONE := \$\(addprefix \./,((?:.*\\\n)*.*)\)$`).FindSubmatch(makefile)
	if alone == nil {
		t.Fatal("the Makefile has no ALONE, the packages that are tested without the race detector")
	}
	// Workers have simulations of their own (TestRunsShareNothing runs with the race detector), and no test
	// of bench/footprint measures processes.
	may := []string{"bench/explore", "bench/footprint", "bench/sim"}
	all := folders(t)
	for name := range strings.FieldsSeq(strings.ReplaceAll(string(alone[1]), "\\\n", "")) {
		below, whole := strings.CutSuffix(name, "/...")
		found := false
		for _, dir := range all {
			if dir != below && (!whole || !strings.HasPrefix(dir, below+"/")) {
				continue
			}
			found = true
			if starts(t, dir) && !slices.Contains(may, dir) {
				t.Errorf("%s starts goroutines, or imports sync, and is not tested with the race detector", dir)
			}
		}
		if !found {
			t.Errorf("there is no package %s", name)
		}
	}
}

// starts reports whether the code of a package, without its tests, has goroutines.
func starts(t *testing.T, dir string) bool {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	s := source{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		s.add(file)
		for _, i := range file.Imports {
			if i.Path.Value == `"sync"` || i.Path.Value == `"sync/atomic"` {
				return true
			}
		}
	}
	for _, f := range s {
		if f["go"] || f[".Go"] {
			return true
		}
	}
	return false
}

// leavingOut returns the folders whose tests are left out with the race detector.
func leavingOut(t *testing.T) (dirs []string) {
	t.Helper()
	for _, dir := range folders(t) {
		if dir == "bench/tiers" {
			continue
		}
		paths, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "/bench/tiers/single\"") {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// folders returns the folders of all packages, from the root. The root itself is not read: it has .git and
// artifacts, which every run changes, and then no result would stay in Go's cache.
func folders(t *testing.T) (dirs []string) {
	t.Helper()
	const module = "github.com/ropeline/ropeline/"
	out, err := exec.CommandContext(t.Context(), "go", "list", module+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for path := range strings.FieldsSeq(string(out)) {
		dirs = append(dirs, strings.TrimPrefix(path, module))
	}
	return dirs
}

func names(name string) func(function) bool {
	return func(f function) bool { return f[name] }
}

// starting returns what starts goroutines: the statement, two methods of libraries, and functions and
// methods that have one of these.
func (s source) starting() map[string]bool {
	found := map[string]bool{"go": true, ".Go": true, "synctest.Test": true}
	for name, f := range s {
		if f["go"] || f[".Go"] || f["synctest.Test"] {
			found[name] = true
		}
	}
	return found
}

func TestOneGoroutineIsHeld(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "x_test.go", `package x
func TestAlone(t *testing.T) { newWorld(t).run() }
func TestAtOnce(t *testing.T) { w := newWorld(t); go w.run() }
func TestInAGroup(t *testing.T) { w := newWorld(t); wg.Go(w.run) }
func TestByAHelper(t *testing.T) { w := newWorld(t); atOnce(w.run) }
func TestByAMethod(t *testing.T) { newWorld(t).crowd() }
func TestOther(t *testing.T) { atOnce(nil) }
func newWorld(t *testing.T) *world { single.Goroutine(t); return nil }
func atOnce(f func()) { go f() }
func (w *world) run() {}
func (w *world) crowd() { go w.run() }
`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	s := source{}
	s.add(file)
	var got []string
	for _, name := range s.tests(s.reaching(names("single.Goroutine"))) {
		if s[name].mentionsAny(s.starting()) {
			got = append(got, name)
		}
	}
	if want := []string{"TestAtOnce", "TestByAHelper", "TestByAMethod", "TestInAGroup"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
