//go:build linux

// Command heavy loads a real node with what wears proxies out: bodies of a GiB,
// thousands of WebSockets that say nothing, and clients that send a byte now and
// then. It writes what came of it as a table into a page of the documentation,
// between two marks.
//
// The node, the origin and the clients are processes of their own, so that each
// has the whole limit of open files and the node's memory is its own.
//
//	go run ./bench/heavy -binary ./ropeline -page docs/measurements.md
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/docpage"
)

// plan says how much is done.
type plan struct {
	binary   string
	body     int64         // bytes of one body
	sockets  int           // WebSockets, if there are files for as many
	hold     time.Duration // how long they say nothing
	slow     int           // clients that send a byte now and then
	visitors int           // others, meanwhile
	alone    time.Duration // and before, for comparison
}

// row is one line of the table.
type row struct {
	what, came, verdict string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "heavy: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("heavy", flag.ContinueOnError)
	var p plan
	fs.StringVar(&p.binary, "binary", "./ropeline", "the `program` to run")
	page := fs.String("page", "", "the `file` to write the table into; empty: print it")
	fs.Int64Var(&p.body, "body", 1<<30, "`bytes` of one body")
	fs.IntVar(&p.sockets, "sockets", 10000, "how many WebSockets")
	fs.DurationVar(&p.hold, "hold", time.Minute, "how long they say nothing")
	fs.IntVar(&p.slow, "slow", 1000, "how many clients send a byte now and then")
	fs.IntVar(&p.visitors, "visitors", 20, "how many others ask ten times a second meanwhile")
	fs.DurationVar(&p.alone, "alone", 10*time.Second, "how long they do before the slow ones come")
	asOrigin := fs.Bool("origin", false, "be the origin, which this program starts by itself")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *asOrigin {
		return serveOrigin(ctx)
	}
	rows, err := measure(ctx, p)
	if err != nil {
		return err
	}
	return docpage.Write(os.Stdout, *page, "make heavy", table(rows))
}

// measure runs everything, on one node after the other.
func measure(ctx context.Context, p plan) ([]row, error) {
	var rows []row
	for _, part := range []func(context.Context, plan, *stack) ([]row, error){measureBodies, measureSockets, measureSlow} {
		r, err := newStack(ctx, p.binary)
		if err != nil {
			return nil, errors.Join(err, r.stop())
		}
		some, err := part(ctx, p, r)
		if err := errors.Join(err, r.stop()); err != nil {
			return nil, fmt.Errorf("%w\nThe node said:\n%s", err, r.node.Log())
		}
		for _, r := range some {
			fmt.Fprintf(os.Stderr, "%s: %s: %s\n", r.what, r.came, r.verdict)
		}
		rows = append(rows, some...)
	}
	return rows, nil
}

func table(rows []row) string {
	var b strings.Builder
	b.WriteString("| what | what came of it | verdict |\n|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.what, r.came, r.verdict)
	}
	return b.String()
}

// verdict says whether something held.
func verdict(ok bool) string {
	if ok {
		return "held"
	}
	return "**broken**"
}
