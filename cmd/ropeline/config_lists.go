package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/httpfront/gate/expr"
)

const (
	// maxListFile has room for a list of the longest addresses, with remarks.
	maxListFile = 32 << 20
	// maxListErrors is how many mistakes in one list are told.
	maxListErrors = 20
)

// listKinds are the keys of a list, and what makes a list of what they hold.
var listKinds = []struct {
	key    string
	inFile bool
	of     func([]string) (*expr.List, error)
}{
	{"addresses", false, expr.AddressList},
	{"addresses-file", true, expr.AddressList},
	{"strings", false, expr.StringList},
	{"strings-file", true, expr.StringList},
}

// named reads the lists that rules of all rooms may name.
func (r *configReader) named(node ast.Node, into *expr.Lists) {
	if node == nil {
		return
	}
	m, ok := node.(ast.MapNode)
	if !ok {
		r.fail(node, "lists", fmt.Errorf("a mapping of names to lists is wanted, such as \"office: {addresses: [192.0.2.0/24]}\"; this is a %s", kindOf(node)))
		return
	}
	*into = expr.Lists{}
	for it := m.MapRange(); it.Next(); {
		name := it.Key().String()
		if s, ok := it.Key().(*ast.StringNode); ok {
			name = s.Value
		}
		field := "lists." + name
		switch _, twice := (*into)[name]; {
		case !expr.IsListName(name):
			r.fail(it.Key(), field, errors.New("a name of lower-case letters, digits, \"_\" and \".\" is wanted; rules call it by a $ and the name"))
		case twice:
			r.fail(it.Key(), field, errors.New("stands here twice; keep one"))
		default:
			(*into)[name] = r.namedList(it.Value(), field)
		}
	}
}

// namedList reads one list. Where something is wrong it returns an empty one, so that
// rules are not blamed for it.
func (r *configReader) namedList(node ast.Node, field string) *expr.List {
	nodes := make([]ast.Node, len(listKinds))
	more := lists{}
	var keys []string
	for i, kind := range listKinds {
		more[kind.key] = &nodes[i]
		keys = append(keys, kind.key)
	}
	none, _ := expr.AddressList(nil)
	before := len(r.errs)
	r.mapping(node, field, pflag.NewFlagSet("list", pflag.ContinueOnError), more)
	if len(r.errs) > before {
		return none
	}
	which := -1
	for i, n := range nodes {
		switch {
		case n == nil:
		case which >= 0:
			r.fail(n, field, fmt.Errorf("%s and %s stand here; a list has one of %s", keys[which], keys[i], strings.Join(keys, ", ")))
			return none
		default:
			which = i
		}
	}
	if which < 0 {
		r.fail(node, field, fmt.Errorf("what is in the list is missing: one of %s", strings.Join(keys, ", ")))
		return none
	}
	return r.makeList(which, nodes[which], field+"."+keys[which])
}

// listItem is one item of a list, and where it stands.
type listItem struct {
	text  string
	node  ast.Node
	place string // within another file; else empty
}

// makeList makes a list of what its key holds.
func (r *configReader) makeList(which int, node ast.Node, field string) *expr.List {
	kind := listKinds[which]
	read := r.itemsOf
	if kind.inFile {
		read = r.itemsInFile
	}
	items, err := read(node)
	if err != nil {
		r.fail(node, field, err)
	}
	words := make([]string, len(items))
	for i, item := range items {
		words[i] = item.text
	}
	list, err := kind.of(words)
	wrong := joined(err)
	for i, err := range wrong {
		if i == maxListErrors {
			r.fail(node, field, fmt.Errorf("and %d more that cannot be in the list", len(wrong)-i))
			break
		}
		if e, ok := errors.AsType[*expr.ItemError](err); ok {
			item := items[e.Index]
			r.fail(item.node, field, fmt.Errorf("%s%q: %s", item.place, e.Item, e.Problem))
			continue
		}
		r.fail(node, field, err)
	}
	if list == nil {
		list, _ = kind.of(nil)
	}
	return list
}

// itemsOf returns what stands in the configuration file.
func (r *configReader) itemsOf(node ast.Node) ([]listItem, error) {
	nodes := []ast.Node{node}
	if seq, ok := node.(*ast.SequenceNode); ok {
		nodes = seq.Values
	}
	var items []listItem
	for _, n := range nodes {
		word, err := scalars(n, false, false)
		if err != nil {
			return nil, err
		}
		items = append(items, listItem{text: word[0], node: n})
	}
	return items, nil
}

// itemsInFile returns the lines of the file that is named. Empty ones and those that
// begin with # are left out.
func (r *configReader) itemsInFile(node ast.Node) ([]listItem, error) {
	name, err := scalars(node, false, false)
	if err != nil {
		return nil, err
	}
	path := r.beside(name[0])
	text, err := readSmall(path, maxListFile)
	if err != nil {
		return nil, err
	}
	var items []listItem
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			items = append(items, listItem{string(line), node, fmt.Sprintf("%s:%d: ", path, number)})
		}
	}
	return items, nil
}
