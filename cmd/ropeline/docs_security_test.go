package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testDeclared = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	testNamed    = regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	fileNamed    = regexp.MustCompile("`([a-z][\\w/]*\\.go)`")
)

// declaredTests returns the names of all tests and fuzz targets.
func declaredTests(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, text := range testFiles(t) {
		for _, m := range testDeclared.FindAllSubmatch(text, -1) {
			names[string(m[1])] = true
		}
	}
	if len(names) < 100 {
		t.Fatalf("only %d tests were found", len(names))
	}
	return names
}

// testFiles returns the files of tests of all packages, by their paths. The root of the checkout itself is not
// read: it has .git and artifacts, which every run changes, and then no result would stay in Go's cache.
func testFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, name := range listed(t, module+"...") {
		paths, err := filepath.Glob(filepath.Join("../..", strings.TrimPrefix(name, module), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files[path] = text
		}
	}
	return files
}

// TestDocsOfSecurityNameWhatIsThere holds what pages say against threats and trouble to the code: each
// row has a file and a test, and they exist.
func TestDocsOfSecurityNameWhatIsThere(t *testing.T) {
	declared := declaredTests(t)
	for _, page := range []struct {
		name, head string // of the first column
		least      int    // rows
	}{{"security.md", "threat", 50}, {"faults.md", "trouble", 15}} {
		text, err := os.ReadFile("../../docs/" + page.name)
		if err != nil {
			t.Fatal(err)
		}
		rows, inside := 0, false // a table of these
		for line := range strings.Lines(string(text)) {
			switch {
			case strings.HasPrefix(line, "| "+page.head+" |"):
				inside = true
			case !strings.HasPrefix(line, "|"):
				inside = false
			case inside && strings.HasPrefix(line, "| "):
				rows++
				checkRow(t, line, declared)
			}
		}
		if rows < page.least {
			t.Errorf("only %d rows were found in %s", rows, page.name)
		}
	}
}

// checkRow reports what is wrong with one row: its third column has files, its fourth tests.
func checkRow(t *testing.T, line string, declared map[string]bool) {
	t.Helper()
	cells := strings.Split(strings.Trim(line, "| \n"), " | ")
	if len(cells) != 4 {
		t.Errorf("%d cells, want 4: %s", len(cells), line)
		return
	}
	files, tests := fileNamed.FindAllStringSubmatch(cells[2], -1), testNamed.FindAllStringSubmatch(cells[3], -1)
	if len(files) == 0 || len(tests) == 0 {
		t.Errorf("%q has %d files and %d tests", cells[0], len(files), len(tests))
	}
	if left := strings.Trim(fileNamed.ReplaceAllString(cells[2], "")+testNamed.ReplaceAllString(cells[3], ""), ", "); left != "" {
		t.Errorf("%q: %q is neither a file nor a test", cells[0], left)
	}
	for _, f := range files {
		if !isFile("../../" + f[1]) {
			t.Errorf("%q: there is no file %s", cells[0], f[1])
		}
	}
	for _, n := range tests {
		if !declared[n[1]] {
			t.Errorf("%q: there is no test %s", cells[0], n[1])
		}
	}
}

// TestDocsWalkThroughWhatIsThere holds the way of one request in docs/structure.md to the code: each
// step names a file and functions of it.
func TestDocsWalkThroughWhatIsThere(t *testing.T) {
	text, err := os.ReadFile("../../docs/structure.md")
	if err != nil {
		t.Fatal(err)
	}
	_, walk, ok := strings.Cut(string(text), "## One request")
	if !ok {
		t.Fatal("the page has no such part")
	}
	step := regexp.MustCompile("(?m)^\\| *\\d+ \\| `([\\w/.]+)` \\| ([^|]+) \\|")
	steps := step.FindAllStringSubmatch(walk, -1)
	if len(steps) < 10 || len(steps) >= 15 {
		t.Errorf("%d steps, want 10 to 14", len(steps))
	}
	for _, s := range steps {
		code, err := os.ReadFile("../../" + s[1])
		if err != nil {
			t.Error(err)
			continue
		}
		for name := range strings.SplitSeq(s[2], ", ") {
			name = strings.Trim(name, "`")
			if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + regexp.QuoteMeta(name) + `\(`).Match(code) {
				t.Errorf("%s has no function %q", s[1], name)
			}
		}
	}
}

// TestNothingUnpacksBodies: what is packed may be a thousand times as long.
func TestNothingUnpacksBodies(t *testing.T) {
	unpacks := regexp.MustCompile(`Body(Gunzip|Inflate|Unbrotli|Uncompressed|Unzstd)|"compress/|/(compress|brotli)[/"]`)
	files := 0
	err := filepath.WalkDir("../../httpfront", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		if found := unpacks.Find(text); found != nil {
			t.Errorf("%s: %s", path, found)
		}
		return err
	})
	if err != nil || files < 50 {
		t.Errorf("%d files were found, %v", files, err)
	}
}
