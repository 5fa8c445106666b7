package operate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ropeline/ropeline/cmd/cli"
)

// How commands show what a node has answered.

// object is one of JSON.
type object map[string]any

// at returns the value at a path of names, as words; "" if there is none.
func (o object) at(path ...string) string {
	var v any = map[string]any(o)
	for _, name := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return ""
		}
		v = m[name]
	}
	return words(v)
}

// number is at for numbers, with commas.
func (o object) number(path ...string) string {
	n, err := strconv.ParseInt(o.at(path...), 10, 64)
	if err != nil {
		return o.at(path...)
	}
	return strconv.FormatInt(n, 10)
}

// list returns the objects of a list.
func (o object) list(name string) (all []object) {
	items, _ := o[name].([]any)
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}

// words returns a JSON value as it reads best in a cell.
func words(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case json.Number:
		return v.String()
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = words(v[i])
		}
		return strings.Join(parts, ", ")
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// column is one of a table.
type column struct {
	title string
	value func(o object) string
	right bool
}

func col(title string, path ...string) column {
	return column{title, func(o object) string { return o.at(path...) }, false}
}

func num(title string, path ...string) column {
	return column{title, func(o object) string { return o.number(path...) }, true}
}

// tableOf returns rows as a table for people.
func tableOf(title string, rows []object, columns []column) string {
	t := table.NewWriter()
	t.SetStyle(table.StyleRounded)
	t.Style().Format.Header = text.FormatDefault
	if title != "" {
		t.SetTitle(title)
	}
	header := table.Row{}
	var configs []table.ColumnConfig
	for i, c := range columns {
		header = append(header, c.title)
		if c.right {
			configs = append(configs, table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(configs)
	for _, row := range rows {
		cells := table.Row{}
		for _, c := range columns {
			cells = append(cells, Printable(c.value(row)))
		}
		t.AppendRow(cells)
	}
	if len(rows) == 0 {
		return t.Render() + "\nnone"
	}
	return t.Render()
}

// fieldTable returns an object as a table of names and values, in the order of the answer.
func fieldTable(title string, raw json.RawMessage) (string, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if _, err := d.Token(); err != nil {
		return "", err
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleRounded)
	t.SetTitle(title)
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return "", err
		}
		var v any
		if err := d.Decode(&v); err != nil {
			return "", err
		}
		if value := Printable(words(v)); value != "" {
			t.AppendRow(table.Row{name, text.WrapSoft(value, 80)})
		}
	}
	return t.Render(), nil
}

// Printable keeps what a visitor or an operator has written from moving the cursor. Tabs,
// with which the node sets in the part of an expression that is wrong, become spaces.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r == 0x7f {
			return '�'
		}
		return r
	}, strings.ReplaceAll(s, "\t", "    "))
}

// leastEvery is how often an answer is shown at most.
const leastEvery = 200 * time.Millisecond

// Output says how answers are shown.
type Output struct {
	JSON  bool
	Watch bool
	Every time.Duration
}

func (c *Output) Bind(cmd *cobra.Command, watch bool) {
	fs := cmd.Flags()
	fs.BoolVar(&c.JSON, "json", false, "JSON as the node has answered it; so it is by itself where the output is not a terminal (--json=false: a table there as well)")
	if watch {
		c.Every = time.Second
		fs.BoolVar(&c.Watch, "watch", false, "show it again and again, until Ctrl-C; as JSON, one answer on each line")
		fs.DurationVar(&c.Every, "every", c.Every, "how often, with --watch")
	}
}

// WantsJSON reports whether out gets JSON.
func (c *Output) WantsJSON(cmd *cobra.Command) bool {
	if flag := cmd.Flags().Lookup("json"); flag != nil && flag.Changed {
		return c.JSON
	}
	f, ok := cmd.OutOrStdout().(*os.File)
	return !ok || !term.IsTerminal(int(f.Fd()))
}

// show prints what get returns, as JSON or as render makes it; again and again if it is to
// be watched.
func (c *Output) show(cmd *cobra.Command, get func(ctx context.Context) (json.RawMessage, error), render func(raw json.RawMessage) (string, error)) error {
	ctx, out, asJSON := cmd.Context(), cmd.OutOrStdout(), c.WantsJSON(cmd)
	if every := cmd.Flags().Lookup("every"); every != nil && every.Changed && !c.Watch {
		return cli.Usagef("--every says how often --watch shows something; want --watch beside it")
	}
	if !c.Watch {
		raw, err := get(ctx)
		if err != nil {
			return err
		}
		return Print(out, raw, asJSON, false, render)
	}
	if c.Every < leastEvery {
		return cli.Usagef("--every %v: want %v or more", c.Every, leastEvery)
	}
	ticker := time.Tick(c.Every)
	for {
		raw, err := get(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if _, lost := err.(NotReached); lost && !asJSON {
			if _, err := fmt.Fprint(out, frame(text.WrapSoft(Printable(err.Error()), 78), out)); err != nil { // it may come back
				return err
			}
		} else if err != nil {
			return err
		} else if err := Print(out, raw, asJSON, true, render); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker:
		}
	}
}

// Print writes one answer. A live one replaces what was there before.
func Print(out io.Writer, raw json.RawMessage, asJSON, live bool, render func(json.RawMessage) (string, error)) error {
	var b bytes.Buffer
	switch {
	case asJSON && live:
		if err := json.Compact(&b, raw); err != nil {
			return err
		}
	case asJSON:
		if err := json.Indent(&b, raw, "", "  "); err != nil {
			return err
		}
	default:
		s, err := render(raw)
		if err != nil {
			return err
		}
		if live {
			_, err := fmt.Fprint(out, frame(s, out))
			return err
		}
		b.WriteString(s)
	}
	_, err := fmt.Fprintln(out, strings.TrimRight(b.String(), "\n"))
	return err
}

// frame returns what replaces the live view that was there before: as much of s as there is
// room for on a terminal. Elsewhere nothing is replaced, and views come one after the other.
func frame(s string, out io.Writer) string {
	now := time.Now().Format(time.TimeOnly)
	if f, ok := out.(*os.File); ok {
		if width, height, err := term.GetSize(int(f.Fd())); err == nil {
			return fitted(s, now+"  Ctrl-C ends it", width, height)
		}
	}
	return now + "\n" + strings.TrimRight(s, "\n") + "\n\n"
}

// fitted returns s above a last line, cut to width and height where these are above 0: lines
// that wrap, and those that scroll away, would be there again and again.
func fitted(s, last string, width, height int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	if rest := len(lines) + 3 - height; height > 3 && rest > 0 { // an empty line, the last one, and the cursor's
		rest = min(rest+1, len(lines))
		lines = append(lines[:len(lines)-rest], fmt.Sprintf("… %d more lines", rest))
	}
	lines = append(lines, "", last)
	var b strings.Builder
	b.WriteString("\x1b[H")
	for _, line := range lines {
		if width > 0 && text.StringWidthWithoutEscSequences(line) > width {
			line = text.Snip(line, width, "…")
		}
		b.WriteString(line + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	return b.String()
}

// decoded reads an answer that is an object.
func decoded(raw json.RawMessage) (o object, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = d.Decode(&o)
	return o, err
}

// listTable renders the items of a list.
func listTable(columns []column) func(json.RawMessage) (string, error) {
	return func(raw json.RawMessage) (string, error) {
		o, err := decoded(raw)
		if err != nil {
			return "", err
		}
		return tableOf("", o.list("items"), columns), nil
	}
}
