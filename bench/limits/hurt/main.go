//go:build linux

// Command hurt has clients come to a mesh of real ropeline processes, three sites of two
// nodes, with a rate limit over all of them, and hurts it meanwhile. The site behind the mesh
// counts what reaches it. It writes what came of it as a table into a page of the
// documentation, between two marks. As root it cuts real links.
//
//	go run ./bench/limits/hurt -page docs/rate-limits-measured.md
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/ropeline/ropeline/bench/docpage"
	"github.com/ropeline/ropeline/bench/rig"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "hurt:", err)
		os.Exit(1)
	}
}

// errBroken says that a promise was broken; which one stands in the table.
var errBroken = errors.New("not everything held")

func command(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("hurt", flag.ContinueOnError)
	page := fs.String("page", "", "the `file` to write the table into; empty: print it")
	only := fs.String("run", "", "only faults whose names contain this `text`")
	o := options{out: os.Stderr}
	fs.StringVar(&o.binary, "binary", "", "ropeline, built with the tag faults (default: built now)")
	fs.BoolVar(&o.loopback, "loopback", false, "cut by proxies, even where real links could be")
	fs.DurationVar(&o.period, "period", 10*time.Second, "period of the limit in which faults are tried")
	if err := fs.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "ropeline-hurt-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	o.dir = dir
	if o.binary == "" {
		if o.binary, err = rig.Built(ctx, rig.Ropeline, "faults"); err != nil {
			return err
		}
	}
	table, broken := head, error(nil)
	for _, f := range faults(o.period) {
		if !strings.Contains(f.name, *only) {
			continue
		}
		r, err := execute(ctx, f, o)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		fmt.Fprint(o.out, r.row())
		table += r.row()
		if len(r.broken()) > 0 {
			broken = errBroken
		}
	}
	return errors.Join(docpage.Write(os.Stdout, *page, "make limit-faults", table), broken)
}
