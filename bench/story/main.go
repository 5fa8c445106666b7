// Command story runs sets of simulations and writes what they came to as a table
// into a page of the documentation, between two marks, with the command lines
// that make them.
//
// It runs the binary that it is given, with the very command lines that it
// writes down, so a table cannot say anything that a reader does not get.
//
//	go run ./bench/story -binary ./ropeline-bench -set policies -page docs/policies.md
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "story: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("story", flag.ContinueOnError)
	binary := fs.String("binary", "./ropeline-bench", "the `program` to run")
	name := fs.String("set", "policies", "which `set` of runs: policies or large")
	page := fs.String("page", "", "the `file` to write the table into; empty: print it")
	jobs := fs.Int("jobs", 2, "how many runs at a time")
	only := fs.String("only", "", "do only runs whose command line holds this `text`, and print them")
	if err := fs.Parse(args); err != nil {
		return err
	}
	set, err := setNamed(*name)
	if err != nil {
		return err
	}
	if *only != "" {
		set.runs = slices.DeleteFunc(set.runs, func(r planned) bool { return !strings.Contains(r.line(), *only) })
		*page = ""
	}
	if set.alone {
		*jobs = 1 // time and memory are measured
	}
	done, err := execute(ctx, *binary, set.runs, max(1, *jobs))
	if err != nil {
		return err
	}
	table := set.table(done)
	if *page == "" {
		fmt.Println(table)
		return nil
	}
	text, err := os.ReadFile(*page)
	if err != nil {
		return err
	}
	replaced, err := replace(string(text), set.name, table)
	if err != nil {
		return fmt.Errorf("%s: %w", *page, err)
	}
	return os.WriteFile(*page, []byte(replaced), 0o644)
}

// replace puts table between the marks of name in text.
func replace(text, name, table string) (string, error) {
	begin, end := "<!-- "+name+": begin -->\n", "<!-- "+name+": end -->"
	before, rest, ok := strings.Cut(text, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", errors.New("there is no place for the table: the marks " + strings.TrimSpace(begin) + " and " + end + " are missing")
	}
	return before + begin + table + end + after, nil
}
