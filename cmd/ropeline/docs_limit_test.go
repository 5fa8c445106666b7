package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// source is what the packages that an argument is about declare.
type source struct {
	names   map[string]bool // of everything, methods and fields included
	members map[string]bool // Type.Member, for methods and fields
	rules   []string        // constants of the type Rules
}

func readSource(t *testing.T, dirs ...string) source {
	t.Helper()
	s := source{names: map[string]bool{}, members: map[string]bool{}}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				s.add(d)
			}
		}
	}
	return s
}

func (s *source) add(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		s.names[d.Name.Name] = true
		if d.Recv != nil {
			s.members[baseName(d.Recv.List[0].Type)+"."+d.Name.Name] = true
		}
	case *ast.GenDecl:
		rules := false // whether the constants of this block are rules: the first says so
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				rules = rules || spec.Type != nil && baseName(spec.Type) == "Rules"
				for _, name := range spec.Names {
					s.names[name.Name] = true
					if rules && d.Tok == token.CONST {
						s.rules = append(s.rules, name.Name)
					}
				}
			case *ast.TypeSpec:
				s.names[spec.Name.Name] = true
				if of, ok := spec.Type.(*ast.StructType); ok {
					s.addFields(spec.Name.Name, of)
				}
			}
		}
	}
}

func (s *source) addFields(of string, t *ast.StructType) {
	for _, field := range t.Fields.List {
		for _, name := range field.Names {
			s.names[name.Name] = true
			s.members[of+"."+name.Name] = true
		}
	}
}

// baseName returns the name of a type, or of what it points to, without the types
// that it is given.
func baseName(e ast.Expr) string {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	if generic, ok := e.(*ast.IndexExpr); ok {
		e = generic.X
	}
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// testNames returns the names of the tests in some folders.
func testNames(t *testing.T, folders ...string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, folder := range folders {
		files, err := filepath.Glob(folder + "/*_test.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range testFunc.FindAllSubmatch(text, -1) {
				names[string(m[1])] = true
			}
		}
	}
	return names
}

var (
	quoted     = regexp.MustCompile("`[^`]+`")
	memberName = regexp.MustCompile(`^\w+\.\w+$`)
	codeName   = regexp.MustCompile(`^\w+$`)
	flagName   = regexp.MustCompile(`^(?:--)?([a-z]+(?:-[a-z]+)+)$`)
)

// written is what a measurement has written into a page.
var written = regexp.MustCompile(`(?s)<!-- begin: written by .*?<!-- end -->`)

// TestDocsOfTheLimitNameWhatIsThere holds the argument why the limit holds to the
// code that it points at: every file, function, field and setting that it names exists, and
// every rule is named.
func TestDocsOfTheLimitNameWhatIsThere(t *testing.T) {
	text, err := os.ReadFile("../../docs/limit.md")
	if err != nil {
		t.Fatal(err)
	}
	code := readSource(t, "../../node", "../../node/ticket")
	if !code.members["Rights.Give"] || !code.members["Room.mu"] || len(code.rules) < 10 {
		t.Fatalf("the source was not understood: %d names, rules %v", len(code.names), code.rules)
	}
	// Words that are names in messages and files, not in Go.
	for _, word := range []string{"active", "admitted", "escrow", "hold", "open", "seen", "waiting"} {
		code.names[word] = true
	}
	tests := testNames(t, "../../node", "../../node/ticket", "../../node/bootstrap", "../../bench/faults", "../../bench/sim", ".")
	flags := newRunCommand().Flags()
	named := map[string]bool{}
	said := written.ReplaceAllString(string(text), "") // tables have units, and not names of the code
	for _, q := range quoted.FindAllString(strings.ReplaceAll(said, "\n", " "), -1) {
		named[strings.Trim(q, "`")] = true
	}
	found := 0
	for _, name := range slices.Sorted(maps.Keys(named)) {
		var there bool
		switch {
		case strings.HasSuffix(name, ".go"):
			there = isFile("../../"+name) || isFile("../../node/ticket/"+name)
		case memberName.MatchString(name):
			there = code.members[name]
		case strings.HasPrefix(name, "Test"):
			there = tests[name]
		case codeName.MatchString(name):
			there = code.names[name]
		case flagName.MatchString(name):
			there = flags.Lookup(flagName.FindStringSubmatch(name)[1]) != nil
		default:
			continue // a formula, a folder
		}
		found++
		if !there {
			t.Errorf("docs/limit.md names %s, which is not there", name)
		}
	}
	if found < 50 {
		t.Errorf("only %d names were found", found)
	}
	for _, rule := range code.rules {
		if !named[rule] {
			t.Errorf("docs/limit.md does not say what the rule %s is for", rule)
		}
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// TestDocsShowEveryPackage has a contributor find every package in one table.
func TestDocsShowEveryPackage(t *testing.T) {
	text, err := os.ReadFile("../../docs/structure.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range listed(t, module+"...") {
		name := strings.TrimPrefix(p, module)
		if strings.Contains(name, "internal/") || name == "cmd/ropeline" {
			continue // no business of others; the one at the top of the drawing
		}
		if !strings.Contains(string(text), "\n| `"+name+"` |") {
			t.Errorf("docs/structure.md does not explain %s", name)
		}
	}
}

var pageLink = regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)

// TestDocsLinkToWhatIsThere follows every link between pages, and to headings.
func TestDocsLinkToWhatIsThere(t *testing.T) {
	pages := []string{"../../README.md"}
	err := filepath.WalkDir("../../docs", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil || len(pages) < 5 {
		t.Fatalf("found %v, %v", pages, err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range pageLink.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target := page
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(page), m[1])
			}
			if dir, err := os.Stat(target); err == nil && dir.IsDir() {
				continue
			}
			linked, err := os.ReadFile(target)
			if err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			} else if m[2] != "" && !hasHeading(string(linked), m[2][1:]) {
				t.Errorf("%s links to %s%s, and there is no such heading", page, m[1], m[2])
			}
		}
	}
}

// hasHeading reports whether a page has a heading of that anchor: in lower case,
// without punctuation, with dashes for spaces.
func hasHeading(text, anchor string) bool {
	for line := range strings.Lines(text) {
		title, is := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if !is || !strings.HasPrefix(line, "#") {
			continue
		}
		got := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
				return r
			}
			return -1
		}, strings.ToLower(strings.TrimSpace(title)))
		if got == anchor {
			return true
		}
	}
	return false
}
