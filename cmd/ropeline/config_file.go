package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/node/settings"
)

// maxConfigFile bounds what is read: some pages of the longest kind in it, and more
// than anybody writes by hand.
const maxConfigFile = 8 << 20

// fieldError is one mistake in a configuration file.
type fieldError struct {
	file  string
	at    position
	room  string // of those in the list; empty: none, or not known
	field string
	err   error
}

func (e *fieldError) Error() string {
	if e.room != "" {
		return fmt.Sprintf("%s:%v: room %q: %s: %v", e.file, e.at, e.room, e.field, e.err)
	}
	return fmt.Sprintf("%s:%v: %s: %v", e.file, e.at, e.field, e.err)
}
func (e *fieldError) Unwrap() error { return e.err }

// fileLines remembers where a configuration file says what, for mistakes that
// show only when all of it is known. The zero value is no file.
type fileLines struct {
	file  string
	lines map[string]position // by flag, those that the file set

	passedOver []string // what nothing is done with
}

// beside returns where a file is that the configuration file names: a relative path
// begins where that stands.
func (l fileLines) beside(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(l.file), path)
}

// at says where in the file the field stands that err is about. An err about
// what the command line says is left as it is.
func (l fileLines) at(field string, err error) error {
	at, ok := l.lines[field]
	if !ok {
		return err
	}
	return &fieldError{file: l.file, at: at, field: field, err: err}
}

// readConfigFile sets every flag of fs that the file names and that the command
// line left alone, and fills in the rooms that the file lists. A listed room
// takes what it does not say from cfg.Room, which flags of fs write to. All
// mistakes are reported at once.
func readConfigFile(path string, fs *pflag.FlagSet, cfg *config) error {
	text, err := readSmall(path, maxConfigFile)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	return parseConfig(path, text, fs, cfg)
}

// readSmall reads a file of up to that many bytes.
func readSmall(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return text, nil
}

func parseConfig(path string, text []byte, fs *pflag.FlagSet, cfg *config) error {
	doc, err := parser.ParseBytes(bytes.TrimPrefix(text, []byte("\ufeff")), 0) // a byte order mark in front is none of it
	if err != nil {
		return fmt.Errorf("%s: not valid YAML: %w", path, err)
	}
	cfg.file = fileLines{file: path, lines: map[string]position{}}
	r := &configReader{fileLines: cfg.file, told: map[string]bool{}}
	for i, d := range doc.Docs {
		if d.Body == nil || d.Body.Type() == ast.NullType || d.Body.Type() == ast.CommentType {
			continue
		}
		if i > 0 {
			r.fail(d.Body, "---", errors.New("one document only is allowed"))
			break
		}
		var rooms, named, limits ast.Node
		var proxy proxyNodes
		var parts roomParts
		r.mapping(d.Body, "", fs, proxy.lists(parts.lists(lists{"rooms": &rooms, "lists": &named, "rate-limits": &limits})))
		r.globalOrigins(proxy, fs, cfg)
		r.named(named, &cfg.Front.Lists)
		cfg.Limits.Rules = r.rateLimits(limits, cfg)
		r.parts(parts, &cfg.Room, "", fs)
		r.outside = r.takeRefusals(0)
		r.checkFront(cfg.Room, "", cfg.Front.Lists)
		if rooms != nil {
			// Last, so that they take over what the file says outside.
			r.refuseRoomName(fs)
			cfg.Rooms, cfg.Proxy.Routes = r.rooms(rooms, cfg)
		} else {
			r.check(cfg.Room, "", r.outside)
		}
	}
	cfg.file = r.fileLines
	return errors.Join(inOrder(r.errs)...)
}

// configReader reads one file and gathers what is wrong with it.
type configReader struct {
	fileLines
	errs []error

	outside refusals        // of what stands outside the list of rooms
	unsound []string        // parts with a mistake inside, since takeRefusals
	told    map[string]bool // names that are allowed, as an error has listed them
}

// lists are the keys of a mapping that are no flags, and where their values are
// left. A list that is not in the file is left nil.
type lists map[string]*ast.Node

func (r *configReader) fail(node ast.Node, field string, err error) {
	r.errs = append(r.errs, &fieldError{file: r.file, at: positionOf(node), field: field, err: err})
}

// position is where something stands in a file: line and column from 1. The zero value is not known.
type position struct{ line, column int }

func (p position) String() string { return fmt.Sprintf("%d:%d", p.line, p.column) }

// positionOf returns where node begins, zero if that is not known.
func positionOf(node ast.Node) position {
	switch m := node.(type) { // whose own token is a colon
	case *ast.MappingNode:
		if !m.IsFlowStyle && len(m.Values) > 0 {
			return positionOf(m.Values[0])
		}
	case *ast.MappingValueNode:
		return positionOf(m.Key)
	}
	if t := node.GetToken(); t != nil && t.Position != nil {
		return position{t.Position.Line, t.Position.Column}
	}
	return position{}
}

// mapping sets the flags that the mapping names. The values of keys in more are
// left there. field is the name of the whole in the file, "" if it is the file.
func (r *configReader) mapping(node ast.Node, field string, fs *pflag.FlagSet, more lists) {
	prefix := ""
	if field != "" {
		prefix = field + "."
	}
	m, ok := node.(ast.MapNode)
	if !ok {
		r.fail(node, cmp.Or(field, "the file"), fmt.Errorf("a mapping is wanted, with lines such as \"listen: :8080\"; this is a %s", kindOf(node)))
		return
	}
	seen := map[string]bool{}
	for it := m.MapRange(); it.Next(); {
		key := keyOf(it.Key())
		if seen[key] {
			r.fail(it.Key(), key, errors.New("stands here twice; keep one"))
			continue
		}
		seen[key] = true
		if list := more[key]; list != nil {
			*list = it.Value()
			continue
		}
		flag := fs.Lookup(key)
		if flag == nil || isNoSetting(key) {
			r.fail(it.Key(), key, r.unknownKey(key, field, fs, more))
			continue
		}
		value := it.Value()
		if isUnsaid(value, flag) {
			continue
		}
		if text, ok := inMinutes(it.Key(), value); ok {
			if flag.Changed {
				continue
			}
			if err := flag.Value.Set(text); err != nil {
				r.fail(value, key, err)
			}
			r.lines[prefix+key] = positionOf(it.Key())
			continue
		}
		if r.set(value, flag) {
			r.lines[prefix+key] = positionOf(it.Key())
		}
	}
}

// keyOf returns the key as flags have it. What is brought along from elsewhere may
// be JSON, and its names have underscores.
func keyOf(node ast.MapKeyNode) string {
	key := node.String()
	if s, ok := node.(*ast.StringNode); ok {
		key = s.Value
	}
	return strings.ReplaceAll(key, "_", "-")
}

// set gives one flag its value, and reports whether it did: not if the command
// line has given it already.
func (r *configReader) set(node ast.Node, flag *pflag.Flag) bool {
	spec := specOf(flag)
	if spec.Type == typeGone {
		r.fail(node, flag.Name, flag.Value.Set(""))
		return false
	}
	values, err := scalars(node, spec.IsList(), spec.IsTruth())
	if err == nil && isQuoted(node) && (spec.IsNumber() || spec.IsTruth()) {
		what := "a number"
		if spec.IsTruth() {
			what = "true or false"
		}
		err = fmt.Errorf("%s is wanted, and this is text; write it without quotes", what)
	}
	if err != nil {
		r.fail(node, flag.Name, err)
		return false
	}
	if flag.Changed {
		return false
	}
	if spec.IsList() {
		flag.Value.(settings.Value).Clear()
	}
	for i, v := range values {
		if spec.Type == typePage {
			v = r.beside(v)
		}
		if err := flag.Value.Set(v); err != nil {
			at := node
			if seq, ok := node.(*ast.SequenceNode); ok {
				at = seq.Values[i]
			}
			r.fail(at, flag.Name, err)
		}
	}
	return true
}

// scalars returns the value as the command line would have it: several where list
// is set, "true" or "false" where truth is.
func scalars(node ast.Node, list, truth bool) ([]string, error) {
	if seq, ok := node.(*ast.SequenceNode); ok && list {
		var out []string
		for _, v := range seq.Values {
			one, err := scalars(v, false, truth)
			if err != nil {
				return nil, err
			}
			out = append(out, one...)
		}
		return out, nil
	}
	switch n := node.(type) {
	case *ast.StringNode:
		return []string{n.Value}, nil
	case *ast.LiteralNode:
		return []string{n.Value.Value}, nil
	case *ast.BoolNode:
		if truth {
			return []string{strconv.FormatBool(n.Value)}, nil
		}
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return []string{node.GetToken().Value}, nil
	}
	if list {
		return nil, fmt.Errorf("a value or a list of values is wanted; this is a %s", kindOf(node))
	}
	return nil, fmt.Errorf("one value is wanted; this is a %s", kindOf(node))
}

// isQuoted reports whether the file says itself that node is text.
func isQuoted(node ast.Node) bool {
	t := node.GetToken()
	return t != nil && (t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType)
}

func kindOf(node ast.Node) string {
	switch node.(type) {
	case *ast.NullNode:
		return "missing value"
	case *ast.BoolNode:
		return "truth value; quotes make it text"
	case *ast.SequenceNode:
		return "list"
	case ast.MapNode:
		return "mapping"
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		return "YAML anchor, alias or tag, which are not used here"
	}
	return "single value"
}
