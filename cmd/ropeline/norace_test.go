package main

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// TestNoTestEscapes holds that tests which are left out with the race detector are
// those that make test runs without it: with Alloc in their names, in files whose names
// end in alloc_test.go.
func TestNoTestEscapes(t *testing.T) {
	found := 0
	for path, text := range testFiles(t) {
		names, err := leftOut(path, text)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if found++; !runsAlone(path, name) {
				t.Errorf("%s: %s never runs: make test has the race detector everywhere but in tests with Alloc in their names, in files *alloc_test.go", path, name)
			}
		}
	}
	if found == 0 {
		t.Error("no test is left out with the race detector; there used to be")
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{" -run Alloc ", " -name '*alloc_test.go' "} {
		if !strings.Contains(string(makefile), part) {
			t.Errorf("the Makefile does not say%s", part)
		}
	}
}

// runsAlone reports whether make test runs a test without the race detector.
func runsAlone(path, name string) bool {
	return strings.Contains(name, "Alloc") && strings.HasSuffix(path, "alloc_test.go")
}

// leftOut returns the tests of a file if the race detector leaves it out.
func leftOut(path string, text []byte) ([]string, error) {
	head, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		return nil, err
	}
	out := false
	for _, group := range head.Comments {
		for _, c := range group.List {
			if c.Pos() > head.Package || !constraint.IsGoBuild(c.Text) {
				continue
			}
			expr, err := constraint.Parse(c.Text)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			for _, others := range []bool{true, false} { // whichever system it is
				with := func(race bool) bool {
					return expr.Eval(func(tag string) bool { return tag == "race" && race || tag != "race" && others })
				}
				out = out || with(false) && !with(true)
			}
		}
	}
	if !out {
		return nil, nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if ok && f.Recv == nil && f.Name.Name != "TestMain" && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Fuzz")) {
			names = append(names, f.Name.Name)
		}
	}
	return names, nil
}

func TestLeftOut(t *testing.T) {
	const test = "package p\n\nfunc TestX(t *testing.T) {}\n"
	for head, want := range map[string]int{
		"":                                     0,
		"//go:build race\n\n":                  0,
		"//go:build linux\n\n":                 0,
		"//go:build race || !race\n\n":         0,
		"//go:build !race\n\n":                 1,
		"//go:build !race && linux\n\n":        1,
		"//go:build !race && !windows\n\n":     1,
		"// Why.\n\n//go:build (!race)\n\n":    1,
		"//go:build !(race && linux) && a\n\n": 1,
	} {
		got, err := leftOut("x_test.go", []byte(head+test))
		if err != nil || len(got) != want {
			t.Errorf("%q: got %v, %v, want %d", head, got, err, want)
		}
	}
	for path, want := range map[string]bool{"node/alloc_test.go": true, "node/decide_alloc_test.go": true, "node/decide_test.go": false} {
		if runsAlone(path, "TestItDoesNotAllocate") != want || runsAlone(path, "TestIt") {
			t.Errorf("%s: got the other", path)
		}
	}
}
