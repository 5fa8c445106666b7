package tiers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// source is what the test files of a folder declare, whatever system they are for.
type source map[string]function

// function is what a function mentions, or all methods of one name, which is ".name" then: name,
// package.name, .name for any method or field, and go where it starts a goroutine.
type function map[string]bool

func read(dir string) (source, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	s := source{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		s.add(file)
	}
	return s, nil
}

func (s source) add(file *ast.File) {
	for _, d := range file.Decls {
		decl, ok := d.(*ast.FuncDecl)
		if !ok || decl.Body == nil {
			continue
		}
		name := decl.Name.Name
		if decl.Recv != nil {
			name = "." + name
		}
		f := function{}
		if methods, ok := s[name]; ok {
			f = methods
		}
		ast.Inspect(decl.Body, f.look)
		s[name] = f
	}
}

// look keeps what a node of the function's body mentions.
func (f function) look(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		f["go"] = true
	case *ast.Ident:
		f[n.Name] = true
	case *ast.SelectorExpr:
		f["."+n.Sel.Name] = true
		if of, ok := n.X.(*ast.Ident); ok {
			f[of.Name+"."+n.Sel.Name] = true
		}
		ast.Inspect(n.X, f.look)
		return false // Sel is no name of this package
	}
	return true
}

// reaching returns the functions that are as is says, or mention one that is.
func (s source) reaching(is func(function) bool) map[string]bool {
	found := map[string]bool{}
	for more := true; more; {
		more = false
		for name, f := range s {
			if found[name] || !is(f) && !f.mentionsAny(found) {
				continue
			}
			found[name], more = true, true
		}
	}
	return found
}

func (f function) mentionsAny(names map[string]bool) bool {
	for name := range names {
		if f[name] {
			return true
		}
	}
	return false
}

// tests returns those of names that go test runs, in order.
func (s source) tests(names map[string]bool) (found []string) {
	for name := range names {
		if strings.HasPrefix(name, "Test") && name != "TestMain" || strings.HasPrefix(name, "Fuzz") {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}
