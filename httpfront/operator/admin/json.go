package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxBody is how many bytes the body of a request may have: a page of a room, of which JSON
// may write each byte as six, and the other settings.
const MaxBody = 7 << 20

// maxDepth is how deep lists and objects may stand in one another. No setting is deeper.
const maxDepth = 8

// maxValues is how many values a body may have, those in lists and objects included. Each costs a hundred bytes
// and more, and a body has room for millions; of settings there are some hundreds.
const maxValues = 20_000

// maxName is how many bytes the name of a value may have: it stands before those of all values in it, wherever one of
// them is told of. Names of settings are shorter.
const maxName = 256

// kind is what a JSON value is.
type kind string

const (
	kindNull   kind = "null"
	kindTruth  kind = "true or false"
	kindNumber kind = "a number"
	kindText   kind = "a text"
	kindList   kind = "a list"
	kindObject kind = "an object"
)

// value is a JSON value as it was written. It stays closer to the text than what
// encoding/json makes of it, since a name that stands twice and a null are told apart here.
type value struct {
	kind    kind
	text    string // of a text; of a number, its digits
	yes     bool
	items   []value
	members []member
}

type member struct {
	name  string
	value value
}

// JSON returns a number or a text as it goes into JSON.
func (v value) JSON() any {
	if v.kind == kindNumber {
		return json.Number(v.text)
	}
	return v.text
}

// get returns the member of that name.
func (v *value) get(name string) (value, bool) {
	for i := range v.members {
		if v.members[i].name == name {
			return v.members[i].value, true
		}
	}
	return value{}, false
}

// lookup returns what stands at a place such as "additional_routes[0].path".
func (v *value) lookup(path string) (value, bool) {
	at := *v
	for name := range strings.SplitSeq(path, ".") {
		name, index, indexed := strings.Cut(name, "[")
		next, there := at.get(name)
		if !there {
			return value{}, false
		}
		at = next
		if !indexed {
			continue
		}
		i, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
		if err != nil || i < 0 || i >= len(at.items) {
			return value{}, false
		}
		at = at.items[i]
	}
	return at, true
}

// maxShown is how many bytes of a value are told in a message.
const maxShown = 80

// String returns the value as it may stand in a message: lists and objects by their size,
// and of a long text its beginning.
func (v value) String() string {
	switch v.kind {
	case kindNull:
		return "null"
	case kindTruth:
		return strconv.FormatBool(v.yes)
	case kindNumber:
		return shorten(v.text)
	case kindText:
		return strconv.Quote(shorten(v.text))
	case kindList:
		return fmt.Sprintf("a list of %d", len(v.items))
	}
	return fmt.Sprintf("an object of %d", len(v.members))
}

// shorten cuts a text that is too long for a message.
func shorten(s string) string {
	if len(s) <= maxShown {
		return s
	}
	cut := maxShown
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// parse reads a body. Beside the value it returns what is wrong with it; if that is not a
// name that stands twice, there is no value.
func parse(body []byte) (value, []Mistake) {
	refuse := func(format string, args ...any) (value, []Mistake) {
		return value{}, []Mistake{{Code: CodeNotJSON, Message: "the body: " + fmt.Sprintf(format, args...)}}
	}
	if len(body) > MaxBody {
		return value{}, []Mistake{tooLarge()}
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return refuse("it is empty; want JSON")
	}
	if !utf8.Valid(body) {
		return refuse("it is not UTF-8")
	}
	var raw json.RawMessage
	if err := json.Unmarshal(body, &raw); err != nil {
		return refuse("%v; want one JSON value", err)
	}
	p := parser{tokens: json.NewDecoder(bytes.NewReader(body))}
	p.tokens.UseNumber()
	v := p.value("", 1)
	switch {
	case p.values > maxValues:
		return refuse("it has more than %d values", maxValues)
	case p.longName:
		return refuse("a name in it has more than %d bytes", maxName)
	case p.tooDeep:
		return refuse("lists and objects stand more than %d deep in one another", maxDepth)
	}
	return v, p.mistakes
}

func tooLarge() Mistake {
	return Mistake{Code: CodeTooLarge, Message: fmt.Sprintf("the body: it is too long; at most %d bytes are allowed", MaxBody), Allowed: fmt.Sprintf("at most %d bytes", MaxBody)}
}

// parser reads the tokens of a text that is known to be JSON.
type parser struct {
	tokens   *json.Decoder
	mistakes []Mistake
	values   int // so far
	tooDeep  bool
	longName bool
}

// stopped reports whether nothing more is read, since there is too much.
func (p *parser) stopped() bool { return p.tooDeep || p.longName || p.values > maxValues }

func (p *parser) value(at string, depth int) value {
	p.values++
	token, err := p.tokens.Token()
	if err != nil {
		panic("admin: JSON that was valid is not: " + err.Error())
	}
	switch t := token.(type) {
	case bool:
		return value{kind: kindTruth, yes: t}
	case json.Number:
		return value{kind: kindNumber, text: t.String()}
	case string:
		return value{kind: kindText, text: t}
	case json.Delim:
		if depth > maxDepth {
			p.tooDeep = true
		}
		if t == '[' {
			return p.list(at, depth)
		}
		return p.object(at, depth)
	}
	return value{kind: kindNull}
}

func (p *parser) list(at string, depth int) value {
	v := value{kind: kindList}
	for i := 0; !p.stopped() && p.tokens.More(); i++ {
		v.items = append(v.items, p.value(fmt.Sprintf("%s[%d]", at, i), depth+1))
	}
	if !p.stopped() {
		p.tokens.Token() // the bracket
	}
	return v
}

func (p *parser) object(at string, depth int) value {
	v := value{kind: kindObject}
	names := map[string]bool{}
	for !p.stopped() && p.tokens.More() {
		token, _ := p.tokens.Token()
		name, _ := token.(string)
		if len(name) > maxName {
			p.longName = true
			break
		}
		of := join(at, name)
		if names[name] && len(p.mistakes) < maxMistakes {
			p.mistakes = append(p.mistakes, Mistake{Code: CodeTwice, Field: of, Message: shorten(of) + ": it stands here twice; want it once", Allowed: "once"})
		}
		names[name] = true
		v.members = append(v.members, member{name, p.value(of, depth+1)})
	}
	if !p.stopped() {
		p.tokens.Token() // the brace
	}
	return v
}

// join returns the name of a field within another, or in a list of them.
func join(at, name string) string {
	switch {
	case at == "":
		return name
	case name == "":
		return at
	}
	return at + "." + name
}

// members are those of an object, which keep their order.
type members []pair

type pair struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler.
func (m members) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, p := range m {
		v, err := json.Marshal(p.value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(strconv.AppendQuote(b, p.name), ':'), v...)
	}
	return append(b, '}'), nil
}
