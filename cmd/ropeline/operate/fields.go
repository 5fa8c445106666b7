package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ropeline/ropeline/cmd/cli"
	"github.com/ropeline/ropeline/node/nearest"
)

// How settings are given: NAME=VALUE, each as the API's own document has them.

// fieldType is what a field of the API may be.
type fieldType struct {
	of          []string    // JSON types; none: anything
	least, most json.Number // of a number; "": any
}

// fieldTypes returns what each field of a schema of the API may be.
func (c *client) fieldTypes(ctx context.Context, schema string) (map[string]fieldType, error) {
	raw, err := c.ask(ctx, "GET", "/api/v1/openapi.json", nil, nil)
	if err != nil {
		return nil, err
	}
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct {
					Type     json.RawMessage `json:"type"`
					ReadOnly bool            `json:"readOnly"`
					Minimum  json.Number     `json:"minimum"`
					Maximum  json.Number     `json:"maximum"`
				} `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("the node's description of its API: %w", err)
	}
	types := map[string]fieldType{}
	for name, p := range doc.Components.Schemas[schema].Properties {
		var one string
		var several []string
		if json.Unmarshal(p.Type, &one) == nil {
			several = []string{one}
		} else if err := json.Unmarshal(p.Type, &several); err != nil {
			several = nil // anything
		}
		if !p.ReadOnly {
			types[name] = fieldType{several, p.Minimum, p.Maximum}
		}
	}
	return types, nil
}

// settings reads NAME=VALUE words into the body of a request.
func (c *client) settings(ctx context.Context, schema string, words []string, more object) (object, error) {
	body := object{}
	maps.Copy(body, more)
	if len(words) == 0 {
		return body, nil
	}
	types, err := c.fieldTypes(ctx, schema)
	if err != nil {
		return nil, err
	}
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			return nil, cli.Usagef("%q is not understood: want NAME=VALUE, such as total_active_users=500", word)
		}
		name = strings.ReplaceAll(name, "-", "_")
		of, known := types[name]
		if !known {
			return nil, cli.UsageError{Err: noField(name, types)}
		}
		if _, twice := body[name]; twice {
			return nil, cli.Usagef("%s is given twice, the second time as %q; give it once", name, value)
		}
		if body[name], err = parsedField(value, of); err != nil {
			return nil, cli.Usagef("%s=%s: %w", name, value, err)
		}
	}
	return body, nil
}

func noField(name string, types map[string]fieldType) error {
	names := make([]string, 0, len(types))
	for n := range types {
		names = append(names, n)
	}
	slices.Sort(names)
	if near, ok := nearest.Name(name, names); ok {
		return fmt.Errorf("there is no field %q; did you mean %q?", name, near)
	}
	return fmt.Errorf("there is no field %q; there are %s", name, strings.Join(names, ", "))
}

// parsedField reads a value of a field.
func parsedField(s string, t fieldType) (any, error) {
	may := func(of string) bool { return len(t.of) == 0 || slices.Contains(t.of, of) }
	switch {
	case s == "null" && may("null"):
		return nil, nil
	case (s == "true" || s == "false") && may("boolean"):
		return s == "true", nil
	case isNumber(s) && (may("integer") || may("number")):
		return json.RawMessage(s), nil
	}
	if (strings.HasPrefix(s, "[") || strings.HasPrefix(s, "{")) && (may("array") || may("object")) {
		if !json.Valid([]byte(s)) {
			return nil, fmt.Errorf("what begins like a list or an object in JSON is none")
		}
		return json.RawMessage(s), nil
	}
	switch {
	case may("string"):
		return s, nil
	case may("array"):
		list := []string{}
		for part := range strings.SplitSeq(s, ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = append(list, part)
			}
		}
		return list, nil
	}
	return nil, fmt.Errorf("want %s", t)
}

// isNumber reports whether JSON has s as a number: no "inf", and no "+1".
func isNumber(s string) bool {
	return s != "" && (s[0] == '-' || '0' <= s[0] && s[0] <= '9') && json.Valid([]byte(s))
}

// String says what is allowed.
func (t fieldType) String() string {
	words := make([]string, 0, len(t.of))
	for _, of := range t.of {
		switch of {
		case "boolean":
			words = append(words, "true or false")
		case "integer", "number":
			word := map[string]string{"integer": "a whole number", "number": "a number"}[of]
			if t.least != "" && t.most != "" {
				word += fmt.Sprintf(" from %s to %s", t.least, t.most)
			}
			words = append(words, word)
		case "object":
			words = append(words, "an object as JSON")
		default:
			words = append(words, of)
		}
	}
	return strings.Join(words, ", or ")
}
