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
	"github.com/goccy/go-yaml/token"
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

// fileLines remembers where a configuration file says what, for mistakes that
// show only when all of it is known. The zero value is no file.
type fileLines struct {
	file  string
	lines map[string]int // by flag, those that the file set
}

// at says where in the file the field stands that err is about. An err about
// what the command line says is left as it is.
func (l fileLines) at(field string, err error) error {
	line, ok := l.lines[field]
	if !ok {
		return err
	}
	return &fieldError{file: l.file, line: line, field: field, err: err}
}

// readConfigFile sets every flag of fs that the file names and that the command
// line left alone, and fills in the rooms that the file lists. A listed room
// takes what it does not say from cfg.Room, which flags of fs write to. All
// mistakes are reported at once.
func readConfigFile(path string, fs *pflag.FlagSet, cfg *config) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	if info.Size() > maxConfigFile {
		return fmt.Errorf("--config: %s has %d bytes; at most %d are read", path, info.Size(), maxConfigFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	return parseConfig(path, text, fs, cfg)
}

func parseConfig(path string, text []byte, fs *pflag.FlagSet, cfg *config) error {
	doc, err := parser.ParseBytes(text, 0)
	if err != nil {
		return fmt.Errorf("%s: not valid YAML: %w", path, err)
	}
	cfg.file = fileLines{file: path, lines: map[string]int{}}
	r := &configReader{file: path, lines: cfg.file.lines}
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
			cfg.Rooms = r.rooms(list, cfg.Room) // last, so that they take over what the file says outside
		}
	}
	return errors.Join(r.errs...)
}

type configReader struct {
	file  string
	lines map[string]int // where the file sets a flag of its own
	errs  []error
}

func (r *configReader) fail(node ast.Node, field string, err error) {
	r.errs = append(r.errs, &fieldError{file: r.file, line: lineOf(node), field: field, err: err})
}

// lineOf returns where node stands, 0 if that is not known.
func lineOf(node ast.Node) int {
	if t := node.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
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
		if r.set(it.Value(), flag) && rooms != nil {
			r.lines[key] = lineOf(it.Key())
		}
	}
}

// set gives one flag its value, and reports whether it did: not if the command
// line has given it already.
func (r *configReader) set(node ast.Node, flag *pflag.Flag) bool {
	values, err := scalars(node, isList(flag))
	if err == nil && isNumber(flag) && isQuoted(node) {
		err = errors.New("a number is wanted, and this is text; write it without quotes")
	}
	if err != nil {
		r.fail(node, flag.Name, err)
		return false
	}
	if flag.Changed {
		return false
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
	return true
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
		if len(r.errs) > before {
			continue // what is wrong with it would only be said in other words
		}
		for _, other := range rooms {
			if err := apart(other, s); err != nil {
				r.fail(item, field, err)
				break
			}
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
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
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

// isNumber reports whether the flag's value is a plain number.
func isNumber(flag *pflag.Flag) bool {
	switch flag.Value.(type) {
	case intValue, floatValue, codeValue:
		return true
	}
	return false
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
