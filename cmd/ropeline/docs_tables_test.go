package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Marks around what a program writes into a page: "<!-- heavy: begin -->", or "<!-- begin:
// written by ropeline-bench run faults -->".
var (
	markBegin = regexp.MustCompile(`^<!-- (?:(\S+): begin|begin: (.+)) -->\s*$`)
	markEnd   = regexp.MustCompile(`^<!-- (?:(\S+): )?end -->\s*$`)
)

// TestDocsHaveEveryTable fails where the table of a program stands empty, or its marks are
// not in pairs.
func TestDocsHaveEveryTable(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range append(pages, "../../README.md", "../../httpfront/DESIGN.md", "../../node/DESIGN.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		names, wrong := tablesOf(string(text))
		found += len(names)
		for _, w := range wrong {
			t.Errorf("%s: %s", page, w)
		}
	}
	if found < 7 {
		t.Errorf("only %d tables were found", found)
	}
}

// tablesOf returns the names of the tables that programs write into a page, and what is
// wrong with them.
func tablesOf(text string) (names, wrong []string) {
	open, rows := "", 0
	for line := range strings.Lines(text) {
		begin, end := markBegin.FindStringSubmatch(line), markEnd.FindStringSubmatch(line)
		switch {
		case begin != nil && open != "":
			wrong = append(wrong, open+" has no end")
			fallthrough
		case begin != nil:
			open, rows = begin[1]+begin[2], 0
			names = append(names, open)
		case end != nil && open == "":
			wrong = append(wrong, "an end without a beginning")
		case end != nil:
			if end[1] != "" && end[1] != open {
				wrong = append(wrong, open+" ends as "+end[1])
			}
			if rows < 3 { // head, line, and one row
				wrong = append(wrong, open+" is empty; run what writes it")
			}
			open = ""
		case strings.HasPrefix(line, "|"):
			rows++
		}
	}
	if open != "" {
		wrong = append(wrong, open+" has no end")
	}
	return names, wrong
}

func TestTablesThatAreEmptyAreFound(t *testing.T) {
	const table = "| a |\n|---|\n| 1 |\n"
	for text, want := range map[string]string{
		"<!-- a: begin -->\n" + table + "<!-- a: end -->\n":                            "",
		"<!-- begin: written by make b -->\n\n" + table + "\n<!-- end -->\n":           "",
		"<!-- a: begin -->\n<!-- a: end -->\n":                                         "a is empty; run what writes it",
		"<!-- begin: written by make b -->\nnothing yet\n<!-- end -->\n":               "written by make b is empty; run what writes it",
		"<!-- a: begin -->\n| a |\n|---|\n<!-- a: end -->\n":                           "a is empty; run what writes it",
		"<!-- a: begin -->\n" + table + "<!-- b: end -->\n":                            "a ends as b",
		"<!-- a: begin -->\n" + table + "<!-- b: begin -->\n" + table + "<!-- end -->": "a has no end",
		"<!-- a: begin -->\n" + table:                                                  "a has no end",
		"<!-- a: end -->\n":                                                            "an end without a beginning",
	} {
		if _, wrong := tablesOf(text); strings.Join(wrong, "; ") != want {
			t.Errorf("%q: %q, want %q", text, wrong, want)
		}
	}
}
