//go:build linux

package faults

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/ticket"
)

func TestFiguresAreThoseOfTheNodes(t *testing.T) {
	for _, f := range []struct {
		what       string
		here, real time.Duration
	}{{"guard", guard, ticket.Guard}, {"loanValid", loanValid, ticket.LoanValid}, {"takeUp", takeUp, ticket.TakeUp}} {
		if f.here != f.real {
			t.Errorf("%s: got %v, a node has %v", f.what, f.here, f.real)
		}
	}
}
