package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

// withRemedy says what to do where an address of this machine could not be opened, which was
// set by setting.
func withRemedy(err error, setting string) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w; end the program that has it, or choose another address with --%s", err, setting)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w; this machine does not have it: choose another address with --%s", err, setting)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%w; ports below 1024 want CAP_NET_BIND_SERVICE: give the program that, or choose another with --%s", err, setting)
	}
	return err
}

// remedied has a part of the node that opens an address by itself fail with that.
func remedied(setting string, run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error { return withRemedy(run(ctx), setting) }
}
