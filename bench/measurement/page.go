package measurement

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// writePage puts a table into the page at path, in place of what maker, a command, wrote there before.
func writePage(path, maker, table string) error {
	before, after, err := place(path, maker)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(before+table+after), 0o644)
}

// HasPlace returns an error if the entry's page in docs has no place for its table, so that it can be known before
// something takes long.
func (e *Entry) HasPlace(docs string) error {
	_, _, err := place(filepath.Join(docs, e.Page), e.Maker())
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
