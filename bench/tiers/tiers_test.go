package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

func TestRestIsWhatAsksForShort(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "x_test.go", `package x
func TestItself(t *testing.T) { if testing.Short() { t.Skip() } }
func TestByAHelper(t *testing.T) { leaveOut(t) }
func TestByTwo(t *testing.T) { t.Run("x", begin) }
func TestByAMethod(t *testing.T) { newThing(t).start() }
func TestInABrowser(t *testing.T) { ctx := browsertest.New(t, 1, 1); use(ctx) }
func TestWithALoop(t *testing.T) { for range 3 { go func() { seeds() }() } }
func TestWhole(t *testing.T) { other.leaveOut(t); use(x.Short()) }
func FuzzSome(f *testing.F) { f.Fuzz(func(t *testing.T, n int) { leaveOut(t) }) }
func BenchmarkSome(b *testing.B) { seeds() }
func leaveOut(t *testing.T) { if testing.Short() { t.Skip() } }
func begin(t *testing.T) { leaveOut(t) }
func seeds() int { if testing.Short() { return 1 }; return 4 }
func use(any) {}
func newThing(t *testing.T) *thing { return nil }
func (x *thing) start() { leaveOut(x.t) }
func TestMain(m *testing.M) { seeds() }
`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	s := source{}
	s.add(file)
	want := []string{"FuzzSome", "TestByAHelper", "TestByAMethod", "TestByTwo", "TestInABrowser", "TestItself", "TestWithALoop"}
	if got := s.tests(s.reaching(asksForShort)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestNoOtherPackageAsksForShort: a helper of another package that did would hide the tests that call
// it; asksForShort names the one that there is.
func TestNoOtherPackageAsksForShort(t *testing.T) {
	seen := false
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "testing.Short()") {
			return err
		}
		if filepath.Base(filepath.Dir(path)) == "browsertest" {
			seen = true
		} else {
			t.Errorf("%s asks for -short: say so in asksForShort, or do it in a test file", path)
		}
		return nil
	})
	if err != nil || !seen {
		t.Errorf("browsertest was seen to ask: %v, error %v", seen, err)
	}
}
