//go:build unix

package conformance

import (
	"context"
	"errors"
	"fmt"
)

// options are those of a run.
type options struct {
	binary   string // ropeline
	caddy    string // the program
	examples string // where the configurations are
	open     bool   // the examples are to let everybody in where no node answers
}

// runFrontEnd runs all cases with one proxy.
func runFrontEnd(ctx context.Context, o options, fe frontEnd) (column, error) {
	seen := column{fe, map[string]string{}}
	whole, open := cases(), openCases()
	if fe.closed {
		whole, open = append(whole, open...), nil
	}
	err := runCases(ctx, o, fe, whole, seen)
	if len(open) > 0 && !errors.Is(err, errNotHere) {
		o.open = true
		err = errors.Join(err, runCases(ctx, o, fe, open, seen))
	}
	return seen, err
}

// runCases runs some of the cases with a proxy of their own, and puts down what visitors saw.
func runCases(ctx context.Context, o options, fe frontEnd, some []testCase, column column) error {
	s, err := startStack(ctx, o, fe, some)
	if err != nil {
		return fmt.Errorf("%s: %w", fe.name, err)
	}
	defer s.close()
	var errs []error
	for _, c := range some {
		seen, err := s.do(ctx, fe, c)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s, %s: %w", fe.name, c.what, err))
			seen = broken
		}
		column.seen[c.id] = seen
	}
	return errors.Join(errs...)
}
