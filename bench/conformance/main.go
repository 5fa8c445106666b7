//go:build unix

// Command conformance puts real proxies in front of a site, each with the configuration
// that the documentation shows, has each ask a real node for verdicts, and visits the
// site through it. What visitors see goes into a table of docs/verdicts.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/ropeline/ropeline/bench/docpage"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// options are those of the command line.
type options struct {
	binary   string // ropeline
	caddy    string // the program
	examples string // where the configurations are
	open     bool   // the examples are to let everybody in where no node answers
}

func command(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("conformance", flag.ContinueOnError)
	var o options
	fs.StringVar(&o.binary, "binary", "./ropeline", "the `program` under test")
	fs.StringVar(&o.caddy, "caddy", "caddy", "the `program` that is Caddy")
	fs.StringVar(&o.examples, "examples", "docs/examples", "`directory` with the configurations")
	page := fs.String("page", "", "write the table into this markdown `file`")
	if err := fs.Parse(args); err != nil {
		return err
	}
	m := newMatrix()
	err := runAll(ctx, o, m)
	fmt.Fprint(out, m.table())
	if *page != "" && err == nil {
		err = docpage.Write(os.Stdout, *page, "make conformance", m.table())
	}
	return err
}

// runAll runs all cases with all proxies, these beside each other: what takes long is
// waiting.
func runAll(ctx context.Context, o options, m *matrix) error {
	all := frontEnds()
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, fe := range all {
		wg.Go(func() { errs[i] = runFrontEnd(ctx, o, fe, m) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// runFrontEnd runs all cases with one proxy.
func runFrontEnd(ctx context.Context, o options, fe frontEnd, m *matrix) error {
	whole, open := cases(), openCases()
	if fe.closed {
		whole, open = append(whole, open...), nil
	} else {
		open = append(hostileCases(), open...)
	}
	err := runCases(ctx, o, fe, whole, m)
	if len(open) > 0 && !errors.Is(err, errNotHere) {
		o.open = true
		err = errors.Join(err, runCases(ctx, o, fe, open, m))
	}
	return err
}

// runCases runs some of the cases with a proxy of their own.
func runCases(ctx context.Context, o options, fe frontEnd, some []testCase, m *matrix) error {
	s, err := startStack(ctx, o, fe, some)
	if err != nil {
		return fmt.Errorf("%s: %w", fe.name, err)
	}
	defer s.close()
	var errs []error
	for _, c := range some {
		seen, err := c.run(&try{ctx: ctx, stack: s, fe: fe, host: c.host(), room: c.id})
		if err != nil {
			errs = append(errs, fmt.Errorf("%s, %s: %w", fe.name, c.what, err))
			seen = "broken"
		}
		m.put(c, fe, seen)
	}
	return errors.Join(errs...)
}
