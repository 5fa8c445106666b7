// Package docpage writes tables into pages of the documentation, between the marks of what has
// made them.
package docpage

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/machine"
)

// Write puts a table into the page at path, in place of what maker, a command, wrote there
// before. Without a path it writes the table to out.
func Write(out io.Writer, path, maker, table string) error {
	if path == "" {
		_, err := io.WriteString(out, table)
		return err
	}
	before, after, err := place(path, maker)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(before+table+after), 0o644)
}

// Result is what a command has measured.
type Result struct {
	Maker   string          `json:"command"` // as in the marks of the page
	Made    time.Time       `json:"made"`
	Machine machine.Machine `json:"machine"`
	Figures any             `json:"figures"`
}

// WriteResult is Write for a table that has all its figures beside it: in bench/NAME.json, in the folder of the page.
// Below the table stands on what machine it came about, and when.
func WriteResult(out io.Writer, path, name, table string, r Result) error {
	if path == "" {
		return Write(out, path, r.Maker, table)
	}
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	dir := filepath.Join(filepath.Dir(path), "bench")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name+".json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	return Write(out, path, r.Maker, fmt.Sprintf("%s\n%v. Made on %s by `%s`; all figures are in [%s.json](bench/%[5]s.json).\n",
		table, r.Machine, r.Made.Format("2 January 2006"), r.Maker, name))
}

// HasPlace returns an error if the page at path has no place for what maker writes, so that it can be known before
// something takes long.
func HasPlace(path, maker string) error {
	_, _, err := place(path, maker)
	return err
}

// place returns what stands before and after the place, marks included.
func place(path, maker string) (before, after string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", "", err
	}
	begin, end := fmt.Sprintf("<!-- begin: written by %s -->\n", maker), "<!-- end -->\n"
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ends := strings.Cut(rest, end)
	if !ok || !ends {
		return "", "", fmt.Errorf("%s has no place for the table: the marks %q and %q are missing", path, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return before + begin, end + after, nil
}
