// Package docpage writes tables into pages of the documentation, between the marks of what has
// made them.
package docpage

import (
	"fmt"
	"io"
	"os"
	"strings"
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
