package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/node/room"
)

// maxConfigFile bounds what is read: nobody writes a larger one by hand.
const maxConfigFile = 1 << 20

// fieldError is one mistake in a configuration file.
type fieldError struct {
	file  string
	line  int
	field string
	err   error
}

func (e *fieldError) Error() string {
	return fmt.Sprintf("%s:%d: %s: %v", e.file, e.line, e.field, e.err)
}
func (e *fieldError) Unwrap() error { return e.err }

// readConfigFile sets every flag of fs that the file names and that the command
// line left alone, and returns the rooms it lists. A listed room takes what it
// does not say from base, which flags of fs write to. All mistakes are reported
// at once.
func readConfigFile(path string, fs *pflag.FlagSet, base *room.Settings) ([]room.Settings, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	if info.Size() > maxConfigFile {
		return nil, fmt.Errorf("--config: %s has %d bytes; at most %d are read", path, info.Size(), maxConfigFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	return parseConfig(path, text, fs, base)
}

func parseConfig(path string, text []byte, fs *pflag.FlagSet, base *room.Settings) ([]room.Settings, error) {
	doc, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: not valid YAML: %w", path, err)
	}
	r := &configReader{file: path}
	var rooms []room.Settings
	for i, d := range doc.Docs {
		if d.Body == nil || d.Body.Type() == ast.NullType || d.Body.Type() == ast.CommentType {
			continue
		}
		if i > 0 {
			r.fail(d.Body, "---", errors.New("one document only is allowed"))
			break
		}
		var list ast.Node
		r.mapping(d.Body, "the file", fs, &list)
		if list != nil {
			rooms = r.rooms(list, *base) // last, so that they take over what the file says outside
		}
	}
	return rooms, errors.Join(r.errs...)
}

type configReader struct {
	file string
	errs []error
}

func (r *configReader) fail(node ast.Node, field string, err error) {
	line := 0
	if t := node.GetToken(); t != nil && t.Position != nil {
		line = t.Position.Line
	}
	r.errs = append(r.errs, &fieldError{file: r.file, line: line, field: field, err: err})
}

// mapping sets the flags that the mapping names. The value of the key "rooms" is
// left in rooms; where that is nil the key is unknown.
func (r *configReader) mapping(node ast.Node, what string, fs *pflag.FlagSet, rooms *ast.Node) {
	m, ok := node.(ast.MapNode)
	if !ok {
		r.fail(node, what, fmt.Errorf("a mapping is wanted, with lines such as \"listen: :8080\"; this is a %s", kindOf(node)))
		return
	}
	seen := map[string]bool{}
	for it := m.MapRange(); it.Next(); {
		key := it.Key().String()
		if seen[key] {
			r.fail(it.Key(), key, errors.New("stands here twice; keep one"))
			continue
		}
		seen[key] = true
		if key == "rooms" && rooms != nil {
			*rooms = it.Value()
			continue
		}
		flag := fs.Lookup(key)
		if flag == nil || key == "config" || key == "help" {
			r.fail(it.Key(), key, unknownKey(key, fs, rooms != nil))
			continue
		}
		r.set(it.Value(), flag)
	}
}

// set gives one flag its value, unless the command line has given it already.
func (r *configReader) set(node ast.Node, flag *pflag.Flag) {
	values, err := scalars(node, isList(flag))
	if err != nil {
		r.fail(node, flag.Name, err)
		return
	}
	if flag.Changed {
		return
	}
	for i, v := range values {
		if err := flag.Value.Set(v); err != nil {
			at := node
			if seq, ok := node.(*ast.SequenceNode); ok {
				at = seq.Values[i]
			}
			r.fail(at, flag.Name, err)
		}
	}
}

func (r *configReader) rooms(node ast.Node, base room.Settings) []room.Settings {
	seq, ok := node.(*ast.SequenceNode)
	if !ok || len(seq.Values) == 0 {
		r.fail(node, "rooms", fmt.Errorf("a list with at least one room is wanted, each starting with \"- room: NAME\"; this is a %s", kindOf(node)))
		return nil
	}
	var rooms []room.Settings
	for i, item := range seq.Values {
		s := base
		s.Name = ""
		fs := pflag.NewFlagSet("room", pflag.ContinueOnError)
		roomFlags(fs, &s)
		field := fmt.Sprintf("rooms[%d]", i)
		before := len(r.errs)
		r.mapping(item, field, fs, nil)
		if s.Name == "" && len(r.errs) == before {
			r.fail(item, field, errors.New("every room in the list needs a name: \"room: NAME\""))
		}
		rooms = append(rooms, s)
	}
	return rooms
}

// scalars returns the value as the command line would have it.
func scalars(node ast.Node, list bool) ([]string, error) {
	if seq, ok := node.(*ast.SequenceNode); ok && list {
		var out []string
		for _, v := range seq.Values {
			one, err := scalars(v, false)
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
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return []string{node.GetToken().Value}, nil
	}
	if list {
		return nil, fmt.Errorf("a value or a list of values is wanted; this is a %s", kindOf(node))
	}
	return nil, fmt.Errorf("one value is wanted; this is a %s", kindOf(node))
}

func isList(flag *pflag.Flag) bool {
	switch flag.Value.(type) {
	case addressesValue, prefixesValue:
		return true
	}
	return false
}

func kindOf(node ast.Node) string {
	switch node.(type) {
	case *ast.NullNode:
		return "missing value"
	case *ast.SequenceNode:
		return "list"
	case ast.MapNode:
		return "mapping"
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		return "YAML anchor, alias or tag, which are not used here"
	}
	return "single value"
}

// unknownKey names what is allowed, the likeliest first.
func unknownKey(key string, fs *pflag.FlagSet, top bool) error {
	var names []string
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Name != "config" && f.Name != "help" {
			names = append(names, f.Name)
		}
	})
	if top {
		names = append(names, "rooms")
	}
	slices.Sort(names)
	best := slices.MinFunc(names, func(a, b string) int {
		return cmp.Compare(editDistance(key, a), editDistance(key, b))
	})
	hint := ""
	if editDistance(key, best) <= 1+len(key)/3 {
		hint = fmt.Sprintf("; did you mean %q?", best)
	}
	return fmt.Errorf("unknown key%s Allowed are %s", cmp.Or(hint, "."), strings.Join(names, ", "))
}

// editDistance is Levenshtein's: the fewest letters to insert, delete or change.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
