package main

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const module = "github.com/ropeline/ropeline/"

// TestImportsHaveARuleForEachPackage holds what depguard does not tell: which package no rule is for,
// and which rule is for a package that is not there. It also tells what rules forbid, as the tests run
// more often than make lint.
func TestImportsHaveARuleForEachPackage(t *testing.T) {
	type rule struct {
		Mode  string `yaml:"list-mode"`
		Files []string
		Allow []string
		Deny  []struct{ Pkg string }
	}
	var config struct {
		Linters struct {
			Settings struct {
				Depguard struct{ Rules map[string]rule }
			}
		}
	}
	text, err := os.ReadFile("../../.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	packages, imports := listed(t, module+"..."), map[string][]string{}
	for _, pair := range listed(t, "-f", `{{range .Imports}}{{$.ImportPath}}={{.}}{{"\n"}}{{end}}`, module+"...") {
		of, what, _ := strings.Cut(pair, "=")
		imports[of] = append(imports[of], what)
	}
	ruled := map[string][]string{} // the rules about what each package imports of ours
	for name, r := range config.Linters.Settings.Depguard.Rules {
		for _, glob := range r.Files {
			for _, of := range packagesOf(glob) {
				if !slices.Contains(packages, module+of) {
					t.Errorf("rule %s is for %s; there is no such package", name, of)
				}
				if r.Mode == "lax" {
					ruled[of] = append(ruled[of], name)
				}
				for _, what := range imports[module+of] {
					denied := slices.ContainsFunc(r.Deny, func(d struct{ Pkg string }) bool { return matches(d.Pkg, what) })
					allowed := strings.HasPrefix(glob, "!") || slices.ContainsFunc(r.Allow, func(a string) bool { return matches(a, what) })
					if denied && !allowed {
						t.Errorf("%s imports %s, which rule %s forbids", of, what, name)
					}
				}
			}
		}
	}
	for _, p := range packages {
		if rules := ruled[strings.TrimPrefix(p, module)]; len(rules) != 1 {
			t.Errorf("%s has the rules %v; .golangci.yml must have one that says what it may import", p, rules)
		}
	}
}

// matches reports whether a package is meant by a line of a rule: it begins so, or is so if that ends in $.
func matches(line, pkg string) bool {
	exact, whole := strings.CutSuffix(line, "$")
	return whole && pkg == exact || !whole && strings.HasPrefix(pkg, line)
}

var fileGlob = regexp.MustCompile(`^!?\*\*/([a-z0-9/-]*)(?:\{([^}]*)\}([a-z0-9/-]*))?/\*$`)

// packagesOf lists the packages that a glob of files is for: a and b/c of "**/x/{a,b/c}/*".
// There are none for what spans folders.
func packagesOf(glob string) []string {
	m := fileGlob.FindStringSubmatch(glob)
	if m == nil {
		return nil
	}
	var all []string
	for part := range strings.SplitSeq(m[2], ",") {
		all = append(all, m[1]+part+m[3])
	}
	return all
}

// TestImportsOfTheProgramAreOfTheProduct holds what is linked into ropeline to what a site needs: it
// draws nothing and calculates no statistics, and of bench it has the crowds of load and demo, and the
// processes of demo. Everything else is for ropeline-bench.
func TestImportsOfTheProgramAreOfTheProduct(t *testing.T) {
	linked := listed(t, "-deps", module+"cmd/ropeline")
	if !slices.Contains(linked, module+"httpfront") {
		t.Fatalf("of the packages of ropeline, httpfront is not among these: %v", linked)
	}
	for _, name := range linked {
		if why := foreign(name); why != "" {
			t.Errorf("%s is linked into ropeline: %s", name, why)
		}
	}
	for _, name := range []string{
		"gonum.org/v1/plot/vg", "codeberg.org/go-fonts/liberation/liberationsansbold", "codeberg.org/go-latex/latex/tex",
		"codeberg.org/go-pdf/fpdf", "golang.org/x/image/font", "image/png", "github.com/google/pprof/profile", "golang.org/x/perf/benchfmt", module + "bench/sim",
	} {
		if foreign(name) == "" {
			t.Errorf("%s might be linked into ropeline", name)
		}
	}
}

// foreign says why a package is not for a product; "": it may be.
func foreign(name string) string {
	for _, part := range strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == '.' || r == '-' }) {
		if slices.Contains([]string{"gonum", "image", "font", "fonts", "freetype", "latex", "pdf", "fpdf", "svgo", "perf", "moremath", "benchmath"}, part) {
			return "it draws, sets type or judges measurements"
		}
	}
	if name != "runtime/pprof" && name != "net/http/pprof" && strings.HasSuffix(strings.TrimSuffix(name, "/profile"), "pprof") {
		return "it writes profiles, where the runtime's own are all that --profiles shows"
	}
	of, ours := strings.CutPrefix(name, module)
	if ours && strings.HasPrefix(of, "bench/") && !slices.Contains([]string{"bench/accesslog", "bench/load", "bench/order", "bench/rig", "bench/rig/udp", "bench/faults/record"}, of) {
		return "it measures"
	}
	return ""
}

func listed(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return strings.Fields(string(out))
}
